// SPDX-License-Identifier: MIT
//! Types as tokens. The macros look at a few of them only; what they mean is the compiler's business.
use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Result, Token};

#[derive(Clone)]
pub struct Ty(TokenStream);

impl From<TokenStream> for Ty {
    fn from(tokens: TokenStream) -> Ty {
        Ty(tokens)
    }
}

impl ToTokens for Ty {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens)
    }
}

/// Up to a comma, a semicolon, an equals sign, `for`, `where` or a block.
impl Parse for Ty {
    fn parse(input: ParseStream) -> Result<Ty> {
        let mut trees: Vec<TokenTree> = Vec::new();
        let mut angles = Angles::default();
        while !input.is_empty() {
            let end = input.peek(Token![,]) || input.peek(Token![;]) || input.peek(Token![=]);
            let inner = trees.is_empty() && input.peek(Token![for]);
            let word =
                input.peek(Token![where]) || (input.peek(Token![for]) && !inner) || input.peek(syn::token::Brace);
            if !angles.open() && (end || word) {
                break;
            }
            let tree = input.parse::<TokenTree>()?;
            angles.pass(&tree);
            trees.push(tree);
        }
        match trees.is_empty() {
            true => Err(input.error("a type is missing")),
            false => Ok(Ty(trees.into_iter().collect())),
        }
    }
}

/// Counts what `<` opens.
#[derive(Default)]
struct Angles {
    depth: usize,
    /// The token before is the `-` of an arrow.
    arrow: bool,
}

impl Angles {
    fn open(&self) -> bool {
        self.depth > 0
    }

    fn pass(&mut self, tree: &TokenTree) {
        let arrow = std::mem::take(&mut self.arrow);
        if let TokenTree::Punct(punct) = tree {
            match punct.as_char() {
                '<' => self.depth += 1,
                '>' if !arrow => self.depth = self.depth.saturating_sub(1),
                '-' => self.arrow = punct.spacing() == Spacing::Joint,
                _ => {}
            }
        }
    }
}

/// What is in invisible groups, which macros by example make.
fn bare(tokens: TokenStream) -> Vec<TokenTree> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    match &trees[..] {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => bare(group.stream()),
        _ => trees,
    }
}

fn is(tree: Option<&TokenTree>, c: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

/// The parameters of these are types of OCaml.
const KEEPING: &[&str] = &["Root", "ValueRef", "ValueCell", "Fun", "Boxed"];

impl Ty {
    pub fn span(&self) -> Span {
        self.0.span()
    }

    pub fn error(&self, message: &str) -> Error {
        Error::new_spanned(self, message)
    }

    /// Of a reference: its `mut`, and what it refers to.
    pub fn reference(&self) -> Option<(Option<Ident>, Ty)> {
        let trees = bare(self.0.clone());
        if !is(trees.first(), '&') {
            return None;
        }
        let mut rest = &trees[1..];
        if is(rest.first(), '\'') {
            rest = rest.get(2..)?;
        }
        let mutable = match rest.first() {
            Some(TokenTree::Ident(ident)) if ident == "mut" => Some(ident.clone()),
            _ => None,
        };
        let behind = &rest[usize::from(mutable.is_some())..];
        Some((mutable, Ty(behind.iter().cloned().collect())))
    }

    /// The elements of a slice.
    pub fn slice(&self) -> Option<Ty> {
        match &bare(self.0.clone())[..] {
            [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => {
                let elements: Ty = syn::parse2(group.stream()).ok()?;
                // An array has a semicolon and a number behind it, so not all was read.
                Some(elements)
            }
            _ => None,
        }
    }

    /// The last name of a path, and the tokens in its angle brackets.
    fn path(&self) -> Option<(Ident, Vec<TokenTree>)> {
        let (mut last, mut arguments) = (None::<Ident>, Vec::new());
        let mut angles = Angles::default();
        let mut separated = true;
        for tree in bare(self.0.clone()) {
            let inside = angles.open();
            angles.pass(&tree);
            match &tree {
                _ if inside && angles.open() => arguments.push(tree),
                _ if inside => {}
                TokenTree::Ident(ident) if separated => {
                    (last, separated) = (Some(ident.clone()), false);
                    arguments.clear();
                }
                _ if is(Some(&tree), ':') => separated = true,
                // The angle bracket behind a name; one in front begins `<T as Trait>`.
                _ if angles.open() && last.is_some() => {}
                _ => return None,
            }
        }
        last.map(|last| (last, arguments))
    }

    /// The last name of a path.
    pub fn last_segment(&self) -> Option<String> {
        self.path().map(|(last, _)| last.to_string())
    }

    /// What is in the angle brackets behind the last name of a path.
    pub fn arguments(&self) -> Vec<Ty> {
        let tokens: TokenStream = self.path().into_iter().flat_map(|(_, arguments)| arguments).collect();
        let list = |input: ParseStream| input.parse_terminated(Ty::parse, Token![,]);
        syn::parse::Parser::parse2(list, tokens).map(|list| list.into_iter().collect()).unwrap_or_default()
    }

    /// Whether it is a path, also `<T as Trait>::Name`.
    pub fn is_path(&self) -> bool {
        is(bare(self.0.clone()).first(), '<') || self.path().is_some()
    }

    /// A single name; `()` for the empty tuple.
    pub fn name(&self) -> Option<String> {
        match &bare(self.0.clone())[..] {
            [TokenTree::Ident(ident)] => Some(ident.to_string()),
            [TokenTree::Group(g)] if g.delimiter() == Delimiter::Parenthesis && g.stream().is_empty() => {
                Some("()".into())
            }
            _ => None,
        }
    }

    /// Lifetimes with a name are left to inference, and `Self` is written out.
    pub fn stripped(&self, owner: Option<&Ty>) -> Ty {
        let this = |ident: &Ident| match owner {
            Some(owner) if ident == "Self" => Some(owner.0.clone()),
            _ => None,
        };
        Ty(replace(self.0.clone(), &|name| (name != "static").then_some("_"), &this))
    }

    /// `'_` becomes this lifetime.
    pub fn with_lifetime(&self, lifetime: &str) -> Ty {
        Ty(replace(self.0.clone(), &|name| (name == "_").then_some(lifetime), &|_| None))
    }

    /// Whether a reference or a `Value` is a part of it, as in `Option<&str>`; those in types of OCaml's, behind `Root`
    /// and the like, do not count.
    pub fn borrows_inside(&self) -> bool {
        let slice = self.reference().and_then(|(_, behind)| behind.slice());
        match &bare(self.0.clone())[..] {
            _ if slice.is_some() => slice.is_some_and(|elements| elements.borrows()),
            [TokenTree::Group(tuple)] if tuple.delimiter() == Delimiter::Parenthesis => {
                let list = |input: ParseStream| input.parse_terminated(Ty::parse, Token![,]);
                let parts = syn::parse::Parser::parse2(list, tuple.stream());
                parts.is_ok_and(|parts| parts.iter().any(Ty::borrows))
            }
            _ => {
                let kept = self.last_segment().is_none_or(|name| KEEPING.contains(&&*name));
                !kept && self.arguments().iter().any(Ty::borrows)
            }
        }
    }

    fn borrows(&self) -> bool {
        let value = self.last_segment().is_some_and(|name| name == "Value");
        value || self.reference().is_some() || self.borrows_inside()
    }

    /// An `impl Trait`.
    pub fn impl_trait(&self) -> Option<Ident> {
        find(self.0.clone(), "impl")
    }

    /// Whether the name is in it.
    pub fn mentions(&self, name: &Ident) -> bool {
        find(self.0.clone(), &name.to_string()).is_some()
    }
}

fn find(tokens: TokenStream, word: &str) -> Option<Ident> {
    tokens.into_iter().find_map(|tree| match tree {
        TokenTree::Ident(ident) if ident == word => Some(ident),
        TokenTree::Group(group) => find(group.stream(), word),
        _ => None,
    })
}

/// Other lifetimes, by their names, and other names.
fn replace<'a>(
    tokens: TokenStream,
    lifetime: &dyn Fn(&str) -> Option<&'a str>,
    ident: &dyn Fn(&Ident) -> Option<TokenStream>,
) -> TokenStream {
    let mut result = TokenStream::new();
    let mut apostrophe = false;
    for tree in tokens {
        let after = std::mem::replace(&mut apostrophe, is(Some(&tree), '\''));
        match tree {
            TokenTree::Ident(name) if after => {
                let other = lifetime(&name.to_string()).map(|other| Ident::new(other, name.span()));
                result.extend([TokenTree::from(other.unwrap_or(name))]);
            }
            TokenTree::Ident(name) => match ident(&name) {
                Some(tokens) => result.extend(tokens),
                None => result.extend([TokenTree::from(name)]),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace(group.stream(), lifetime, ident));
                inner.set_span(group.span());
                result.extend([TokenTree::from(inner)]);
            }
            tree => result.extend([tree]),
        }
    }
    result
}

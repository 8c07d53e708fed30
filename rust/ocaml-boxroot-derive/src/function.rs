// SPDX-License-Identifier: MIT
//! Functions as far as the macros read them: attributes, visibility and signature, the body left out.
use crate::ty::Ty;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{parenthesized, Attribute, Error, GenericParam, Generics, LitStr, Result, Token, Visibility};

pub struct Function {
    pub attributes: Vec<Attribute>,
    pub vis: Visibility,
    pub signature: Signature,
}

pub struct Signature {
    pub ident: Ident,
    pub generics: Generics,
    pub inputs: Vec<Input>,
    /// Behind the arrow.
    pub output: Option<Ty>,
    /// What no wrapper can be made for.
    refused: Option<Error>,
}

pub enum Input {
    /// `self`, and whether it is `&self`.
    Receiver(Span, bool),
    Typed(Typed),
}

pub struct Typed {
    /// The pattern in front of the colon.
    pub span: Span,
    pub ty: Ty,
}

/// Whether a function comes next.
pub fn comes_next(input: ParseStream) -> bool {
    let ahead = input.fork();
    while qualifier(&ahead) {
        let _ = ahead.parse::<TokenTree>();
    }
    ahead.peek(Token![fn])
}

fn qualifier(input: ParseStream) -> bool {
    let word = input.peek(Token![const]) || input.peek(Token![async]) || input.peek(Token![unsafe]);
    word || input.peek(Token![extern]) || input.peek(LitStr)
}

/// An item in front of its block, and the block, in which the macros do not look.
pub fn split_block(item: TokenStream) -> (TokenStream, Option<Group>) {
    let mut trees: Vec<TokenTree> = item.into_iter().collect();
    let block = match trees.pop() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Some(group),
        last => {
            trees.extend(last);
            None
        }
    };
    (trees.into_iter().collect(), block)
}

impl Parse for Signature {
    fn parse(input: ParseStream) -> Result<Signature> {
        let mut refused = None;
        let mut refuse = |error: Error| {
            refused.get_or_insert(error);
        };
        while qualifier(input) {
            let word = input.parse::<TokenTree>()?;
            match &*word.to_string() {
                "async" => refuse(Error::new(word.span(), "OCaml cannot call an `async` function")),
                "unsafe" => {
                    refuse(Error::new(word.span(), "OCaml cannot keep to the conditions of an `unsafe` function"))
                }
                "extern" => refuse(Error::new(word.span(), "the calling convention is added by `export`")),
                _ => {}
            }
        }
        input.parse::<Token![fn]>()?;
        let ident = input.parse()?;
        let mut generics: Generics = input.parse()?;
        for parameter in &generics.params {
            if let GenericParam::Const(parameter) = parameter {
                let message = "a number cannot be a parameter of an OCaml function's type";
                refuse(Error::new_spanned(parameter, message));
            }
        }
        let list;
        parenthesized!(list in input);
        let mut inputs = Vec::new();
        while !list.is_empty() {
            let attributes = list.call(Attribute::parse_outer)?;
            if let Some(condition) = attributes.iter().find(|attribute| attribute.path().is_ident("cfg")) {
                refuse(Error::new_spanned(condition, "put `#[cfg]` on two functions, with and without this parameter"));
            }
            if list.peek(Token![...]) {
                refuse(list.error("OCaml passes a fixed number of arguments"));
                list.parse::<TokenStream>()?;
                break;
            }
            inputs.push(list.parse()?);
            if !list.is_empty() {
                list.parse::<Token![,]>()?;
            }
        }
        let output = match input.parse::<Option<Token![->]>>()? {
            Some(_) => Some(input.parse::<Ty>()?),
            None => None,
        };
        generics.where_clause = input.parse()?;
        let types = inputs.iter().filter_map(|input| match input {
            Input::Typed(typed) => Some(&typed.ty),
            Input::Receiver(..) => None,
        });
        if let Some(word) = types.chain(&output).find_map(Ty::impl_trait) {
            refuse(Error::new(word.span(), "OCaml needs to know this type: write it out"));
        }
        Ok(Signature { ident, generics, inputs, output, refused })
    }
}

impl Signature {
    /// An error if no wrapper can be made.
    pub fn refuse(&self) -> Result<()> {
        self.refused.clone().map_or(Ok(()), Err)
    }
}

impl Input {
    pub fn span(&self) -> Span {
        match self {
            Input::Receiver(span, _) => *span,
            Input::Typed(typed) => typed.span,
        }
    }
}

impl Parse for Input {
    fn parse(input: ParseStream) -> Result<Input> {
        let mut pattern = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) && (!input.peek(Token![:]) || input.peek(Token![::])) {
            match input.peek(Token![::]) {
                true => input.parse::<Token![::]>()?.to_tokens(&mut pattern),
                false => input.parse::<TokenTree>()?.to_tokens(&mut pattern),
            }
        }
        let span = pattern.span();
        let words: Vec<String> = pattern.into_iter().map(|tree| tree.to_string()).collect();
        let receiver = words.last().is_some_and(|word| word == "self");
        let ty = match input.parse::<Option<Token![:]>>()? {
            Some(_) => Some(input.parse::<Ty>()?),
            None => None,
        };
        match ty {
            _ if receiver => {
                let shared = words[0] == "&" && !words.iter().any(|word| word == "mut") && ty.is_none();
                Ok(Input::Receiver(span, shared))
            }
            Some(ty) => Ok(Input::Typed(Typed { span, ty })),
            None => Err(Error::new(span, "the type of this parameter is missing")),
        }
    }
}

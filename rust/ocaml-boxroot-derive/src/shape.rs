// SPDX-License-Identifier: MIT
//! What a struct or an enum is in OCaml: a record, constructors or polymorphic variants, with names and attributes.
use crate::casing;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned, ToTokens};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, GenericParam, Generics, Ident, Lifetime, Lit, LitStr,
    Member, Path, Token, TypeParamBound, WherePredicate,
};

/// The input of a derive.
pub struct Shape {
    pub ident: Ident,
    pub generics: Generics,
    /// What the generics ask of type parameters.
    bounds: Vec<(Ident, Path)>,
    pub krate: TokenStream,
    pub name: String,
    pub doc: String,
    pub unboxed: bool,
    /// Type parameters that stand for OCaml types, as in `Root<A>`; others for what is converted.
    pub descriptors: Vec<Ident>,
    /// Type parameters that may be elements of arrays.
    pub elements: Vec<Ident>,
    pub kind: Kind,
}

pub enum Kind {
    Record(Vec<Field>),
    Variants(Vec<Variant>),
    Polymorphic(Vec<Variant>),
}

pub struct Variant {
    /// How Rust writes it: `Self` for a struct, `Self::A`.
    pub path: TokenStream,
    pub name: String,
    pub doc: String,
    /// Fields have names.
    pub named: bool,
    pub fields: Vec<Field>,
}

pub struct Field {
    pub member: Member,
    /// Its type, without `Self`.
    pub ty: TokenStream,
    pub span: Span,
    pub name: String,
    pub doc: String,
    pub mutable: bool,
}

pub fn expand(input: proc_macro::TokenStream, derive: fn(&Shape) -> TokenStream) -> proc_macro::TokenStream {
    let shape = syn::parse::<DeriveInput>(input).and_then(Shape::new);
    shape.map_or_else(Error::into_compile_error, |shape| derive(&shape)).into()
}

/// What `#[ocaml(…)]` says.
#[derive(Default)]
pub struct Options {
    rename: Option<LitStr>,
    pub krate: Option<Path>,
    /// The OCaml module that declares the exceptions.
    pub module: Option<LitStr>,
    unboxed: Option<Span>,
    polymorphic: Option<Span>,
    mutable: Option<Span>,
    descriptors: Vec<Ident>,
    pub doc: String,
}

impl Options {
    /// `allowed`: the names that have a meaning here.
    pub fn new(attributes: &[Attribute], allowed: &[&str], place: &str) -> syn::Result<Options> {
        let mut options = Options::default();
        for attribute in attributes {
            if attribute.path().is_ident("doc") {
                if let Ok(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) =
                    attribute.meta.require_name_value().map(|pair| pair.value.clone())
                {
                    options.doc += text.value().trim();
                    options.doc.push('\n');
                }
            }
            if !attribute.path().is_ident("ocaml") {
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
                if !allowed.contains(&&*name) {
                    let list = allowed.join("`, `");
                    return Err(meta.error(format!("`ocaml` knows no such attribute for {place}, only `{list}`")));
                }
                let span = Some(meta.path.span());
                match &*name {
                    "rename" => options.rename = Some(meta.value()?.parse()?),
                    "module" => options.module = Some(meta.value()?.parse()?),
                    "crate" => options.krate = Some(crate::names::crate_path(meta.value()?)?),
                    "unboxed" => options.unboxed = span,
                    "descriptors" => {
                        let list;
                        syn::parenthesized!(list in meta.input);
                        options.descriptors = list.parse_terminated(Ident::parse_any, Token![,])?.into_iter().collect();
                    }
                    "polymorphic" => options.polymorphic = span,
                    _ => options.mutable = span,
                }
                Ok(())
            })?;
        }
        options.doc = options.doc.trim().to_owned();
        Ok(options)
    }

    /// The name in OCaml: as renamed, or made from the Rust name.
    fn name(
        &self,
        ident: &Ident,
        make: fn(&str) -> String,
        refuse: impl Fn(&str) -> Option<&'static str>,
    ) -> syn::Result<String> {
        let (name, span) = match &self.rename {
            Some(name) => (name.value(), name.span()),
            None => (make(&ident.to_string()), ident.span()),
        };
        match refuse(&name) {
            None => Ok(name),
            Some(why) => Err(Error::new(span, format!("`{name}` {why}; another: `#[ocaml(rename = \"…\")]`"))),
        }
    }
}

impl Shape {
    fn new(input: DeriveInput) -> syn::Result<Shape> {
        let place = match input.data {
            Data::Enum(_) => "an enum",
            _ => "a struct",
        };
        let allowed: &[&str] = match input.data {
            Data::Enum(_) => &["rename", "crate", "descriptors", "polymorphic"],
            _ => &["rename", "crate", "descriptors", "unboxed"],
        };
        let options = Options::new(&input.attrs, allowed, place)?;
        let name = options.name(&input.ident, casing::type_name, |name| casing::refuse_value(name, true))?;
        let this = itself(&input);
        let kind = match &input.data {
            Data::Struct(data) => match &data.fields {
                Fields::Named(named) if !named.named.is_empty() => Kind::Record(fields(&data.fields, &this)?),
                _ => Kind::Variants(vec![Variant {
                    path: quote!(Self),
                    name: constructor(&Options::default(), &input.ident)?,
                    doc: String::new(),
                    named: false,
                    fields: fields(&data.fields, &this)?,
                }]),
            },
            Data::Enum(data) => {
                let polymorphic = options.polymorphic.is_some();
                let mut variants: Vec<Variant> = Vec::new();
                for variant in &data.variants {
                    let own = Options::new(&variant.attrs, &["rename"], "a variant")?;
                    let ident = &variant.ident;
                    let name = constructor(&own, ident)?;
                    let named = matches!(&variant.fields, Fields::Named(named) if !named.named.is_empty());
                    if named && polymorphic {
                        let message = "a polymorphic variant has no named fields in OCaml; use a tuple or a struct";
                        return Err(Error::new_spanned(&variant.fields, message));
                    }
                    for other in &variants {
                        if other.name == name {
                            return Err(Error::new_spanned(ident, format!("two constructors are named `{name}`")));
                        }
                        if polymorphic && casing::hash(&other.name) == casing::hash(&name) {
                            let message = format!(
                                "OCaml cannot tell the polymorphic variants `{}` and `{name}` apart",
                                other.name
                            );
                            return Err(Error::new_spanned(ident, message));
                        }
                    }
                    let fields = fields(&variant.fields, &this)?;
                    variants.push(Variant { path: quote!(Self::#ident), name, doc: own.doc, named, fields });
                }
                if !polymorphic && variants.iter().filter(|variant| !variant.fields.is_empty()).count() > 246 {
                    // With OCaml 5 the code that is made refuses 245 and 246.
                    let message = "a type of OCaml has at most 244 constructors with arguments (with OCaml 4, 246)";
                    return Err(Error::new_spanned(&input.ident, message));
                }
                if polymorphic && variants.is_empty() {
                    return Err(Error::new_spanned(&input.ident, "OCaml has no empty type of polymorphic variants"));
                }
                match polymorphic {
                    true => Kind::Polymorphic(variants),
                    false => Kind::Variants(variants),
                }
            }
            Data::Union(data) => {
                return Err(Error::new(data.union_token.span, "a union has no counterpart in OCaml"));
            }
        };
        if let Some(span) = options.unboxed {
            let count = match &kind {
                Kind::Record(fields) => fields.len(),
                Kind::Variants(variants) => variants.iter().map(|variant| variant.fields.len()).sum(),
                Kind::Polymorphic(_) => 0,
            };
            if count != 1 {
                return Err(Error::new(span, "only a struct with one field can be unboxed"));
            }
        }
        let mut generics = input.generics;
        let bounds = plain_bounds(&mut generics)?;
        let (mut descriptors, mut elements) = (options.descriptors, Vec::new());
        for ident in &descriptors {
            if !generics.type_params().any(|parameter| parameter.ident == *ident) {
                return Err(Error::new_spanned(ident, format!("`{ident}` is not a type parameter")));
            }
        }
        for parameter in generics.type_params() {
            let uses = uses(kind.fields().map(|field| &field.ty), &parameter.ident, &input.ident);
            if uses.element {
                elements.push(parameter.ident.clone());
            }
            if uses.described && !uses.converted && !descriptors.contains(&parameter.ident) {
                descriptors.push(parameter.ident.clone());
            }
        }
        let krate = options.krate.map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
        let unboxed = options.unboxed.is_some();
        let (ident, doc) = (input.ident, options.doc);
        Ok(Shape { ident, generics, bounds, krate, name, doc, unboxed, descriptors, elements, kind })
    }
}

/// Traits that lead to no other types, and that all types of OCaml have; the first ones are derived.
const DERIVED: usize = 8;
const PLAIN_TRAITS: [&str; 12] = [
    "::core::clone::Clone",
    "::core::marker::Copy",
    "::core::fmt::Debug",
    "::core::cmp::PartialEq",
    "::core::cmp::Eq",
    "::core::cmp::PartialOrd",
    "::core::cmp::Ord",
    "::core::hash::Hash",
    "::core::marker::Send",
    "::core::marker::Sync",
    "::core::marker::Unpin",
    "::core::marker::Sized",
];

/// What is asked of type parameters. The traits get their full names, so that what is derived has no other trait of the
/// same name. Other bounds are refused, as in [`unbounded`].
fn plain_bounds(generics: &mut Generics) -> syn::Result<Vec<(Ident, Path)>> {
    let names: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let in_front = generics.params.iter_mut().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some((Some(parameter.ident.clone()), &mut parameter.bounds)),
        _ => None,
    });
    let predicates = generics.where_clause.iter_mut().flat_map(|clause| &mut clause.predicates);
    let behind = predicates.filter_map(|predicate| match predicate {
        WherePredicate::Type(predicate) => {
            let ty = predicate.bounded_ty.to_token_stream().to_string();
            Some((names.iter().find(|name| **name == ty).cloned(), &mut predicate.bounds))
        }
        _ => None,
    });
    let mut found = Vec::new();
    for (parameter, bounds) in in_front.chain(behind) {
        for bound in bounds.iter_mut().filter(|bound| !matches!(bound, TypeParamBound::Lifetime(_))) {
            let written = bound.to_token_stream().to_string();
            let last = written.rsplit("::").next().unwrap_or_default().trim();
            let plain = PLAIN_TRAITS.iter().find(|plain| plain.rsplit("::").next() == Some(last));
            let (Some(plain), Some(parameter)) = (plain, &parameter) else {
                let message =
                    "a type parameter has no bound but lifetimes and traits such as `Clone` and `Debug`; put \
                               the bound on implementations";
                return Err(Error::new_spanned(bound, message));
            };
            let path: Path = syn::parse_str(plain)?;
            found.push((parameter.clone(), path.clone()));
            *bound = syn::parse_quote!(#path);
        }
    }
    Ok(found)
}

/// Types of OCaml have parameters without conditions. A trait may say for each type what it belongs to, another one for
/// each: then the definition, which is one, would be wrong for some.
pub fn unbounded(generics: &Generics) -> syn::Result<()> {
    let message = "a type parameter has no bound but lifetimes, as in OCaml; put the bounds on implementations";
    let refuse = |bounds: &syn::punctuated::Punctuated<syn::TypeParamBound, Token![+]>| match bounds
        .iter()
        .find(|bound| !matches!(bound, syn::TypeParamBound::Lifetime(_)))
    {
        Some(bound) => Err(Error::new_spanned(bound, message)),
        None => Ok(()),
    };
    generics.type_params().try_for_each(|parameter| refuse(&parameter.bounds))?;
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    predicates.into_iter().try_for_each(|predicate| match predicate {
        syn::WherePredicate::Type(predicate) => refuse(&predicate.bounds),
        _ => Ok(()),
    })
}

impl Kind {
    fn fields(&self) -> impl Iterator<Item = &Field> {
        let (record, variants): (&[Field], &[Variant]) = match self {
            Kind::Record(fields) => (fields, &[]),
            Kind::Variants(variants) | Kind::Polymorphic(variants) => (&[], variants),
        };
        record.iter().chain(variants.iter().flat_map(|variant| &variant.fields))
    }
}

/// How fields use a type parameter, or a part of a type does.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// As the type of OCaml values: in `Root<A>` and the like.
    described: bool,
    /// Otherwise.
    converted: bool,
    /// Perhaps in an array.
    element: bool,
}

/// Parameters of these stand for OCaml types.
const OF_DESCRIPTORS: &[&str] = &["Root", "Value", "ValueRef", "ValueCell", "Fun", "Boxed"];
/// These make no arrays of their parameters.
const OF_ONE: &[&str] = &["Option", "Result", "List", "Box", "Rc", "Arc"];

fn uses<'a>(types: impl Iterator<Item = &'a TokenStream>, parameter: &Ident, this: &Ident) -> Uses {
    let mut uses = Uses::default();
    types.for_each(|ty| look(ty.clone(), parameter, this, Uses::default(), &mut uses));
    uses
}

/// `around`: in what the tokens are.
fn look(tokens: TokenStream, parameter: &Ident, this: &Ident, around: Uses, uses: &mut Uses) {
    // One for each `<` that is open.
    let mut open = vec![around];
    let mut before = None;
    for token in tokens {
        let here = *open.last().unwrap_or(&around);
        match &token {
            TokenTree::Group(group) => {
                let element = here.element || group.delimiter() == Delimiter::Bracket;
                look(group.stream(), parameter, this, Uses { element, ..here }, uses)
            }
            TokenTree::Ident(ident) if ident == parameter => {
                uses.described |= here.described;
                uses.converted |= !here.described;
                uses.element |= here.element;
            }
            TokenTree::Punct(punct) if punct.as_char() == '<' => {
                let is = |names: &[&str]| matches!(&before, Some(TokenTree::Ident(i)) if names.iter().any(|n| i == n));
                let itself = matches!(&before, Some(TokenTree::Ident(ident)) if ident == this);
                let described = here.described || is(OF_DESCRIPTORS);
                let element = here.element || !(itself || described || is(OF_ONE));
                open.push(Uses { described, element, ..here });
            }
            TokenTree::Punct(punct) if punct.as_char() == '>' => {
                let arrow = matches!(&before, Some(TokenTree::Punct(punct)) if punct.as_char() == '-');
                if !arrow && open.len() > 1 {
                    open.pop();
                }
            }
            _ => {}
        }
        before = Some(token);
    }
}

pub fn constructor(options: &Options, ident: &Ident) -> syn::Result<String> {
    options.name(ident, casing::constructor_name, casing::refuse_constructor)
}

pub fn fields(fields: &Fields, this: &TokenStream) -> syn::Result<Vec<Field>> {
    let mut list: Vec<Field> = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let (allowed, place): (&[&str], _) = match field.ident {
            Some(_) => (&["rename", "mutable"], "a field"),
            None => (&[], "a field without a name"),
        };
        let own = Options::new(&field.attrs, allowed, place)?;
        let (member, name) = match &field.ident {
            Some(ident) => {
                let refuse = |name: &str| casing::refuse_value(name, false);
                (Member::Named(ident.clone()), own.name(ident, casing::field_name, refuse)?)
            }
            None => (Member::Unnamed(i.into()), String::new()),
        };
        if !name.is_empty() && list.iter().any(|other| other.name == name) {
            return Err(Error::new_spanned(&field.ident, format!("two fields are named `{name}` in OCaml")));
        }
        list.push(Field {
            member,
            ty: without_self(field.ty.to_token_stream(), this),
            span: field.ty.span(),
            name,
            doc: own.doc,
            mutable: own.mutable.is_some(),
        });
    }
    Ok(list)
}

/// The type with its parameters.
pub fn itself(input: &DeriveInput) -> TokenStream {
    let (ident, (_, arguments, _)) = (&input.ident, input.generics.split_for_impl());
    quote!(#ident #arguments)
}

/// Writes the type out for `Self`, which means another type where parameters are replaced.
fn without_self(tokens: TokenStream, this: &TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) if ident == "Self" => this.clone(),
            TokenTree::Group(group) => {
                let mut inner = proc_macro2::Group::new(group.delimiter(), without_self(group.stream(), this));
                inner.set_span(group.span());
                TokenTree::from(inner).into()
            }
            token => token.into(),
        })
        .collect()
}

// --- what implementations share

impl Shape {
    pub fn type_parameters(&self) -> Vec<&Ident> {
        self.generics.type_params().map(|parameter| &parameter.ident).collect()
    }

    /// The generics of an implementation, with these bounds for each type parameter that is converted, and a lifetime
    /// in front that outlives the others.
    pub fn implementation(&self, bounds: &TokenStream, lifetime: Option<&Lifetime>) -> (TokenStream, TokenStream) {
        let mut generics = self.generics.clone();
        for parameter in &mut generics.params {
            if let GenericParam::Type(parameter) = parameter {
                parameter.default = None;
            }
        }
        let clause = generics.make_where_clause();
        for parameter in self.type_parameters() {
            if !self.descriptors.contains(parameter) {
                clause.predicates.push(syn::parse_quote!(#parameter: #bounds));
            }
            // Its type in OCaml is a parameter, too.
            for (_, path) in self.bounds.iter().filter(|(of, _)| of == parameter && !bounds.is_empty()) {
                let krate = &self.krate;
                if !self.descriptors.contains(parameter) {
                    clause.predicates.push(syn::parse_quote!(<#parameter as #krate::Typed>::Type: #path));
                }
            }
            if self.elements.contains(parameter) && !bounds.is_empty() {
                let krate = &self.krate;
                clause.predicates.push(syn::parse_quote!(#parameter: #krate::Element));
            }
        }
        if let Some(lifetime) = lifetime {
            for parameter in self.generics.lifetimes() {
                let parameter = &parameter.lifetime;
                clause.predicates.push(syn::parse_quote!(#lifetime: #parameter));
            }
            generics.params.insert(0, syn::parse_quote!(#lifetime));
        }
        let (parameters, _, clause) = generics.split_for_impl();
        (parameters.into_token_stream(), clause.into_token_stream())
    }

    pub fn itself(&self) -> TokenStream {
        let (ident, (_, arguments, _)) = (&self.ident, self.generics.split_for_impl());
        quote!(#ident #arguments)
    }

    /// Types that are type variables of OCaml, by the names of the type parameters, for a block.
    pub fn variables(&self) -> TokenStream {
        let krate = &self.krate;
        let names = self.type_parameters();
        let numbers = (0..names.len() as u8).map(proc_macro2::Literal::u8_unsuffixed);
        let traits = PLAIN_TRAITS[..DERIVED].iter().filter_map(|path| syn::parse_str::<Path>(path).ok());
        let derive = match self.bounds.is_empty() {
            true => quote!(),
            false => quote!(#[derive(#(#traits),*)]),
        };
        match names.is_empty() {
            true => quote!(),
            false => quote!(#krate::__type_variables! { #(#derive #names #numbers)* }),
        }
    }

    /// Whether OCaml makes the record flat: decided where it is defined, so for parameters that are variables.
    pub fn flat(&self, fields: &[Field]) -> TokenStream {
        let (krate, variables) = (&self.krate, self.variables());
        let floats = fields.iter().map(|field| {
            let ty = &field.ty;
            let span = at(field.span);
            quote_spanned!(span=> <<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT)
        });
        quote!({ #variables #(#floats)&&* })
    }

    /// Where a field can be seen not to be a float: a test that its name means what it usually does. Code for flat
    /// records is then left out, which is half of all.
    pub fn never_flat(&self, fields: &[Field]) -> Option<TokenStream> {
        let known = |field: &&Field| NO_FLOATS.contains(&&*field.ty.to_string());
        let (krate, ty) = (&self.krate, &fields.iter().find(known)?.ty);
        Some(quote!(const { ::core::assert!(!<<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT) }))
    }

    /// The only field, where the type is unboxed.
    pub fn only(&self) -> Option<(&Field, TokenStream)> {
        let field = match &self.kind {
            _ if !self.unboxed => None,
            Kind::Record(fields) => fields.first(),
            Kind::Variants(variants) => variants.first().and_then(|variant| variant.fields.first()),
            Kind::Polymorphic(_) => None,
        }?;
        let member = &field.member;
        Some((field, quote!(Self { #member: field })))
    }
}

const NO_FLOATS: &[&str] =
    &["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "bool", "char", "String"];

/// What `result` holds; an error is returned. `?` says the same, and takes the Rust compiler longer, as it has to find
/// conversions of the error. `then` is behind what it holds.
pub fn good(span: Span, result: TokenStream, then: TokenStream) -> TokenStream {
    quote_spanned! {span=>
        match #result {
            ::core::result::Result::Ok(__ocaml_good) => __ocaml_good #then,
            ::core::result::Result::Err(__ocaml_error) => return ::core::result::Result::Err(__ocaml_error),
        }
    }
}

/// Errors point at the user's code, and lints are silent, since it is still the macro's.
pub fn at(span: Span) -> Span {
    Span::call_site().located_at(span)
}

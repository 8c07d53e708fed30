// SPDX-License-Identifier: MIT
//! The derived implementations: what they share.
mod describe;
mod from_ocaml;
mod to_ocaml;

pub use describe::describe;
pub use from_ocaml::from_ocaml;
pub use to_ocaml::{pattern, to_ocaml};

use crate::shape::{Field, Kind, Shape};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned, ToTokens};
use syn::{GenericParam, Ident, Lifetime};

impl Shape {
    fn type_parameters(&self) -> Vec<&Ident> {
        self.generics.type_params().map(|parameter| &parameter.ident).collect()
    }

    /// The generics of an implementation, with these bounds for each type parameter that is converted, and a lifetime
    /// in front that outlives the others.
    fn implementation(&self, bounds: &TokenStream, lifetime: Option<&Lifetime>) -> (TokenStream, TokenStream) {
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

    fn itself(&self) -> TokenStream {
        let (ident, (_, arguments, _)) = (&self.ident, self.generics.split_for_impl());
        quote!(#ident #arguments)
    }

    /// Types that are type variables of OCaml, by the names of the type parameters, for a block.
    fn variables(&self) -> TokenStream {
        let krate = &self.krate;
        let names = self.type_parameters();
        let numbers = (0..names.len() as u8).map(proc_macro2::Literal::u8_unsuffixed);
        match names.is_empty() {
            true => quote!(),
            false => quote!(#krate::__type_variables! { #(#names #numbers)* }),
        }
    }

    /// Whether OCaml makes the record flat: decided where it is defined, so for parameters that are variables.
    fn flat(&self, fields: &[Field]) -> TokenStream {
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
    fn never_flat(&self, fields: &[Field]) -> Option<TokenStream> {
        let known = |field: &&Field| NO_FLOATS.contains(&&*field.ty.to_string());
        let (krate, ty) = (&self.krate, &fields.iter().find(known)?.ty);
        Some(quote!(const { ::core::assert!(!<<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT) }))
    }

    /// The only field, where the type is unboxed.
    fn only(&self) -> Option<(&Field, TokenStream)> {
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

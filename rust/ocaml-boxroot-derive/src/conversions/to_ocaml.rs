// SPDX-License-Identifier: MIT
//! `ToOCaml`.
use crate::casing;
use crate::shape::{at, good, Field, Kind, Shape, Variant};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

/// The names of a variant's fields in a pattern, and the pattern.
pub fn pattern(variant: &Variant) -> (Vec<Ident>, TokenStream) {
    let names: Vec<Ident> = (0..variant.fields.len()).map(|i| format_ident!("field{i}")).collect();
    let members = variant.fields.iter().map(|field| &field.member);
    let path = &variant.path;
    let pattern = quote!(#path { #(#members: #names),* });
    (names, pattern)
}

pub fn to_ocaml(shape: &Shape) -> TokenStream {
    let (krate, itself) = (&shape.krate, shape.itself());
    let api = quote!(#krate::derive);
    let (generics, clause) = shape.implementation(&quote!(#krate::ToOCaml), None);
    let word = |field: &Field, name: TokenStream| {
        let span = at(field.span);
        good(span, quote_spanned!(span=> #krate::ToOCaml::to_ocaml(#name, n)), quote!(.raw()))
    };
    let (words, make, float) = if let Some((field, _)) = shape.only() {
        let member = &field.member;
        let span = at(field.span);
        (
            quote!(#krate::ToOCaml::words(&self.#member)),
            quote_spanned!(span=> unsafe {
                ::core::result::Result::Ok(#krate::ToOCaml::to_ocaml(&self.#member, n)?.cast())
            }),
            quote! {
                #[inline]
                fn to_float(&self) -> ::core::option::Option<#krate::Flat<Self::Type>> {
                    match #krate::ToOCaml::to_float(&self.#member) {
                        ::core::option::Option::Some(x) => ::core::option::Option::Some(unsafe { x.cast() }),
                        ::core::option::Option::None => ::core::option::Option::None,
                    }
                }
            },
        )
    } else {
        let (words, make) = match &shape.kind {
            Kind::Record(fields) => {
                let members: Vec<_> = fields.iter().map(|field| &field.member).collect();
                let flat = shape.flat(fields);
                let values = fields.iter().map(|field| {
                    let member = &field.member;
                    word(field, quote!(&self.#member))
                });
                (
                    quote!(#api::words(&[#(#krate::ToOCaml::words(&self.#members)),*])),
                    match shape.never_flat(fields) {
                        Some(test) => quote! {
                            #test
                            unsafe { #api::block(n, 0, [#(#values),*]) }
                        },
                        None => quote! {
                            if #flat {
                                unsafe { #api::floats(n, [#(#api::float(&self.#members, n)?),*]) }
                            } else {
                                unsafe { #api::block(n, 0, [#(#values),*]) }
                            }
                        },
                    },
                )
            }
            Kind::Variants(variants) => {
                let (mut constant, mut tag) = (0i32, 0u8);
                let arms: Vec<(TokenStream, TokenStream)> = variants
                    .iter()
                    .map(|variant| {
                        let (names, pattern) = pattern(variant);
                        if names.is_empty() {
                            constant += 1;
                            let number = constant - 1;
                            let make = quote!(unsafe { ::core::result::Result::Ok(#api::constant(#number)) });
                            return (quote!(#pattern => 0), quote!(#pattern => #make));
                        }
                        let number = tag;
                        // Too many are refused where the type is described.
                        tag = tag.wrapping_add(1);
                        let values = variant.fields.iter().zip(&names).map(|(field, name)| word(field, quote!(#name)));
                        (
                            quote!(#pattern => #api::words(&[#(#krate::ToOCaml::words(#names)),*])),
                            quote!(#pattern => unsafe { #api::block(n, #number, [#(#values),*]) }),
                        )
                    })
                    .collect();
                matches(arms)
            }
            Kind::Polymorphic(variants) => {
                let arms = variants
                    .iter()
                    .map(|variant| {
                        let (names, pattern) = pattern(variant);
                        let hash = casing::hash(&variant.name);
                        let values: Vec<_> =
                            variant.fields.iter().zip(&names).map(|(field, name)| word(field, quote!(#name))).collect();
                        let size = names.len();
                        let argument = match &values[..] {
                            [] => {
                                let make = quote!(unsafe { ::core::result::Result::Ok(#api::constant(#hash)) });
                                return (quote!(#pattern => 0), quote!(#pattern => #make));
                            }
                            [one] => one.clone(),
                            several => quote!(#api::block::<#krate::Any, #size>(n, 0, [#(#several),*])?.raw()),
                        };
                        (
                            quote!(#pattern => 4 + #size #(+ #krate::ToOCaml::words(#names))*),
                            quote!(#pattern => unsafe {
                                #api::block(n, 0, [#api::constant::<#krate::Any>(#hash).raw(), #argument])
                            }),
                        )
                    })
                    .collect();
                matches(arms)
            }
        };
        (words, make, quote!())
    };
    quote! {
        #[automatically_derived]
        impl #generics #krate::ToOCaml for #itself #clause {
            #[inline]
            fn words(&self) -> usize {
                #words
            }
            // SAFETY of the blocks in it: what is made has the type that `OCamlType` describes.
            fn to_ocaml<'ocaml_nursery>(
                &self,
                n: &'ocaml_nursery #krate::Nursery,
            ) -> ::core::result::Result<#krate::Value<'ocaml_nursery, Self::Type>, #krate::ConvertError> {
                #make
            }
            #float
        }
    }
}

/// Matches of `*self` for the two functions.
fn matches(arms: Vec<(TokenStream, TokenStream)>) -> (TokenStream, TokenStream) {
    if arms.is_empty() {
        return (quote!(match *self {}), quote!(match *self {}));
    }
    let (words, makes): (Vec<_>, Vec<_>) = arms.into_iter().unzip();
    (quote!(match self { #(#words,)* }), quote!(match self { #(#makes,)* }))
}

// SPDX-License-Identifier: MIT
//! `FromOCaml`.
use crate::casing;
use crate::shape::{at, good, Field, Kind, Shape};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Lifetime;

pub fn from_ocaml(shape: &Shape) -> TokenStream {
    let (krate, itself, name) = (&shape.krate, shape.itself(), &shape.name);
    let api = quote!(#krate::derive);
    let lifetime = Lifetime::new("'ocaml_value", Span::call_site());
    let bound = quote!(#krate::FromOCaml<#lifetime>);
    let (generics, clause) = shape.implementation(&bound, Some(&lifetime));
    let read = |fields: &[Field], first: usize, of: TokenStream| {
        let fields = fields.iter().enumerate().map(|(i, field)| {
            let (member, i, span) = (&field.member, i + first, at(field.span));
            let value = good(span, quote_spanned!(span=> #api::field(rt, #of, #i)), quote!());
            quote_spanned!(span=> #member: #value)
        });
        quote!(#(#fields),*)
    };
    let not = quote!(::core::result::Result::Err(#api::not(#name)));
    let (make, float) = if let Some((field, make)) = shape.only() {
        let span = at(field.span);
        (
            quote_spanned!(span=> {
                let field = #krate::FromOCaml::from_ocaml(rt, unsafe { v.cast() })?;
                ::core::result::Result::Ok(#make)
            }),
            quote_spanned! {span=>
                #[inline]
                fn from_float(
                    rt: &#lifetime #krate::Runtime,
                    x: #krate::Flat<Self::Type>,
                ) -> ::core::result::Result<Self, #krate::ConvertError> {
                    let field = #krate::FromOCaml::from_float(rt, unsafe { x.cast() })?;
                    ::core::result::Result::Ok(#make)
                }
            },
        )
    } else {
        let make = match &shape.kind {
            Kind::Record(fields) => {
                let size = fields.len();
                let flat = shape.flat(fields);
                let floats = fields.iter().enumerate().map(|(i, field)| {
                    let (member, span) = (&field.member, at(field.span));
                    quote_spanned!(span=> #member: #krate::FromOCaml::from_float(rt, #api::float_field(v, #i))?)
                });
                let values = read(fields, 0, quote!(v));
                let block = quote! {
                    if #api::block_of(v) != ::core::option::Option::Some((0, #size)) {
                        return #not;
                    }
                    ::core::result::Result::Ok(unsafe { Self { #values } })
                };
                match shape.never_flat(fields) {
                    Some(test) => quote!(#test #block),
                    None => quote! {
                        if #flat {
                            if !#api::is_flat(v, #size) {
                                return #not;
                            }
                            ::core::result::Result::Ok(unsafe { Self { #(#floats),* } })
                        } else {
                            #block
                        }
                    },
                }
            }
            Kind::Variants(variants) => {
                let (mut constants, mut blocks) = (Vec::new(), Vec::new());
                for variant in variants {
                    let path = &variant.path;
                    if variant.fields.is_empty() {
                        let number = constants.len() as isize;
                        constants.push(quote!(#number => ::core::result::Result::Ok(#path {})));
                    } else {
                        let (number, size) = (blocks.len() as u8, variant.fields.len());
                        let values = read(&variant.fields, 0, quote!(v));
                        blocks.push(quote!(::core::option::Option::Some((#number, #size)) =>
                            ::core::result::Result::Ok(unsafe { #path { #values } })));
                    }
                }
                quote! {
                    match #api::block_of(v) {
                        ::core::option::Option::None => match #api::number(v) {
                            #(#constants,)*
                            _ => #not,
                        },
                        #(#blocks,)*
                        _ => #not,
                    }
                }
            }
            Kind::Polymorphic(variants) => {
                let (mut constants, mut blocks) = (Vec::new(), Vec::new());
                for variant in variants {
                    let path = &variant.path;
                    let hash = casing::hash(&variant.name) as isize;
                    let size = variant.fields.len();
                    match size {
                        0 => constants.push(quote!(#hash => ::core::result::Result::Ok(#path {}))),
                        1 => {
                            let values = read(&variant.fields, 1, quote!(v));
                            blocks.push(quote!(#hash => ::core::result::Result::Ok(unsafe { #path { #values } })));
                        }
                        _ => {
                            let values = read(&variant.fields, 0, quote!(tuple));
                            blocks.push(quote!(#hash => {
                                let tuple = unsafe { #api::part(v, 1) };
                                if #api::block_of(tuple) != ::core::option::Option::Some((0, #size)) {
                                    return #not;
                                }
                                ::core::result::Result::Ok(unsafe { #path { #values } })
                            }));
                        }
                    }
                }
                quote! {
                    match #api::block_of(v) {
                        ::core::option::Option::None => match #api::number(v) {
                            #(#constants,)*
                            _ => #not,
                        },
                        ::core::option::Option::Some((0, 2)) => match #api::number(unsafe { #api::part(v, 0) }) {
                            #(#blocks,)*
                            _ => #not,
                        },
                        _ => #not,
                    }
                }
            }
        };
        (make, quote!())
    };
    quote! {
        #[automatically_derived]
        impl #generics #krate::FromOCaml<#lifetime> for #itself #clause {
            // SAFETY of the blocks in it: tags and sizes are tested, and the fields have the types that `OCamlType`
            // describes.
            fn from_ocaml(
                rt: &#lifetime #krate::Runtime,
                v: #krate::Value<#lifetime, Self::Type>,
            ) -> ::core::result::Result<Self, #krate::ConvertError> {
                #make
            }
            #float
        }
    }
}

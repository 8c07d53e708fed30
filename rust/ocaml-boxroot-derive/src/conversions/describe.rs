// SPDX-License-Identifier: MIT
//! `OCamlType`, `Typed` and `Element`.
use crate::shape::{at, Field, Kind, Shape, Variant};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned, ToTokens};
use syn::GenericParam;

/// `OCamlType`, `Typed`, `Element`.
pub fn describe(shape: &Shape) -> TokenStream {
    let (krate, name, ident, itself) = (&shape.krate, &shape.name, &shape.ident, shape.itself());
    let api = quote!(#krate::derive);
    let parameters = shape.type_parameters();
    let variables = shape.variables();
    let doc = &shape.doc;
    let attributes = if shape.unboxed { "[@@unboxed]" } else { "" };
    let (body, limit) = (body(shape, &api), limit(shape));
    let (float, own) = match shape.only() {
        Some((field, _)) => {
            let ty = &field.ty;
            (
                quote!(<<#ty as #krate::Typed>::Type as #krate::OCamlType>::FLOAT),
                quote!(#krate::OCamlType + #krate::Typed<Type = Self_> + #krate::Element),
            )
        }
        None => (quote!(false), quote!(#krate::OCamlType)),
    };
    // The bound `Typed<Type = A>` names the parameter.
    let (generics, clause) = bounds_naming(shape, &own);
    let (typed_generics, typed_clause) = shape.implementation(&quote!(#krate::Typed), None);
    let (element_generics, element_clause) = shape.implementation(&quote!(), None);
    let arguments = shape.generics.params.iter().map(|parameter| match parameter {
        GenericParam::Lifetime(_) => quote!('static),
        GenericParam::Type(parameter) => {
            let parameter = &parameter.ident;
            match shape.descriptors.contains(parameter) {
                true => parameter.to_token_stream(),
                false => quote!(<#parameter as #krate::Typed>::Type),
            }
        }
        GenericParam::Const(parameter) => parameter.ident.to_token_stream(),
    });
    quote! {
        // SAFETY: the definition says what the conversions do, which are derived from the same fields.
        #[automatically_derived]
        unsafe impl #generics #krate::OCamlType for #itself #clause {
            const FLOAT: bool = #float;
            fn describe(to: &mut #krate::Definitions) -> #api::String {
                #limit
                static SITE: #krate::DefinitionSite = #krate::DefinitionSite::new(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#ident))
                );
                #api::define(
                    to,
                    &SITE,
                    #name,
                    [#doc, #attributes],
                    &[#(<#parameters as #krate::OCamlType>::describe),*],
                    { #variables #body },
                )
            }
        }
        #[automatically_derived]
        impl #typed_generics #krate::Typed for #itself #typed_clause {
            type Type = #ident<#(#arguments),*>;
        }
        #[automatically_derived]
        impl #element_generics #krate::Element for #itself #element_clause {}
    }
}

/// A test that OCaml has as many constructors: how many differs from version to version.
fn limit(shape: &Shape) -> TokenStream {
    let krate = &shape.krate;
    match &shape.kind {
        Kind::Variants(variants) => {
            let count = variants.iter().filter(|variant| !variant.fields.is_empty()).count();
            // So many are in every version.
            if count <= 200 {
                return quote!();
            }
            quote! {
                const {
                    ::core::assert!(
                        #count <= #krate::derive::CONSTRUCTORS,
                        "a type of OCaml has at most 244 constructors with arguments (with OCaml 4, 246)"
                    )
                }
            }
        }
        _ => quote!(),
    }
}

fn bounds_naming(shape: &Shape, bounds: &TokenStream) -> (TokenStream, TokenStream) {
    let mut generics = shape.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.default = None;
        }
    }
    let clause = generics.make_where_clause();
    for parameter in shape.type_parameters() {
        let bounds: TokenStream = bounds
            .clone()
            .into_iter()
            .map(|token| match token {
                proc_macro2::TokenTree::Ident(ident) if ident == "Self_" => parameter.clone().into(),
                token => token,
            })
            .collect();
        clause.predicates.push(syn::parse_quote!(#parameter: #bounds));
    }
    let (parameters, _, clause) = generics.split_for_impl();
    (parameters.into_token_stream(), clause.into_token_stream())
}

/// An expression: what stands behind the name of the type.
fn body(shape: &Shape, api: &TokenStream) -> TokenStream {
    let krate = &shape.krate;
    let describe = |field: &Field| {
        let ty = &field.ty;
        let span = at(field.span);
        quote_spanned!(span=> <<#ty as #krate::Typed>::Type as #krate::OCamlType>::describe)
    };
    let record = |fields: &[Field]| {
        let rows = fields.iter().map(|field| {
            let (name, doc, mutable, describe) = (&field.name, &field.doc, field.mutable, describe(field));
            quote!((#mutable, #name, #describe, #doc))
        });
        quote!(&[#(#rows),*])
    };
    let rows = |variants: &[Variant], mark: &str| {
        let rows = variants.iter().map(|variant| {
            let (name, doc) = (format!("{mark}{}", variant.name), &variant.doc);
            let arguments = if variant.named {
                let record = record(&variant.fields);
                quote!(#api::Arguments::Record(#record))
            } else {
                let each = variant.fields.iter().map(describe);
                quote!(#api::Arguments::Tuple(&[#(#each),*]))
            };
            quote!((#name, #arguments, #doc))
        });
        quote!(&[#(#rows),*])
    };
    match &shape.kind {
        Kind::Record(fields) => {
            let record = record(fields);
            quote!(#api::Body::Record(#record))
        }
        Kind::Variants(variants) => {
            let rows = rows(variants, "");
            quote!(#api::Body::Variants(#rows))
        }
        Kind::Polymorphic(variants) => {
            let rows = rows(variants, "`");
            quote!(#api::Body::Polymorphic(#rows))
        }
    }
}

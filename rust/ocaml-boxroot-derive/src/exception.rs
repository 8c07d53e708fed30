// SPDX-License-Identifier: MIT
//! `#[derive(OCamlException)]`: types of errors that are exceptions of OCaml.
use crate::conversions::to_ocaml::pattern;
use crate::shape::{at, constructor, fields, itself, Field, Options, Variant};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned, ToTokens};
use syn::{Data, DeriveInput, Error, Fields, Result};

pub fn expand(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let code = syn::parse::<DeriveInput>(input).and_then(derive);
    code.unwrap_or_else(Error::into_compile_error).into()
}

fn derive(input: DeriveInput) -> Result<TokenStream> {
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new_spanned(parameter, "an exception of OCaml has no parameters"));
    }
    let (place, allowed): (_, &[&str]) = match input.data {
        Data::Enum(_) => ("an enum of exceptions", &["module", "crate"]),
        _ => ("an exception", &["rename", "module", "crate"]),
    };
    let options = Options::new(&input.attrs, allowed, place)?;
    let variants = variants(&input, &options)?;
    if let Some(module) = &options.module {
        crate::names::check_module(module)?;
    }
    let module = match &options.module {
        Some(module) => quote!(::core::option::Option::Some(#module)),
        None => quote!(::core::option::Option::None),
    };
    let krate = options.krate.as_ref().map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
    let api = quote!(#krate::derive);
    let (ident, count) = (&input.ident, variants.len());
    let constructors = variants.iter().map(|variant| declared(variant, &module, &krate));
    let which = variants.iter().enumerate().map(|(i, variant)| {
        let path = &variant.path;
        quote!(#path { .. } => #i)
    });
    let words = variants.iter().map(|variant| {
        let (names, pattern) = pattern(variant);
        let size = names.len();
        quote!(#pattern => 2 + #size #(+ #krate::ToOCaml::words(#names))*)
    });
    let makes = variants.iter().map(|variant| {
        let (names, pattern) = pattern(variant);
        if names.is_empty() {
            // A constant exception is its constructor.
            return quote!(#pattern => unsafe { ::core::result::Result::Ok(constructor.cast()) });
        }
        let values = variant
            .fields
            .iter()
            .zip(&names)
            .map(|(field, name)| quote_spanned!(at(field.span)=> #krate::ToOCaml::to_ocaml(#name, n)?.raw()));
        quote!(#pattern => unsafe { #api::block(n, 0, [constructor.raw(), #(#values),*]) })
    });
    let reads = variants.iter().enumerate().map(|(i, variant)| {
        let path = &variant.path;
        let values = variant.fields.iter().enumerate().map(|(i, field)| {
            let (member, i) = (&field.member, i + 1);
            quote_spanned!(at(field.span)=> #member: unsafe { #api::field(rt, v, #i) }?)
        });
        quote!(#i => ::core::result::Result::Ok(#path { #(#values),* }))
    });
    let name = ident.to_string();
    let (lists, makes) = match count {
        0 => ((quote!(match *self {}), quote!(match *self {})), quote!(match *self {})),
        _ => (
            (quote!(match self { #(#which,)* }), quote!(match self { #(#words,)* })),
            quote!(match self { #(#makes,)* }),
        ),
    };
    let (which, words) = lists;
    Ok(quote! {
        // SAFETY: the declaration says what the conversions do, which are derived from the same fields.
        #[automatically_derived]
        unsafe impl #krate::OCamlException for #ident {
            fn constructors() -> &'static [#krate::Constructor] {
                static LIST: [#krate::Constructor; #count] = [#(#constructors),*];
                &LIST
            }
            fn which(&self) -> usize {
                #which
            }
            fn words(&self) -> usize {
                #words
            }
            #[allow(unused_variables)]
            unsafe fn make<'ocaml_nursery>(
                &self,
                n: &'ocaml_nursery #krate::Nursery,
                constructor: #krate::Value<'ocaml_nursery, #krate::Any>,
            ) -> ::core::result::Result<#krate::Value<'ocaml_nursery, #krate::Exn>, #krate::ConvertError> {
                #makes
            }
            #[allow(unused_variables)]
            unsafe fn read(
                rt: &#krate::Runtime,
                which: usize,
                v: #krate::Value<'_, #krate::Exn>,
            ) -> ::core::result::Result<Self, #krate::ConvertError> {
                match which {
                    #(#reads,)*
                    _ => ::core::result::Result::Err(#api::not(#name)),
                }
            }
        }
    })
}

fn variants(input: &DeriveInput, options: &Options) -> Result<Vec<Variant>> {
    let this = itself(input);
    let one = |path: TokenStream, name: String, doc: String, list: &Fields| {
        let named = matches!(list, Fields::Named(named) if !named.named.is_empty());
        let fields = fields(list, &this)?;
        if let Some(field) = fields.iter().find(|field| field.mutable) {
            return Err(Error::new(field.span, "an error does not change: its fields are not `mutable`"));
        }
        Ok(Variant { path, name, doc, named, fields })
    };
    match &input.data {
        Data::Struct(data) => {
            let name = constructor(options, &input.ident)?;
            Ok(vec![one(quote!(Self), name, options.doc.clone(), &data.fields)?])
        }
        Data::Enum(data) => {
            let mut list: Vec<Variant> = Vec::new();
            for variant in &data.variants {
                let own = Options::new(&variant.attrs, &["rename"], "a variant")?;
                let (ident, name) = (&variant.ident, constructor(&own, &variant.ident)?);
                if list.iter().any(|other| other.name == name) {
                    return Err(Error::new_spanned(ident, format!("two exceptions are named `{name}`")));
                }
                list.push(one(quote!(Self::#ident), name, own.doc, &variant.fields)?);
            }
            Ok(list)
        }
        Data::Union(data) => Err(Error::new(data.union_token.span, "a union is no exception of OCaml")),
    }
}

/// What is known of a constructor.
fn declared(variant: &Variant, module: &TokenStream, krate: &TokenStream) -> TokenStream {
    let api = quote!(#krate::derive);
    let (name, doc, size) = (&variant.name, &variant.doc, variant.fields.len());
    let labels = variant.fields.iter().map(|field| &field.name).filter(|_| variant.named);
    let text = |field: &Field| {
        let ty = &field.ty;
        quote_spanned!(at(field.span)=> <<#ty as #krate::Typed>::Type as #krate::OCamlType>::describe(to))
    };
    let texts = variant.fields.iter().map(text);
    quote! {
        #krate::Constructor::new(#name, #module, #doc, &[#(#labels),*], #size, |to| {
            let _ = &to;
            <[#api::String]>::into_vec(#api::Box::new([#(#texts),*]))
        })
    }
}

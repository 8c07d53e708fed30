// SPDX-License-Identifier: MIT
//! All functions of an `impl`.
use super::exported::Export;
use super::options::Options;
use crate::function::{comes_next, Function};
use crate::ty::Ty;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{quote, ToTokens};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Generics, Meta, Result, Token};

/// The type of an `impl` without trait.
pub fn type_of(input: ParseStream) -> Result<Ty> {
    input.parse::<Option<Token![unsafe]>>()?;
    input.parse::<Token![impl]>()?;
    let generics = input.parse::<Generics>()?;
    input.parse::<Option<Token![!]>>()?;
    let ty: Ty = input.parse()?;
    if input.peek(Token![for]) {
        return Err(ty.error("methods of traits are not exported: write a function"));
    }
    if let Some(parameter) = generics.params.first() {
        return Err(Error::new_spanned(parameter, "methods of generic types are not exported: write a function"));
    }
    if ty.last_segment().is_none() {
        return Err(ty.error("methods of this type are not exported: write a function"));
    }
    input.parse::<TokenStream>()?;
    Ok(ty)
}

/// The `impl`, with the methods' attributes carried out, and one with what belongs to each.
pub fn expand(options: Options, beginning: TokenStream, ty: &Ty, block: Option<Group>) -> Result<TokenStream> {
    if options.name.is_some() || options.symbol.is_some() || options.noalloc {
        return Err(ty.error("this option stands in front of a method"));
    }
    let krate = options.krate();
    let name = ty.last_segment().unwrap_or_default();
    let owner = (ty, name.trim_start_matches("r#"));
    let mut functions = Vec::new();
    let stream = block.as_ref().map(Group::stream).unwrap_or_default();
    let rest = (|input: ParseStream| items(input, &mut functions)).parse2(stream)?;
    let mut consts = TokenStream::new();
    for (function, options) in functions {
        consts.extend(Export::new(&function, options, Some(owner), krate.clone())?.item(&function));
    }
    let mut body = Group::new(Delimiter::Brace, rest);
    if let Some(block) = block {
        body.set_span(block.span());
    }
    Ok(quote! {
        #beginning #body
        impl #ty { #consts }
    })
}

/// The items without our attributes; the functions among them with the attributes' options.
fn items(input: ParseStream, functions: &mut Vec<(Function, Options)>) -> Result<TokenStream> {
    let mut rest = TokenStream::new();
    while !input.is_empty() {
        let (mut options, mut attributes) = (Options::default(), Vec::new());
        for attribute in input.call(Attribute::parse_outer)? {
            if !attribute.path().is_ident("export") {
                attribute.to_tokens(&mut rest);
                attributes.push(attribute);
            } else if !matches!(attribute.meta, Meta::Path(_)) {
                options = attribute.parse_args()?;
            }
        }
        let ahead = input.fork();
        let vis = ahead.parse()?;
        let is_function = comes_next(&ahead);
        if is_function {
            let signature = ahead.parse()?;
            functions.push((Function { attributes, vis, signature }, options));
            while input.cursor() != ahead.cursor() {
                input.parse::<TokenTree>()?.to_tokens(&mut rest);
            }
        }
        // Up to a block or a semicolon; behind an equals sign, up to a semicolon.
        let (mut end, mut value) = (false, false);
        while !end && !input.is_empty() {
            let tree = input.parse::<TokenTree>()?;
            end = match &tree {
                TokenTree::Punct(punct) => {
                    value |= punct.as_char() == '=' && !is_function;
                    punct.as_char() == ';'
                }
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !value,
                _ => false,
            };
            tree.to_tokens(&mut rest);
        }
    }
    Ok(rest)
}

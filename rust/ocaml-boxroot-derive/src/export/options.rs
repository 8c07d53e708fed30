// SPDX-License-Identifier: MIT
//! What stands in `#[export(…)]`.
use proc_macro2::{Span, TokenStream};
use quote::{quote, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::{parenthesized, Error, Ident, LitStr, Path, Result, Token};

/// `#[export(name = "…", noalloc, unsafe(symbol = "…"), unsafe(static), crate = path)]`
#[derive(Default)]
pub struct Options {
    pub name: Option<LitStr>,
    pub symbol: Option<LitStr>,
    pub noalloc: bool,
    /// With `unsafe(static)`: type parameters may be `'static`.
    pub mixing: bool,
    /// Where `unsafe` stands.
    pub promise: Option<Span>,
    pub krate: Option<Path>,
}

impl Options {
    /// Where `ocaml_boxroot` is.
    pub fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::ocaml_boxroot), ToTokens::to_token_stream)
    }
}

impl Parse for Options {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = Some(crate::names::crate_path(input)?);
            } else if input.peek(Token![unsafe]) {
                let word = input.parse::<Token![unsafe]>()?;
                let list;
                parenthesized!(list in input);
                if list.peek(Token![static]) {
                    list.parse::<Token![static]>()?;
                    options.mixing = true;
                } else {
                    let key: Ident = list.parse()?;
                    if key != "symbol" {
                        return Err(Error::new(key.span(), "this is `static` or `symbol = …`"));
                    }
                    options.symbol = Some(name(&list, "")?);
                }
                options.promise = Some(word.span);
            } else {
                let key: Ident = input.parse()?;
                if key == "noalloc" {
                    options.noalloc = true;
                } else if key == "name" {
                    options.name = Some(name(input, "'")?);
                } else if key == "symbol" {
                    let message = "another function of this name would be replaced, if it is one of the C library or \
                                   of another crate: write `unsafe(symbol = …)`";
                    return Err(Error::new(key.span(), message));
                } else {
                    let message = "an option of `export` is `name = …`, `noalloc`, `unsafe(symbol = …)`, \
                                   `unsafe(static)` or `crate = …`";
                    return Err(Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// Behind a key: the name, in which these characters may be too.
fn name(input: ParseStream, more: &str) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    let text: LitStr = input.parse()?;
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(c);
    match !text.value().is_empty() && text.value().chars().all(legal) {
        true => Ok(text),
        false => Err(Error::new(text.span(), "not a name")),
    }
}

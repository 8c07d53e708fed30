// SPDX-License-Identifier: MIT
//! What stands in `#[export(…)]`.
use proc_macro2::{Span, TokenStream};
use quote::{quote, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::{parenthesized, Error, Ident, LitStr, Path, Result, Token};

/// `#[export(name = "…", symbol = "…", noalloc, unsafe(static), crate = path)]`
#[derive(Default)]
pub struct Options {
    pub name: Option<LitStr>,
    pub symbol: Option<LitStr>,
    pub noalloc: bool,
    /// Of `unsafe(static)`: type parameters may be `'static`.
    pub mixing: Option<Span>,
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
                list.parse::<Token![static]>()?;
                options.mixing = Some(word.span);
            } else {
                let key: Ident = input.parse()?;
                if key == "noalloc" {
                    options.noalloc = true;
                } else if key == "name" || key == "symbol" {
                    input.parse::<Token![=]>()?;
                    let text: LitStr = input.parse()?;
                    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '\'' && key == "name");
                    // As far as they can be known.
                    let others = ["caml_", "boxroot", "bxr_", "obx_", "outheap"];
                    if key == "symbol" && others.iter().any(|other| text.value().starts_with(other)) {
                        let message = "names that begin like this are those of OCaml's runtime and of this library";
                        return Err(Error::new(text.span(), message));
                    }
                    if text.value().is_empty() || !text.value().chars().all(legal) {
                        return Err(Error::new(text.span(), "not a name"));
                    }
                    *(if key == "name" { &mut options.name } else { &mut options.symbol }) = Some(text);
                } else {
                    let message =
                        "an option of `export` is `name = …`, `symbol = …`, `noalloc`, `unsafe(static)` or `crate = …`";
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

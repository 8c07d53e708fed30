// SPDX-License-Identifier: MIT
//! `library!`: the list of what a library exports and imports, and the C functions that its OCaml text calls.
use crate::text::conditions;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned, ToTokens};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{bracketed, Attribute, Error, Ident, LitStr, Path, Result, Token};

struct Library {
    attributes: Vec<Attribute>,
    name: LitStr,
    exports: Vec<Listed>,
    imports: Vec<Listed>,
    exceptions: Vec<Listed>,
    krate: Option<Path>,
}

/// What a list has, with the conditions in front of it.
struct Listed {
    conditions: TokenStream,
    path: Path,
}

impl Parse for Listed {
    fn parse(input: ParseStream) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        if let Some(other) = attributes.iter().find(|attribute| !attribute.path().is_ident("cfg")) {
            return Err(Error::new_spanned(other, "the attribute of a list is `cfg`"));
        }
        Ok(Listed { conditions: conditions(&attributes), path: input.call(Path::parse_mod_style)? })
    }
}

impl Parse for Library {
    fn parse(input: ParseStream) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let (mut name, mut krate) = (None::<LitStr>, None);
        let (mut exports, mut imports, mut exceptions) = (Vec::new(), Vec::new(), Vec::new());
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                krate = Some(crate::names::crate_path(input)?);
            } else {
                let key: Ident = input.parse()?;
                input.parse::<Token![=]>()?;
                match &*key.to_string() {
                    "name" => name = Some(input.parse()?),
                    "exports" => exports = paths(input)?,
                    "imports" => imports = paths(input)?,
                    "exceptions" => exceptions = paths(input)?,
                    _ => {
                        let message = "this is `name`, `exports`, `imports`, `exceptions` or `crate`";
                        return Err(Error::new(key.span(), message));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let name = name.ok_or_else(|| input.error("`name = \"…\"` is missing: the name of the OCaml module"))?;
        let text = name.value();
        let first = text.chars().next().is_some_and(|c| c.is_ascii_lowercase());
        if !first || !text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return Err(Error::new(name.span(), "the name of a file `NAME.ml`: small letters, digits and underscores"));
        }
        Ok(Library { attributes, name, exports, imports, exceptions, krate })
    }
}

fn paths(input: ParseStream) -> Result<Vec<Listed>> {
    let list;
    bracketed!(list in input);
    Ok(Punctuated::<Listed, Token![,]>::parse_terminated(&list)?.into_iter().collect())
}

pub fn expand(input: TokenStream) -> TokenStream {
    let library = match syn::parse2::<Library>(input) {
        Ok(library) => library,
        Err(error) => return error.to_compile_error(),
    };
    let krate = library.krate.map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
    let api = quote!(#krate::export);
    let name = library.name.value();
    let doc = crate::text::documentation(&library.attributes);
    let exports = library.exports.into_iter().map(|Listed { conditions, mut path }| {
        if let Some(last) = path.segments.last_mut() {
            last.ident =
                format_ident!("__ocaml_export_{}", crate::text::ident_text(&last.ident), span = last.ident.span());
        }
        quote!(#conditions #path)
    });
    let imports = library.imports.iter().map(|Listed { conditions, path }| quote!(#conditions #path::__OCAML_IMPORTS));
    let declared = library.exceptions.iter().map(|Listed { conditions, path }| {
        let span = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
        let listed = quote_spanned!(Span::call_site().located_at(span)=> #api::ExceptionType::new::<#path>());
        quote!(#conditions #listed)
    });
    let [text, check, register, exceptions] =
        ["text", "check", "register", "exceptions"].map(|function| format!("{name}_ocaml_{function}"));
    let function = |ident: &str, symbol: &str, call: TokenStream| {
        let ident = format_ident!("{ident}");
        quote! {
            #[export_name = #symbol]
            unsafe extern "C" fn #ident(word: isize) -> isize {
                let words = unsafe { #api::Words::new([word]) };
                match unsafe { #api::run(move |lock| #call) } {
                    ::core::result::Result::Ok(result) => result,
                    ::core::result::Result::Err(raised) => unsafe { raised.raise() },
                }
            }
        }
    };
    let text = function("text", &text, quote!(#api::text(lock, &LIBRARY, words)));
    let table = |ident: &str, symbol: &str, which: &str| {
        let which = format_ident!("{which}");
        function(ident, symbol, quote!(#api::check(lock, &LIBRARY, words, #api::Table::#which)))
    };
    let check = table("check", &check, "Check");
    let register = table("register", &register, "Register");
    let exceptions = (!library.exceptions.is_empty()).then(|| table("exceptions", &exceptions, "Exceptions"));
    quote! {
        const _: () = {
            static LIBRARY: #api::Library = #api::Library {
                name: #name,
                doc: #doc,
                exports: &[#(#exports),*],
                imports: &[#(#imports),*],
                exceptions: &[#(#declared),*],
            };
            #text
            #check
            #register
            #exceptions
        };
    }
}

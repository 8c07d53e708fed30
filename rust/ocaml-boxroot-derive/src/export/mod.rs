// SPDX-License-Identifier: MIT
//! `#[export]`: a wrapper for each function, in C's calling convention, and its description for the OCaml text.
//!
//! The user's tokens stay as they are; types and names of the user's never stand inside `unsafe`, so that crates which
//! forbid unsafe code can use the macro. What is wrong with a type is said where the type stands.
mod argument;
mod body;
mod describe;
mod exported;
mod methods;
mod options;
mod wrapper;

use crate::function::{self, Function};
use crate::ty::Ty;
use exported::Export;
use options::Options;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Result, Token, Visibility};

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (beginning, block) = function::split_block(item.clone());
    let code = syn::parse2::<Options>(arguments).and_then(|options| match parse.parse2(beginning.clone())? {
        Item::Function(function) => {
            let krate = options.krate();
            let export = Export::new(&function, options, None, krate)?.item(&function);
            Ok(quote!(#item #export))
        }
        Item::Methods(ty) => methods::expand(options, beginning, &ty, block),
    });
    code.unwrap_or_else(|error| [item, error.into_compile_error()].into_iter().collect())
}

/// What the attribute stands in front of.
enum Item {
    Function(Box<Function>),
    /// All functions of an `impl` for this type.
    Methods(Ty),
}

fn parse(input: ParseStream) -> Result<Item> {
    let attributes = input.call(Attribute::parse_outer)?;
    let vis: Visibility = input.parse()?;
    if function::comes_next(input) {
        let signature = input.parse()?;
        Ok(Item::Function(Box::new(Function { attributes, vis, signature })))
    } else if input.peek(Token![impl]) || input.peek2(Token![impl]) {
        methods::type_of(input).map(Item::Methods)
    } else {
        let message = "`export` stands in front of a function, or of an `impl` without a trait";
        Err(Error::new(Span::call_site(), message))
    }
}

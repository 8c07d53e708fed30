// SPDX-License-Identifier: MIT
//! Arguments, and types that pass as a word or a float.
use crate::ty::Ty;
use proc_macro2::TokenStream;
use quote::{quote_spanned, ToTokens};
use syn::{Error, Ident, Result};

/// What the first parameter says.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Pure,
    Read,
    Write,
}

/// `&Runtime`, `&mut Runtime`, or neither.
pub fn runtime_kind(ty: &Ty) -> Kind {
    match ty.reference() {
        Some((mutable, behind)) if behind.last_segment().is_some_and(|name| name == "Runtime") => match mutable {
            Some(_) => Kind::Write,
            None => Kind::Read,
        },
        _ => Kind::Pure,
    }
}

pub struct Argument {
    /// Without the names of lifetimes.
    pub ty: Ty,
    /// A number or truth value, by its name.
    pub plain: bool,
    /// `&str` and `&[T]` where the runtime may collect: the owned type that is lent.
    pub owned: Option<TokenStream>,
    /// `&T`, a Rust value that OCaml owns.
    pub payload: Option<Ty>,
    /// Its type mentions a type parameter of the function.
    pub generic: bool,
}

impl Argument {
    pub fn new(ty: Ty, kind: Kind, api: &TokenStream, variables: &[&Ident]) -> Result<Argument> {
        if kind == Kind::Write && ty.last_segment().is_some_and(|name| name == "Value") {
            let message =
                "this function takes `&mut Runtime`, so it may run the collector, which moves or frees values \
                           that are not rooted: write `ValueRef<'_, T>` or `Root<T>` in place of `Value<'_, T>`";
            return Err(ty.error(message));
        }
        if kind == Kind::Write && ty.borrows_inside() {
            let message = "this function takes `&mut Runtime`, so it may run the collector, which moves what is \
                           borrowed here: write `String` for `&str`, `Vec<u8>` for `&[u8]`, `Root<T>` for \
                           `Value<'_, T>`, or `ValueRef<'_, T>` for the whole";
            return Err(ty.error(message));
        }
        let plain = is_plain(&ty);
        let (mut owned, mut payload) = (None, None);
        if let Some((mutable, behind)) = ty.reference() {
            let name = behind.last_segment();
            let text = name.as_ref().is_some_and(|name| name == "str");
            if kind == Kind::Write && mutable.is_none() {
                if text {
                    owned = Some(quote_spanned!(ty.span()=> #api::String));
                } else if let Some(element) = behind.slice() {
                    owned = Some(quote_spanned!(ty.span()=> #api::Vec<#element>));
                }
            }
            if behind.is_path() && !text && name.is_none_or(|name| name != "ValueCell") {
                if let Some(word) = mutable {
                    return Err(Error::new(word.span(), "OCaml shares its values: take `&T`"));
                }
                payload = Some(behind);
            }
        }
        let generic = variables.iter().any(|name| ty.mentions(name));
        Ok(Argument { ty, plain, owned, payload, generic })
    }

    /// What is converted.
    pub fn source(&self) -> TokenStream {
        self.owned.clone().unwrap_or_else(|| self.ty.to_token_stream())
    }
}

const INTEGERS: &[&str] = &["i8", "i16", "i32", "u8", "u16", "u32", "i64", "u64", "isize", "usize"];

/// A type that passes as a word or a float. If the name means something else here, the wrapper does not compile.
pub fn is_plain(ty: &Ty) -> bool {
    ty.name().is_some_and(|name| name == "f64" || name == "bool" || name == "()" || INTEGERS.contains(&&*name))
}

pub fn is_unboxed(ty: &Ty) -> bool {
    ty.name().is_some_and(|name| name == "f64" || INTEGERS.contains(&&*name))
}

/// Integers of up to 32 bits fit in an OCaml `int`; others are checked, and leave as values.
pub fn is_unboxed_result(ty: &Ty) -> bool {
    ty.name().is_some_and(|name| name == "f64" || INTEGERS[..6].contains(&&*name))
}

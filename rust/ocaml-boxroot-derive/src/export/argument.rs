// SPDX-License-Identifier: MIT
//! Arguments, and types that pass as a word or a float.
use super::signature::{last_segment, Kind};
use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Error, Ident, Result, Type};

pub struct Argument {
    /// Without the names of lifetimes.
    pub ty: Type,
    /// A number or truth value, by its name.
    pub plain: bool,
    /// `&str` and `&[T]` where the runtime may collect: the owned type that is lent.
    pub owned: Option<TokenStream>,
    /// `&T`, a Rust value that OCaml owns.
    pub payload: Option<Type>,
}

impl Argument {
    pub fn new(ty: Type, kind: Kind, api: &TokenStream) -> Result<Argument> {
        if kind == Kind::Write && last_segment(&ty).is_some_and(|name| name == "Value") {
            let message =
                "this function takes `&mut Runtime`, so it may run the collector, which moves or frees values \
                           that are not rooted: write `ValueRef<'_, T>` or `Root<T>` in place of `Value<'_, T>`";
            return Err(Error::new_spanned(ty, message));
        }
        let plain = is_plain(&ty);
        let owned = match &ty {
            Type::Reference(reference) if kind == Kind::Write && reference.mutability.is_none() => {
                match &*reference.elem {
                    elem if last_segment(elem).is_some_and(|name| name == "str") => {
                        Some(quote_spanned!(ty.span()=> #api::String))
                    }
                    Type::Slice(slice) => {
                        let elem = &slice.elem;
                        Some(quote_spanned!(ty.span()=> #api::Vec<#elem>))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let payload = match &ty {
            Type::Reference(reference) => match &*reference.elem {
                Type::Path(path) if !last_segment(&reference.elem).is_some_and(|n| n == "str" || n == "ValueCell") => {
                    if let Some(token) = &reference.mutability {
                        return Err(Error::new_spanned(token, "OCaml shares its values: take `&T`"));
                    }
                    Some(Type::Path(path.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        Ok(Argument { ty, plain, owned, payload })
    }
}

const INTEGERS: &[&str] = &["i8", "i16", "i32", "u8", "u16", "u32", "i64", "u64", "isize", "usize"];

fn primitive(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(Ident::to_string),
        Type::Tuple(tuple) if tuple.elems.is_empty() => Some("()".into()),
        _ => None,
    }
}

/// A type that passes as a word or a float. If the name means something else here, the wrapper does not compile.
pub fn is_plain(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || name == "bool" || name == "()" || INTEGERS.contains(&&*name))
}

pub fn is_unboxed(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || INTEGERS.contains(&&*name))
}

/// Integers of up to 32 bits fit in an OCaml `int`; others are checked, and leave as values.
pub fn is_unboxed_result(ty: &Type) -> bool {
    primitive(ty).is_some_and(|name| name == "f64" || INTEGERS[..6].contains(&&*name))
}

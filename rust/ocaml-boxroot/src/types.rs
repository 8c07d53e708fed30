// SPDX-License-Identifier: MIT
//! Descriptors of OCaml types: the parameter of values, places and roots. They have no values of their own.
use crate::{Definitions, Element, OCamlType, Typed};
use alloc::string::String;
use core::marker::PhantomData;

macro_rules! descriptors {
    ($($(#[$doc:meta])* $name:ident $(<$($p:ident),+>)?;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name $(<$($p),+>)? { _none: core::convert::Infallible, $(_of: PhantomData<($(fn($p) -> $p,)+)>,)? }
    )*}
}

descriptors! {
    /// Unknown: every access is checked.
    Any;
    /// `unit`
    Unit;
    /// `int`
    Int;
    /// `bool`
    Bool;
    /// `float`
    Float;
    /// `string`
    Str;
    /// `bytes`
    Bytes;
    /// `exn`
    Exn;
    /// `'a list`
    List<A>;
    /// `'a array`
    Array<A>;
    /// `'a option`
    Opt<A>;
    /// `'a ref`
    Ref<A>;
    /// `'a Atomic.t`
    Atomic<A>;
    /// `a -> b -> r` is `Fun<(A, B), R>`.
    Fun<A, R>;
}

macro_rules! named {
    ($($t:ident $name:literal $float:literal;)*) => {$(
        // SAFETY: OCaml's own type; the only one that is `float` says so.
        unsafe impl OCamlType for $t {
            const FLOAT: bool = $float;
            fn describe(_: &mut Definitions) -> String {
                $name.into()
            }
        }
        impl Typed for $t {
            type Type = Self;
        }
        impl Element for $t {}
    )*}
}
named! {
    Any "Obj.t" false;
    Unit "unit" false;
    Int "int" false;
    Bool "bool" false;
    Float "float" true;
    Str "string" false;
    Bytes "bytes" false;
    Exn "exn" false;
}

macro_rules! applied {
    ($($t:ident $name:literal)*) => {$(
        // SAFETY: OCaml's own type, which is not `float`.
        unsafe impl<A: OCamlType> OCamlType for $t<A> {
            fn describe(to: &mut Definitions) -> String {
                alloc::format!("{} {}", A::describe(to), $name)
            }
        }
        impl<A: Typed> Typed for $t<A> {
            type Type = $t<A::Type>;
        }
        impl<A> Element for $t<A> {}
    )*}
}
applied! { List "list" Array "array" Opt "option" Ref "ref" Atomic "Atomic.t" }

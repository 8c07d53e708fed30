// SPDX-License-Identifier: MIT
//! Descriptors of OCaml types: the parameter of values, places and roots. They have no values of their own.
use crate::{Definitions, OCamlType};
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
    ($($t:ident $name:literal)*) => {$(
        impl OCamlType for $t {
            fn describe(_: &mut Definitions) -> String {
                $name.into()
            }
        }
    )*}
}
named! { Any "Obj.t" Unit "unit" Int "int" Bool "bool" Float "float" Str "string" Bytes "bytes" Exn "exn" }

macro_rules! applied {
    ($($t:ident $name:literal)*) => {$(
        impl<A: OCamlType> OCamlType for $t<A> {
            fn describe(to: &mut Definitions) -> String {
                alloc::format!("{} {}", A::describe(to), $name)
            }
        }
    )*}
}
applied! { List "list" Array "array" Opt "option" Ref "ref" Atomic "Atomic.t" }

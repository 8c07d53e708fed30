// SPDX-License-Identifier: MIT
//! Descriptors of OCaml types: the parameter of values, places and roots. Some have values of their own, which are
//! converted: `Int64(5)` is a number that is an `int64` in OCaml, `List(vec)` a vector that is a list.
use crate::{Definitions, Element, OCamlType, Typed};
use alloc::string::String;
use alloc::vec::Vec;
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
    /// `Uchar.t`
    Uchar;
    /// `exn`
    Exn;
    /// `'a array`
    Array<A>;
    /// `'a option`
    Opt<A>;
    /// `('a, 'e) result`
    Res<A, E>;
    /// `'a ref`
    Ref<A>;
    /// `'a Atomic.t`
    Atomic<A>;
    /// `'a Lazy.t`
    Lazy<A>;
    /// `a -> b -> r` is `Fun<(A, B), R>`.
    Fun<A, R>;
}

/// `char`, and a value of it: a byte. (A Rust `char` is a `Uchar.t` in OCaml.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Char(pub u8);

/// `int32`, and a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Int32(pub i32);

/// `int64`, and a value of it. (An `i64` is an `int` in OCaml.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Int64(pub i64);

/// `nativeint`, and a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nativeint(pub isize);

/// `bytes`, and a value of it. (A `Vec<u8>` is a `string` in OCaml.)
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

/// `floatarray`, and a value of it. (A `Vec<f64>` is a `float array` in OCaml.)
#[derive(Debug, Clone, PartialEq, PartialOrd, Default)]
pub struct FloatArray(pub Vec<f64>);

/// `'a list`, and a value of it. (A `Vec` is an array in OCaml.)
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<A>(pub Vec<A>);

// Modules of OCaml's own are written with `Stdlib.`, since a project may have modules of the same names.
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
    Any "Stdlib.Obj.t" false;
    Unit "unit" false;
    Int "int" false;
    Bool "bool" false;
    Float "float" true;
    Str "string" false;
    Uchar "Stdlib.Uchar.t" false;
    Char "char" false;
    Int32 "int32" false;
    Int64 "int64" false;
    Nativeint "nativeint" false;
    Bytes "bytes" false;
    FloatArray "floatarray" false;
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
applied! { List "list" Array "array" Opt "option" Ref "ref" Atomic "Stdlib.Atomic.t" Lazy "Stdlib.Lazy.t" }

// SAFETY: OCaml's own type, which is not `float`.
unsafe impl<A: OCamlType, E: OCamlType> OCamlType for Res<A, E> {
    fn describe(to: &mut Definitions) -> String {
        alloc::format!("({}, {}) result", A::describe(to), E::describe(to))
    }
}
impl<A: Typed, E: Typed> Typed for Res<A, E> {
    type Type = Res<A::Type, E::Type>;
}
impl<A, E> Element for Res<A, E> {}

/// Calls `$m!` with the names and numbers of tuples' components.
macro_rules! for_tuples {
    ($m:ident) => {
        $m! { A 0, B 1 }
        $m! { A 0, B 1, C 2 }
        $m! { A 0, B 1, C 2, D 3 }
        $m! { A 0, B 1, C 2, D 3, E 4 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10 }
        $m! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11 }
    };
}
pub(crate) use for_tuples;

macro_rules! functions {
    ($($t:ident $i:tt),+) => {
        // SAFETY: OCaml's own type, which is not `float`.
        unsafe impl<$($t: OCamlType,)+ Result: OCamlType> OCamlType for Fun<($($t,)+), Result> {
            fn describe(to: &mut Definitions) -> String {
                let mut text = String::from("(");
                $(text.push_str(&$t::describe(to)); text.push_str(" -> ");)+
                text.push_str(&Result::describe(to));
                text.push(')');
                text
            }
        }
        impl<$($t: Typed,)+ Result: Typed> Typed for Fun<($($t,)+), Result> {
            type Type = Fun<($($t::Type,)+), Result::Type>;
        }
    };
}
functions! { A 0 }
for_tuples! { functions }
impl<A, R> Element for Fun<A, R> {}

macro_rules! tuples {
    ($first:ident 0, $($t:ident $i:tt),+) => {
        // SAFETY: OCaml's own type, which is not `float`.
        unsafe impl<$first: OCamlType, $($t: OCamlType),+> OCamlType for ($first, $($t),+) {
            fn describe(to: &mut Definitions) -> String {
                let mut text = String::from("(");
                text.push_str(&$first::describe(to));
                $(text.push_str(" * "); text.push_str(&$t::describe(to));)+
                text.push(')');
                text
            }
        }
        impl<$first: Typed, $($t: Typed),+> Typed for ($first, $($t),+) {
            type Type = ($first::Type, $($t::Type),+);
        }
        impl<$first, $($t),+> Element for ($first, $($t),+) {}
    };
}
for_tuples! { tuples }

// SPDX-License-Identifier: MIT
//! Descriptors of OCaml types: the parameter of values, places and roots. They have no values of their own.
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

// SPDX-License-Identifier: MIT
//! Descriptors of OCaml types: the parameter of values, places and roots. Some have values of their own, which are
//! converted: `Int64(5)` is a number that is an `int64` in OCaml, `List(vec)` a vector that is a list.
use crate::describe::apply;
use crate::{DefinitionSite, Definitions, Element, OCamlType, Typed};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

macro_rules! descriptors {
    ($($(#[$doc:meta])* $name:ident $(<$($p:ident),+>)?;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

// --- type variables

/// A type parameter of an exported function, where the function has to know that it is one: it stands for any type of
/// OCaml, another one in each call.
///
/// ```
/// # use ocaml_boxroot::prelude::*;
/// struct Cell<A>(Root<A>);
/// ocaml_abstract! { Cell<A> = "cell"; }
/// #[export]
/// fn create<A: TypeVar>(rt: &mut Runtime, v: Root<A>) -> ValueGuard<'_, Boxed<Cell<A>>> {
///     rt.boxed_erased(Cell(v))
/// }
/// #[export]
/// fn get<A: TypeVar>(rt: &Runtime, cell: &Cell<A>) -> Root<A> {
///     cell.0.clone_ref(rt)
/// }
/// # library! { name = "cells", exports = [create, get] }
/// ```
///
/// An exported function is compiled once, for a type of which its code knows nothing but this trait: so what came in
/// as `A` can go out as `A` in the same call, or as part of a payload whose type says `A`, and in no other way. With a
/// bound `'static` it could also be kept in a static, by its type's identifier, which is the same for each `A`.
// Only `Erased` implements it. That it is `'static` must not be seen.
pub trait TypeVar: OCamlType + Typed<Type = Self> + Element + sealed::TypeVar {}

mod sealed {
    pub trait TypeVar {}
}

/// What exported functions are compiled for, in place of their type parameters. It has no values, and no name in OCaml:
/// a type with it cannot be described, so it is of no use outside of such functions.
#[doc(hidden)]
#[derive(Debug)]
pub enum Erased {}

impl TypeVar for Erased {}
impl sealed::TypeVar for Erased {}

// SAFETY: it is refused.
unsafe impl OCamlType for Erased {
    fn describe(to: &mut Definitions) -> String {
        to.refuse("a type variable stands where no function is generic".into());
        "_".into()
    }
}
impl Typed for Erased {
    type Type = Self;
}
impl Element for Erased {}

// --- abstract types

/// A Rust type that is an abstract type in OCaml, whose values OCaml owns as [`Boxed`](crate::Boxed). It is implemented
/// by [`ocaml_abstract!`](crate::ocaml_abstract), without unsafe code.
///
/// A generic Rust type is as many types at run time as it has instances, and each value belongs to one of them.
/// Exported functions that are generic for OCaml make and take values of one more, by
/// [`boxed_erased`](crate::Runtime::boxed_erased): no value belongs to both kinds.
///
/// # Safety
/// `PARAMETERS` are the descriptions of all type parameters of `Self`, so that OCaml takes values of different
/// instances for values of different types. The site belongs to this implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no name in OCaml",
    note = "give it one by `ocaml_abstract!`, so that `Boxed<{Self}>` is an abstract type of OCaml"
)]
pub unsafe trait OCamlAbstract {
    /// Its name in OCaml.
    const NAME: &'static str;

    /// The documentation comment of the definition, or nothing.
    const DOC: &'static str = "";

    /// The parameters, in the order of the definition.
    const PARAMETERS: &'static [fn(&mut Definitions) -> String];

    /// What tells the definition from others.
    fn site() -> &'static DefinitionSite;
}

/// A Rust type with parameters that OCaml owns, where the parameters are those of an exported function: see
/// [`boxed_erased`](crate::Runtime::boxed_erased). It is implemented by [`ocaml_abstract!`](crate::ocaml_abstract).
///
/// # Safety
/// `Self` is `Whole` where all parameters are what exported functions are compiled for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of `ocaml_abstract!` whose parameters are those of an exported function",
    note = "the parameters have the bound `TypeVar`, and nothing else; other payloads are made by `boxed`"
)]
pub unsafe trait OCamlErasable: OCamlAbstract {
    /// The type for which the code is compiled.
    #[doc(hidden)]
    type Whole: Send + Sync + 'static;
}

/// What values of `boxed_erased` and `inline_erased` are at run time: of a type that nobody else can name, so that
/// they cannot be asked for with types that they may not have.
// ERASED: E is the `Whole` of some OCamlErasable.
#[repr(transparent)]
pub(crate) struct ErasedPayload<E>(E);

impl<E> ErasedPayload<E> {
    pub(crate) fn new<T: OCamlErasable<Whole = E>>(t: T) -> Self {
        const {
            assert!(size_of::<T>() == size_of::<E>() && align_of::<T>() == align_of::<E>());
        }
        let t = core::mem::ManuallyDrop::new(t);
        // SAFETY: ERASED: T is E.
        ErasedPayload(unsafe { core::mem::transmute_copy::<T, E>(&t) })
    }

    pub(crate) fn get<T: OCamlErasable<Whole = E>>(&self) -> &T {
        // SAFETY: ERASED: T is E.
        unsafe { &*core::ptr::from_ref(&self.0).cast() }
    }
}

/// Gives Rust types that OCaml owns their names in OCaml: see [`Boxed`](crate::Boxed). Parameters are parameters in
/// OCaml too.
///
/// ```
/// # #![forbid(unsafe_code)]
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// struct Counter(std::sync::atomic::AtomicUsize);
/// struct Queue<A>(std::sync::Mutex<Vec<Root<A>>>);
/// ocaml_abstract! {
///     Counter = "counter";
///     /// First in, first out.
///     Queue<A> = "queue";
/// }
/// type Jobs = Boxed<Queue<ocaml::List<Int>>>;
/// assert_eq!(Jobs::describe(&mut ocaml::Definitions::new()), "int list queue");
/// ```
#[macro_export]
macro_rules! ocaml_abstract {
    ($($(#[doc = $doc:literal])* $t:ident $(<$($p:ident),+ $(,)?>)? = $name:literal;)*) => {$(
        // SAFETY: the parameters are those of the type.
        unsafe impl $(<$($p: $crate::OCamlType),+>)? $crate::OCamlAbstract for $t $(<$($p),+>)? {
            const NAME: &'static str = $name;
            const DOC: &'static str = ::core::concat!($($doc, "\n",)*);
            const PARAMETERS: &'static [fn(&mut $crate::Definitions) -> $crate::TypeText] =
                &[$($(<$p as $crate::OCamlType>::describe),+)?];
            fn site() -> &'static $crate::DefinitionSite {
                static SITE: $crate::DefinitionSite = $crate::DefinitionSite::new(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!($t)),
                );
                &SITE
            }
        }
        $($crate::__ocaml_erasable! { $t $($p)+ })?
    )*};
}

/// `OCamlErasable` for a type with parameters.
#[doc(hidden)]
#[macro_export]
macro_rules! __ocaml_erasable {
    ($t:ident $($p:ident)+) => {
        // SAFETY: the parameters are type variables, all of which are `Erased`.
        unsafe impl<$($p: $crate::TypeVar),+> $crate::OCamlErasable for $t<$($p),+> {
            type Whole = $t<$($crate::__ocaml_erased!($p)),+>;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ocaml_erased {
    ($p:ident) => {
        $crate::export::Erased
    };
}

/// Whether it can be the name of a type that a library defines.
pub(crate) fn is_type_name(name: &str) -> bool {
    let taken =
        "_ and as assert asr begin class constraint do done downto effect else end exception external false for \
                 fun function functor if in include inherit initializer land lazy let lor lsl lsr lxor match method \
                 mod module mutable new nonrec object of open or private rec sig struct then to true try type val \
                 virtual when while with array atomic_loc bool bytes char continuation eff exn extension_constructor \
                 float floatarray format format4 format6 iarray in_channel int int32 int64 lazy_t list nativeint \
                 option out_channel ref result string unit";
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '\'')
        && !taken.split_ascii_whitespace().any(|word| word == name)
}

/// The type's name with its parameters; its definition.
pub(crate) fn describe_abstract<T: OCamlAbstract>(to: &mut Definitions) -> String {
    assert!(is_type_name(T::NAME), "`{}` cannot be the name of a type in OCaml", T::NAME);
    let parameters: Vec<String> = T::PARAMETERS.iter().map(|describe| describe(to)).collect();
    // One definition for all parameters.
    to.define(T::site(), T::NAME, parameters.len(), |definition, _| definition.doc = T::DOC.trim().into());
    apply(&parameters, T::NAME)
}

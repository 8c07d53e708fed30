// SPDX-License-Identifier: MIT
use crate::{DefinitionSite, Definitions};
use alloc::string::String;

/// A Rust type that is an abstract type in OCaml, whose values OCaml owns as [`Boxed`](crate::Boxed). It is implemented
/// by [`ocaml_abstract!`](crate::ocaml_abstract), without unsafe code.
///
/// A generic Rust type is as many types at run time as it has instances, and each value belongs to one of them.
/// Exported functions that are generic for OCaml make and take values of one more, by
/// [`boxed_generic`](crate::Runtime::boxed_generic): no value belongs to both kinds.
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
/// [`boxed_generic`](crate::Runtime::boxed_generic). It is implemented by [`ocaml_abstract!`](crate::ocaml_abstract).
///
/// # Safety
/// `Self` is `Whole` where all parameters are what exported functions are compiled for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of `ocaml_abstract!` whose parameters are those of an exported function",
    note = "the parameters have the bound `TypeVar`, and nothing else; other payloads are made by `boxed`"
)]
pub unsafe trait OCamlGeneric: OCamlAbstract {
    /// The type for which the code is compiled.
    #[doc(hidden)]
    type Whole: Send + Sync + 'static;
}

/// What values of `boxed_generic` and `inline_generic` are at run time: of a type that nobody else can name, so that
/// they cannot be asked for with types that they may not have.
// GENERIC: E is the `Whole` of some OCamlGeneric.
#[repr(transparent)]
pub(crate) struct Generic<E>(E);

impl<E> Generic<E> {
    pub(crate) fn new<T: OCamlGeneric<Whole = E>>(t: T) -> Self {
        const {
            assert!(size_of::<T>() == size_of::<E>() && align_of::<T>() == align_of::<E>());
        }
        let t = core::mem::ManuallyDrop::new(t);
        // SAFETY: GENERIC: T is E.
        Generic(unsafe { core::mem::transmute_copy::<T, E>(&t) })
    }

    pub(crate) fn get<T: OCamlGeneric<Whole = E>>(&self) -> &T {
        // SAFETY: GENERIC: T is E.
        unsafe { &*core::ptr::from_ref(&self.0).cast() }
    }
}

/// Gives Rust types that OCaml owns their names in OCaml: see [`Boxed`](crate::Boxed). Parameters are parameters in
/// OCaml too.
///
/// ```
/// # #![forbid(unsafe_code)]
/// # use ocaml_boxroot::*;
/// struct Counter(std::sync::atomic::AtomicUsize);
/// struct Queue<A>(std::sync::Mutex<Vec<Root<A>>>);
/// ocaml_abstract! {
///     Counter = "counter";
///     /// First in, first out.
///     Queue<A> = "queue";
/// }
/// assert_eq!(<Boxed<Queue<List<Int>>> as OCamlType>::describe(&mut Definitions::new()), "int list queue");
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
        $($crate::__ocaml_generic! { $t $($p)+ })?
    )*};
}

/// `OCamlGeneric` for a type with parameters.
#[doc(hidden)]
#[macro_export]
macro_rules! __ocaml_generic {
    ($t:ident $($p:ident)+) => {
        // SAFETY: the parameters are type variables, all of which are `Erased`.
        unsafe impl<$($p: $crate::TypeVar),+> $crate::OCamlGeneric for $t<$($p),+> {
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

/// The text of a type expression.
#[doc(hidden)]
pub type TypeText = String;

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

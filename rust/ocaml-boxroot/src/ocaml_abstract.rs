// SPDX-License-Identifier: MIT
use crate::Definitions;
use alloc::string::String;

/// A Rust type that is an abstract type in OCaml, whose values OCaml owns as [`Boxed`](crate::Boxed). It is implemented
/// by [`ocaml_abstract!`](crate::ocaml_abstract), without unsafe code.
///
/// A generic Rust type is as many types at run time as it has instances, and each value belongs to one of them.
/// Exported functions that are generic for OCaml are compiled for one instance, [`Any`](crate::Any); values that they
/// are to work on must be made with it.
///
/// # Safety
/// `PARAMETERS` are the descriptions of all type parameters of `Self`, so that OCaml takes values of different
/// instances for values of different types.
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
        }
    )*};
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

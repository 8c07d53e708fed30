// SPDX-License-Identifier: MIT
//! OCaml values in Rust, safely. The [guide] goes through it by subject.
//!
//! | type | meaning |
//! |---|---|
//! | [`Runtime`] | the domain lock is held. `&Runtime`: may read; `&mut Runtime`: may allocate, call, release it |
//! | [`Value`] | a value that nothing keeps alive but the absence of a collection; one word, `Copy` |
//! | [`ValueRef`] | a place that holds a value, however it is kept alive; one word; read with `&Runtime` |
//! | [`Root`] | a value kept alive by Rust: pointer-sized, `Send + Sync`, droppable anywhere |
//! | [`Weak`] | a value found as long as somebody else keeps it alive |
//! | [`Ephemeral`] | a value kept alive as long as another one lives |
//! | [`WideRoot`] | several values with one owner, of one word |
//! | [`Storage`] | roots that are dropped together |
//! | [`ValueGuard`] | a value just made, and the `&mut Runtime` it was made with |
//! | [`Boxed`] | a Rust value that OCaml owns |
//! | [`Inline`] | the same without a box: it moves with its block |
//! | [`Bigarray`] | numbers outside OCaml's heap, shared with OCaml |
//!
//! Functions come in three kinds. Without a runtime they work on the values they are given. With `&Runtime` they read
//! places. With `&mut Runtime` they may run the collector, and so take [`ValueRef`]s: `&root`, `&immediate`, an
//! argument or a local slot all pass; a value that a collection would invalidate does not compile.
//!
//! ```
//! use ocaml_boxroot::{self as ocaml, prelude::*};
//! type Step = Fun<(Int,), Int>;
//! fn twice<'a>(
//!     rt: &'a mut Runtime,
//!     f: ValueRef<Step>,
//!     x: ValueRef<Int>,
//! ) -> Result<ValueGuard<'a, Int>, ocaml::Exception> {
//!     let y = f.call(rt, (x,))?.root();
//!     f.call(rt, (&y,))
//! }
//! ```
//!
//! # Conversions
//!
//! | Rust | OCaml |
//! |---|---|
//! | `i8` … `i128`, `u8` … `u128`, `isize`, `usize` | `int`; an error where the number does not fit |
//! | [`Int32`], [`Int64`], [`Nativeint`] | `int32`, `int64`, `nativeint` |
//! | `f64`, `f32` | `float`; an error where an `f32` is not exact |
//! | `bool`, `()` | `bool`, `unit` |
//! | `char`, [`Char`] | `Uchar.t`, `char` (a byte) |
//! | `&str`, `String`, `Cow<str>` | `string`; an error where it is not UTF-8; `&str` in place |
//! | `&[u8]`, `Vec<u8>`, `[u8; N]` | `string`; `&[u8]` in place |
//! | [`Bytes`] | `bytes` |
//! | `Vec<T>`, `[T]`, `[T; N]`, `VecDeque<T>` | `array` (flat if of floats) |
//! | [`List<T>`](List) | `list` |
//! | [`FloatArray`] | `floatarray` |
//! | `Option`, `Result`, tuples up to 12 | `option`, `result`, tuples |
//! | `&T`, `Box`, `Rc`, `Arc`, `Cow` | as what is in them |
//! | [`Value`], [`Root`], [`ValueRef`] | the value |
//!
//! [`ToOCaml`] and [`FromOCaml`] are what converts; [`Runtime::alloc`], calls and [`Value::to_rust`] use them. Nothing
//! is lost: what does not fit is a [`ConvertError`]. Maps are not converted; a list of their pairs is made by
//! [`Nursery::list`].
//!
//! ```
//! # use ocaml_boxroot::{self as ocaml, prelude::*};
//! fn longest<'a>(rt: &'a mut Runtime, f: &Root<Fun<(ocaml::List<Str>,), (Int, Str)>>) -> Option<String> {
//!     let answer = f.call(rt, (ocaml::List(vec!["a", "bc"]),)).ok()?;
//!     let (length, word): (usize, &str) = answer.to_rust().ok()?;
//!     (length == word.len()).then(|| word.to_owned())
//! }
//! ```
//!
//! Structs and enums derive them, and the definition of their OCaml type, see the macro
//! [`OCamlType`](macro@OCamlType):
//!
//! ```
//! # use ocaml_boxroot::{self as ocaml, prelude::*};
//! #[derive(OCamlType, ToOCaml, FromOCaml)]
//! struct Entry {
//!     word: String,
//!     #[ocaml(mutable)]
//!     count: i64,
//! }
//!
//! let mut definitions = ocaml::Definitions::new();
//! assert_eq!(<Vec<Entry> as ocaml::Typed>::Type::describe(&mut definitions), "entry array");
//! assert_eq!(definitions.text(), "type entry = {\n  word : string;\n  mutable count : int;\n}\n\n");
//! ```
//!
//! # Exceptions
//!
//! A call of OCaml returns `Err` of an [`Exception`], which `?` passes on: as the error of an exported function it is
//! raised again. Errors of Rust can be exceptions of their own, with types that both compilers check:
//!
//! ```
//! # use ocaml_boxroot::{self as ocaml, prelude::*};
//! /// `exception ParseError of string * int` in OCaml.
//! #[derive(Debug, OCamlException)]
//! struct ParseError(String, usize);
//! impl std::fmt::Display for ParseError {
//!     fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
//!         write!(f, "line {}: {}", self.1, self.0)
//!     }
//! }
//! impl std::error::Error for ParseError {}
//!
//! #[export]
//! fn parse(text: &str) -> Result<isize, ParseError> {
//!     text.trim().parse().map_err(|_| ParseError(text.into(), 1))
//! }
//! #[export]
//! fn or_zero(rt: &mut Runtime, f: ValueRef<Fun<(Unit,), Int>>) -> Result<isize, ocaml::Exception> {
//!     match f.call(rt, ((),)).map(|n| n.value().to_isize()) {
//!         Err(error) if error.matches::<ParseError>(rt) => Ok(0),
//!         result => result,
//!     }
//! }
//! library! { name = "parser", exports = [parse, or_zero], exceptions = [ParseError] }
//! # fn main() {}
//! ```
//!
//! # Rust called from OCaml, and OCaml from Rust
//!
//! [`export`](macro@export) makes a Rust function one that OCaml calls, [`import!`] makes an OCaml function one that
//! Rust calls, and [`library!`] lists them. From the list the OCaml text is written: types, `external`s, and the
//! registration of what Rust imports. Both compilers check the types, and a text that does not belong to the library is
//! refused when the program starts.
//!
//! In this crate's documents, "the domain lock" is the lock a thread holds while it runs OCaml code or foreign code
//! called from it, outside blocking sections ("runtime lock" in OCaml 4.14).
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

extern crate alloc;

mod call;
mod convert;
mod data {
    pub(crate) mod bigarray;
    pub(crate) mod block;
    pub(crate) mod boxed;
    pub(crate) mod inline;
    #[cfg(feature = "std")]
    pub(crate) mod marshal;
    pub(crate) mod number;
    pub(crate) mod payload;
    pub(crate) mod sequence;
    pub(crate) mod text;
}
#[doc(hidden)]
pub mod derive;
mod describe;
mod error;
mod exception;
mod glue;
mod panics;
#[cfg(feature = "std")]
mod report;
mod runtime;
#[cfg(feature = "start")]
mod start;
#[cfg(feature = "std")]
mod threads;
mod types;
mod value;

/// What the code written by `#[export]` and `library!` calls. Not an interface for anything else.
#[doc(hidden)]
pub mod export {
    mod declare;
    mod library;
    mod pass;
    mod plain;
    mod wrapper;

    pub use crate::exception::types::ExceptionType;
    pub use crate::types::Erased;
    pub use alloc::string::String;
    pub use alloc::vec::Vec;
    pub use declare::{
        describe_payload, describe_plain, describe_plain_result, describe_read, describe_result, describe_type,
        describe_write, imported, signature, Export, Import, ImportCell, ImportTypes, ResultType, Signature, SplitType,
        Types,
    };
    pub use library::{check, text, Library, Table};
    pub use pass::{
        finish, finish_pure, payload_arg, payload_arg_erased, payload_arg_static, pure_arg, read_arg, write_arg,
        Convert, Pending, ReadArg, Returned, Split, WriteArg,
    };
    pub use plain::{
        noalloc, plain_arg, plain_result, read_total, total_plain, total_value, Plain, PlainResult, Total, TotalResult,
    };
    pub use wrapper::{
        call, call_read, call_write, read, run, write, Lock, Place, Places, Raise, RaiseError, Raised, Word, Words,
    };
}

/// What nearly every file needs, by `use ocaml_boxroot::{self as ocaml, prelude::*};`. Names that other crates have too
/// are left to their path: `ocaml::Value`, `ocaml::Exception`, `ocaml::List`.
pub mod prelude {
    #[cfg(feature = "std")]
    pub use crate::Locked;
    pub use crate::{
        attach, import, int, library, ocaml_abstract, Bool, Boxed, Float, FromOCaml, Fun, Int, OCamlException,
        OCamlType, Root, Runtime, Str, ToOCaml, TypeVar, Unit, ValueGuard, ValueRef,
    };
    pub use ocaml_boxroot_derive::export; // not the module of this name
}

/// The exceptions of OCaml itself as Rust errors: an [`Exception`] can be asked for them, and an exported function that
/// fails with one raises it. Others of the standard library are declared by a type that derives
/// [`OCamlException`](macro@crate::OCamlException) with `#[ocaml(module = "…")]`.
pub mod exceptions {
    pub use crate::exception::types::{
        DivisionByZero, EndOfFile, Failure, InvalidArgument, NotFound, OutOfMemory, StackOverflow, SysError,
    };
}

/// The guide: how to use this crate, by subject.
#[cfg(any(doc, doctest))]
pub mod guide {
    #[doc = include_str!("../guide/first.md")]
    pub mod first {}
    #[doc = include_str!("../guide/kinds.md")]
    pub mod kinds {}
    #[doc = include_str!("../guide/rooting.md")]
    pub mod rooting {}
    #[doc = include_str!("../guide/threads.md")]
    pub mod threads {}
    #[doc = include_str!("../guide/errors.md")]
    pub mod errors {}
    #[doc = include_str!("../guide/speed.md")]
    pub mod speed {}
    #[doc = include_str!("../guide/limits.md")]
    pub mod limits {}
    #[doc = include_str!("../guide/migration.md")]
    pub mod migration {}

    /// What is on the crate's page is compiled.
    #[cfg(doctest)]
    #[doc = include_str!("../README.md")]
    pub mod readme {}
}

pub use call::{Arg, Args, BacktraceSlot, Delayed};
#[doc(hidden)]
pub use convert::Flat;
pub use convert::{FromAny, FromOCaml, ToOCaml};
pub use data::bigarray::element::{BigarrayElement, Complex, Int63, RelaxedCell, F16};
pub use data::bigarray::make::BigarrayShape;
pub use data::bigarray::{
    AnyDim, Array0, Array1, Array2, Array3, Bigarray, BigarrayView, CLayout, Dim, Dimensions, FortranLayout, Genarray,
    Layout,
};
pub use data::block::{AtomicCell, MutCell};
pub use data::boxed::Boxed;
pub use data::inline::Inline;
pub use data::number::int;
pub use data::payload::CustomOps;
#[cfg(feature = "std")]
pub use data::payload::Marshal;
pub use data::sequence::ListIter;
#[doc(hidden)]
pub use describe::TypeText;
pub use describe::{Definition, DefinitionSite, Definitions, Element, OCamlType, Typed};
pub use error::{AllocError, AttachError, ConvertError, RootError, ShapeError};
#[doc(hidden)]
pub use exception::types::Constructor;
pub use exception::types::OCamlException;
pub use exception::Exception;
#[cfg(feature = "checked")]
#[doc(hidden)]
pub use glue::refuse_after;
/// Makes a Rust function one that OCaml calls.
///
/// The first parameter says what kind it is:
///
/// | first parameter | arguments | what it may do |
/// |---|---|---|
/// | none | [`Value`], Rust types | no access: work on what it is given |
/// | `&Runtime` | also [`ValueRef`], [`Root`], `&T` of [`Boxed<T>`](Boxed) | read |
/// | `&mut Runtime` | [`ValueRef`], [`Root`], `&T`, Rust types that own their data, `&str`, `&[T]` (copied) | all |
///
/// With `&mut Runtime` a [`Value`] is refused, since a collection would invalidate it. The places of [`ValueRef`]s are
/// local roots during the call. Rust types are those with [`FromOCaml`]. An argument that cannot be converted raises
/// `Invalid_argument`, which says which it is. Results are a [`ValueGuard`], [`Value`], [`ValueRef`], [`Root`], options
/// of these, types with [`ToOCaml`], and `Result`s.
///
/// *Errors.* `Err` raises: an [`Exception`] is raised again, the same value; an error whose type is an
/// [`OCamlException`](macro@OCamlException) is that exception, also in a box; any other error that converts to `Box<dyn
/// Error + Send + Sync>` is `Rust_error`. *Panics* raise `Rust_panic`, with message, file, line, and a backtrace if
/// `RUST_BACKTRACE` asks for it; Rust's panic hook runs as usual, so they are also printed on standard error. Both
/// exceptions are in the OCaml module `Ocaml_boxroot`; a program without it gets `Failure`. All that the function owns
/// is dropped before the jump to OCaml's handler. With `panic = "abort"` a panic ends the process; errors raise.
///
/// *Numbers.* `f64` is passed unboxed, integers untagged, where these types are written by their own names.
/// *Generic parameters* are type variables of OCaml. They have no bounds but [`TypeVar`], which payloads with
/// parameters need. A trait could tell types apart that are one for the function, which is compiled once; and with
/// `'static`, values of one call could be kept for another, where the type is another one. What threads and tasks need
/// of such values is a [`Delayed`] call.
///
/// In front of an `impl` block without trait, all its functions are exported; `&self` is a [`Boxed`] value.
///
/// Options: `name = "…"`, in OCaml; `noalloc`, for a function that neither allocates nor raises: arguments and result
/// are numbers that need no test, `bool` or [`Value`], and a panic ends the process with a message;
/// `unsafe(symbol = "…")`, the name in C (else `ocaml_export_CRATE__NAME`, with the type's name in an `impl`), and you
/// promise that nothing else in the process has it; `unsafe(static)`: type parameters may be `'static`, and you promise
/// that values which came in one call do not go out as those of another one; `crate = ::name`, where this crate has
/// another name. In an `impl`, `#[export(…)]` in front of a function gives its options.
///
/// ```
/// # #![forbid(unsafe_code)]
/// use ocaml_boxroot::{self as ocaml, prelude::*};
///
/// /// How many words.
/// #[export]
/// fn words(text: &str) -> usize {
///     text.split_whitespace().count()
/// }
///
/// #[export]
/// fn apply<'a, A, B>(
///     rt: &'a mut Runtime,
///     f: ValueRef<'_, Fun<(A,), B>>,
///     x: ValueRef<'_, A>,
/// ) -> Result<ValueGuard<'a, B>, ocaml::Exception> {
///     f.call(rt, (x,))
/// }
///
/// library! { name = "text", exports = [words, apply] }
/// # fn main() {}
/// ```
pub use ocaml_boxroot_derive::export;
/// Declares OCaml functions that Rust calls.
///
/// Each `mod NAME = "Module";` begins a Rust module, with the functions of that OCaml module; `#[name = "…"]` gives a
/// function's name in OCaml where it is another one. Arguments are what can be passed in a call, the result is
/// `Result<…, Exception>` of a type with [`FromOCaml`], a [`Root`] or a [`ValueGuard`]. The functions get the runtime
/// as their first parameter. The OCaml text that [`library!`] leads to registers the functions, and the OCaml compiler
/// checks their types; a generic parameter asks for a polymorphic function. They are looked up once and kept by roots;
/// a function that was not registered is an exception, `Failure`. Functions whose type promises what they do not keep
/// (`Obj.magic`, `Array.unsafe_get`) are refused, and so is each one whose result can be of any type, whatever its
/// arguments: give it a type in OCaml. `crate = ::name;` in front says what this crate is called.
///
/// ```
/// # #![forbid(unsafe_code)]
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// import! {
///     /// OCaml's own.
///     mod string = "String";
///     pub fn uppercase_ascii(s: &str) -> Result<String, ocaml::Exception>;
///     pub fn cat(a: ValueRef<'_, Str>, b: ValueRef<'_, Str>) -> Result<ValueGuard<'_, Str>, ocaml::Exception>;
/// }
/// fn shout(rt: &mut Runtime, s: &str) -> Result<String, ocaml::Exception> {
///     string::uppercase_ascii(rt, s)
/// }
/// library! { name = "shouting", imports = [string] }
/// # fn main() {}
/// ```
pub use ocaml_boxroot_derive::import;
/// Lists what a library exports and imports: `name = "…"`, that of the OCaml module, without which two libraries in one
/// program would not be told apart; `exports = […]`, the paths of functions with [`export`](macro@export);
/// `imports = […]`, the paths of modules that [`import!`] makes; `exceptions = […]`, the types of errors that are
/// exceptions of OCaml, see [`OCamlException`](macro@OCamlException). Documentation comments in front are the module's.
///
/// It adds four C functions to the library. `NAME_ocaml_text`, of type `string -> string` in OCaml, is the text of a
/// file of the OCaml side: `NAME.ml`, `NAME.mli`, `NAME_imports.ml`, which registers what Rust imports, and the modules
/// of this crate, `ocaml_boxroot.ml` and `ocaml_boxroot.mli`; for `"files"` it lists those that are needed. So a
/// program that contains the library can write its OCaml side: `cargo ocaml-boxroot generate` makes one, and a rule of
/// dune can. `NAME_ocaml_check`, `NAME_ocaml_exceptions` and `NAME_ocaml_register` are called by these files when the
/// program starts: if they were not written from this library, as it is, they raise `Failure`, which says what differs.
pub use ocaml_boxroot_derive::library;
pub use ocaml_boxroot_derive::{FromOCaml, OCamlException, OCamlType, ToOCaml};
#[cfg(feature = "std")]
pub use report::{report, sample};
pub use runtime::{attach, defer, enter, Runtime};
#[cfg(feature = "start")]
pub use start::{start, Ocaml, ShutdownError, StartError, StartOptions};
#[cfg(feature = "std")]
pub use threads::{DomainHandle, JoinError, Locked, RecvError, SpawnError};
pub use types::{
    Any, Array, Atomic, Bool, Bytes, Char, Exn, Float, FloatArray, Fun, Int, Int32, Int64, Lazy, List, Nativeint,
    OCamlAbstract, OCamlErasable, Opt, Ref, Res, Str, TypeVar, Uchar, Unit,
};
pub use value::ephemeral::Ephemeral;
pub use value::local::{Locals, Slot};
pub use value::nursery::{block_words, string_words, BlockBuilder, Nursery};
pub use value::root::{Root, ValueGuard};
pub use value::storage::{Storage, StorageKey, StorageRoot};
pub use value::weak::Weak;
pub use value::wide::{WideRoot, WideSlot, WideSlots, WideValues};
pub use value::{Downcast, Value, ValueCell, ValueExn, ValueKind, ValueRef};

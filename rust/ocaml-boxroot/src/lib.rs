// SPDX-License-Identifier: MIT
//! OCaml values in Rust, safely.
//!
//! | type | meaning |
//! |---|---|
//! | [`Runtime`] | the domain lock is held. `&Runtime`: may read; `&mut Runtime`: may allocate, call, release it |
//! | [`Value`] | a value that nothing keeps alive but the absence of a collection; one word, `Copy` |
//! | [`ValueRef`] | a place that holds a value, however it is kept alive; one word; read with `&Runtime` |
//! | [`Root`] | a value kept alive by Rust: pointer-sized, `Send + Sync`, droppable anywhere |
//! | [`Fresh`] | a value just made, and the `&mut Runtime` it was made with |
//! | [`Boxed`] | a Rust value that OCaml owns |
//! | [`Bigarray`] | numbers outside OCaml's heap, shared with OCaml |
//!
//! Functions come in three kinds. Without a runtime they work on the values they are given. With `&Runtime` they read
//! places. With `&mut Runtime` they may run the collector, and so take [`ValueRef`]s: `&root`, `&immediate`, an
//! argument or a local slot all pass; a value that a collection would invalidate does not compile.
//!
//! ```
//! use ocaml_boxroot::*;
//! type Step = Fun<(Int,), Int>;
//! fn twice<'a>(rt: &'a mut Runtime, f: ValueRef<Step>, x: ValueRef<Int>) -> Result<Fresh<'a, Int>, Exception> {
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
//! # use ocaml_boxroot::*;
//! fn longest<'a>(rt: &'a mut Runtime, f: &Root<Fun<(List<Str>,), (Int, Str)>>) -> Option<String> {
//!     let answer = f.call(rt, (List(vec!["a", "bc"]),)).ok()?;
//!     let (length, word): (usize, &str) = answer.to_rust().ok()?;
//!     (length == word.len()).then(|| word.to_owned())
//! }
//! ```
//!
//! Structs and enums derive them, and the definition of their OCaml type, see the macro
//! [`OCamlType`](macro@OCamlType):
//!
//! ```
//! # use ocaml_boxroot::*;
//! #[derive(OCamlType, ToOCaml, FromOCaml)]
//! struct Entry {
//!     word: String,
//!     #[ocaml(mutable)]
//!     count: i64,
//! }
//!
//! let mut definitions = Definitions::new();
//! assert_eq!(<Vec<Entry> as Typed>::Type::describe(&mut definitions), "entry array");
//! assert_eq!(definitions.text(), "type entry = {\n  word : string;\n  mutable count : int;\n}\n\n");
//! ```
//!
//! In this crate's documents, "the domain lock" is the lock a thread holds while it runs OCaml code or foreign code
//! called from it, outside blocking sections ("runtime lock" in OCaml 4.14).
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]

extern crate alloc;

mod alloc_error;
mod arg;
mod array;
mod atomic_cell;
mod attach;
mod attach_error;
mod bigarray;
mod bigarray_element;
mod bigarray_make;
mod boxed;
mod collect;
mod convert;
mod custom_ops;
mod defer;
#[doc(hidden)]
pub mod derive;
mod describe;
#[cfg(feature = "std")]
mod domain;
mod downcast;
mod entry;
mod exception;
mod frame;
mod fresh;
mod fun;
mod glue;
mod int;
mod kind;
mod list;
mod make;
#[cfg(feature = "std")]
mod marshal;
mod mut_cell;
mod named;
mod nursery;
mod ocaml_abstract;
mod payload;
mod racy;
mod release;
mod root;
mod root_error;
mod runtime;
mod shape_error;
mod slot;
#[cfg(feature = "start")]
mod start;
mod text;
mod types;
mod value;
mod value_cell;
mod value_exn;
mod value_unshared;
#[cfg(feature = "std")]
mod wait;

#[cfg(feature = "checked")]
#[doc(hidden)]
pub use alloc_error::refuse_after;
pub use alloc_error::AllocError;
pub use arg::{Arg, Args};
pub use atomic_cell::AtomicCell;
pub use attach::attach;
pub use attach_error::AttachError;
pub use bigarray::{
    AnyDim, Array0, Array1, Array2, Array3, Bigarray, BigarrayView, CLayout, Dim, Dimensions, FortranLayout, Genarray,
    Layout,
};
pub use bigarray_element::{BigarrayElement, Complex, Int63, F16};
pub use bigarray_make::Shape;
pub use boxed::Boxed;
#[doc(hidden)]
pub use convert::Flat;
pub use convert::{ConvertError, Element, FromAny, FromOCaml, ToOCaml, Typed};
pub use custom_ops::CustomOps;
pub use defer::defer;
pub use describe::{Definition, Definitions, OCamlType, Var};
#[cfg(feature = "std")]
pub use domain::{DomainHandle, JoinError, SpawnError};
pub use downcast::Downcast;
pub use entry::enter;
pub use exception::Exception;
pub use fresh::Fresh;
pub use int::int;
pub use kind::Kind;
pub use list::ListIter;
#[cfg(feature = "std")]
pub use marshal::Marshal;
pub use mut_cell::MutCell;
pub use nursery::{block_words, string_words, Nursery};
pub use ocaml_abstract::OCamlAbstract;
#[doc(hidden)]
pub use ocaml_abstract::TypeText;
pub use ocaml_boxroot_derive::{FromOCaml, OCamlType, ToOCaml};
pub use racy::Racy;
pub use root::Root;
pub use root_error::RootError;
pub use runtime::Runtime;
pub use shape_error::ShapeError;
pub use slot::Slot;
#[cfg(feature = "start")]
pub use start::{start, Ocaml, ShutdownError, StartError, StartOptions};
pub use types::*;
pub use value::Value;
pub use value_cell::{ValueCell, ValueRef};
pub use value_exn::ValueExn;
pub use value_unshared::ValueUnshared;

// SPDX-License-Identifier: MIT
//! The procedural macros of `ocaml-boxroot`, which exports them all: one module for each family.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod casing;
/// The derived implementations.
mod conversions {
    pub mod describe;
    pub mod from_ocaml;
    pub mod to_ocaml;
}
mod exception;
mod export;
mod function;
mod import;
mod library;
mod names;
mod shape;
mod text;
mod ty;

use proc_macro::TokenStream;

/// The OCaml type of a struct or an enum: `OCamlType`, `Typed` and `Element`. `ToOCaml` and `FromOCaml` need it.
///
/// | Rust | OCaml |
/// |---|---|
/// | `struct Entry { word: String, count: i64 }` | `type entry = { word : string; count : int }` |
/// | `struct Point(f64, f64)`, `struct Unit` | `type point = Point of float * float`, `type unit_ = Unit` |
/// | `enum Shape { Empty, Circle(f64), Box { w: f64, h: f64 } }` | the same constructors, `Box` with an inline record |
/// | `struct Pair<A, B> { a: A, b: Vec<B> }` | `type ('a, 'b) pair = { a : 'a; b : 'b array }` |
/// | `struct Handler<A> { run: Root<Fun<(A,), Unit>> }` | `type 'a handler = { run : 'a -> unit }` |
///
/// A record whose fields are all floats is flat, as in OCaml; also if they are unboxed types or aliases. Fields may
/// refer to the type itself, by `Box`, `Vec` and the like. Parameters with bounds have no counterpart: beside
/// lifetimes, `Clone`, `Copy`, `Debug`, `PartialEq`, `Eq`, `PartialOrd`, `Ord`, `Hash`, `Send` and `Sync` may stand;
/// put other bounds on implementations. Documentation comments are carried over.
///
/// Attributes, in `#[ocaml(…)]`:
///
/// | attribute | place | meaning |
/// |---|---|---|
/// | `rename = "name"` | type, field, variant | the name in OCaml |
/// | `mutable` | field | a mutable field of a record |
/// | `unboxed` | struct with one field | `[@@unboxed]`: the value is that of the field |
/// | `polymorphic` | enum | polymorphic variants |
/// | `descriptors(A)` | type | `A` is the type of OCaml values, where that cannot be seen from `Root<A>` or the like |
/// | `crate = ::name` | type | the name of `ocaml_boxroot` among the dependencies, if it has another one |
///
/// Names are those of Rust, in OCaml's style: `HttpRequest` is `http_request`. Keywords and names of predefined types
/// get an underscore: `r#type` is `type_`. Letters outside of ASCII, which OCaml had not before 5.3, are written as
/// numbers: `größe` is `gru00f6u00dfe`.
#[proc_macro_derive(OCamlType, attributes(ocaml))]
pub fn ocaml_type(input: TokenStream) -> TokenStream {
    shape::expand(input, conversions::describe::describe)
}

/// Conversion to OCaml, see the trait `ToOCaml`. Beside `#[derive(OCamlType)]`, with its attributes.
///
/// A value that is nested deeply, as a list of a million boxes, needs as deep a stack: use `List` for lists.
#[proc_macro_derive(ToOCaml, attributes(ocaml))]
pub fn to_ocaml(input: TokenStream) -> TokenStream {
    shape::expand(input, conversions::to_ocaml::to_ocaml)
}

/// Conversion from OCaml, see the trait `FromOCaml`. Beside `#[derive(OCamlType)]`, with its attributes.
///
/// Tags and sizes of blocks are tested: a value of another shape is an error. A value that is nested deeply needs as
/// deep a stack, and a cyclic one (`let rec x = { next = Some x }`) is not for conversion.
#[proc_macro_derive(FromOCaml, attributes(ocaml))]
pub fn from_ocaml(input: TokenStream) -> TokenStream {
    shape::expand(input, conversions::from_ocaml::from_ocaml)
}

/// Makes a type of errors exceptions of OCaml, see the trait `OCamlException`: a struct is one exception, each variant
/// of an enum is one.
///
/// | Rust | OCaml |
/// |---|---|
/// | `struct ParseError(String, i64)` | `exception ParseError of string * int` |
/// | `struct Closed` | `exception Closed` |
/// | `enum Io { Missing { path: String }, Full }` | `exception Missing of { path : string }`, `exception Full` |
///
/// The type implements `Error`, and is `Send + Sync + 'static`. Types of fields have `ToOCaml` and `FromOCaml`. It is
/// listed in `library!` as one of `exceptions`; the OCaml text then declares its exceptions and tells the library about
/// them. From there on
///
/// * an exported function that fails with such an error raises it, also if it is in a `Box<dyn Error + Send + Sync>`;
/// * `Exception::to_rust` gives it back, `Exception::matches` asks for it, by the constructor's identity;
/// * `Exception::from_error` makes it.
///
/// Attributes, in `#[ocaml(…)]`:
///
/// | attribute | place | meaning |
/// |---|---|---|
/// | `rename = "Name"` | struct, variant, field | the name in OCaml |
/// | `module = "Host"` | type | the OCaml module `Host` declares the exceptions; types are checked as for imports |
/// | `crate = ::name` | type | the name of `ocaml_boxroot` among the dependencies, if it has another one |
#[proc_macro_derive(OCamlException, attributes(ocaml))]
pub fn ocaml_exception(input: TokenStream) -> TokenStream {
    exception::expand(input)
}

/// Makes a Rust function one that OCaml calls. See `ocaml_boxroot::export`.
#[proc_macro_attribute]
pub fn export(arguments: TokenStream, item: TokenStream) -> TokenStream {
    export::expand(arguments.into(), item.into()).into()
}

/// Declares OCaml functions that Rust calls. See `ocaml_boxroot::import`.
#[proc_macro]
pub fn import(input: TokenStream) -> TokenStream {
    import::expand(input.into()).into()
}

/// Lists what a library exports and imports. See `ocaml_boxroot::library`.
#[proc_macro]
pub fn library(input: TokenStream) -> TokenStream {
    library::expand(input.into()).into()
}

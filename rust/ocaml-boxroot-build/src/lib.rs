// SPDX-License-Identifier: MIT
//! Compiles the OCaml modules of a Rust program, in its build script.
//!
//! ```toml
//! [dependencies]
//! ocaml-boxroot = { version = "0.1", features = ["start"] }
//! [build-dependencies]
//! ocaml-boxroot-build = "0.1"
//! ```
//!
//! ```no_run
//! // build.rs
//! ocaml_boxroot_build::Build::new()
//!     .files(["ocaml/words.ml", "ocaml/report.ml"])
//!     .package("unix")
//!     .compile("program");
//! ```
//!
//! The result is one object file with the modules, the OCaml libraries, their C parts and OCaml's runtime, linked with
//! the package. The program then calls `ocaml_boxroot::start`. OCaml modules may call functions that Rust exports, and
//! Rust may call theirs; `cargo ocaml-boxroot generate` writes the OCaml side of both.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod builder;
mod compiler;
mod error;
#[allow(dead_code)] // a file of the raw crate
mod lookup;
mod packages;

pub use builder::Build;
pub use compiler::Compiler;
pub use error::Error;

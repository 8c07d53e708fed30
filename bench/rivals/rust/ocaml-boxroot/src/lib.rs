// SPDX-License-Identifier: MIT
//! The externals of the benchmarks, with `ocaml-boxroot`, in safe Rust.

mod calls;
mod cell;
mod conversion;
mod fixpoint;

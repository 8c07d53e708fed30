// SPDX-License-Identifier: MIT
//! The externals of the benchmarks, with `ocaml-interop`. Where there are several ways to write them, the fastest.
#![allow(unused_variables)] // the macro asks for the argument `cr` in every function

mod calls;
mod cell;
mod conversion;
mod fixpoint;

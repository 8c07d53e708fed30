// SPDX-License-Identifier: MIT
//! The externals of the benchmarks, with the crate `ocaml`. Where there are several ways to write them, the fastest.

mod calls;
mod cell;
mod conversion;
mod fixpoint;

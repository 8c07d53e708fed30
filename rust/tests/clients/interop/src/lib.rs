// SPDX-License-Identifier: MIT
//! Externals implemented with `ocaml-interop`.
#![allow(unused_variables)] // the macro asks for the argument `cr` in every function

mod caller;
mod examples;
mod roots;

// SPDX-License-Identifier: MIT
//! The procedural macros of `ocaml-boxroot`, which exports them all: one module for each family.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// SPDX-License-Identifier: MIT
//! Nothing: see tests/.
#![forbid(unsafe_code)]

pub use ocaml_boxroot_sys as _;

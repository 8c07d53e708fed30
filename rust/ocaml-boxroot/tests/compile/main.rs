// SPDX-License-Identifier: MIT
//! What must compile, and what must not. Nothing here runs OCaml.
#![forbid(unsafe_code)]

mod editions;
mod fail;
mod project;

// SPDX-License-Identifier: MIT
//! OCaml functions for Rust programs.
#![forbid(unsafe_code)]

use ocaml_boxroot::{self as ocaml, prelude::*};

/// A word, and how often it occurs.
#[derive(Debug, Clone, PartialEq, OCamlType, FromOCaml)]
pub struct Entry {
    /// The word.
    pub word: String,
    /// How often.
    pub times: usize,
}

import! {
    /// The functions of ocaml/counter.ml.
    pub mod counter = "Counter";
    /// The words of a text, in alphabetical order.
    pub fn count(text: &str) -> Result<ocaml::List<Entry>, ocaml::Exception>;
}

/// Words that are not counted: what OCaml asks Rust.
#[export]
fn is_ignored(word: &str) -> bool {
    matches!(word, "a" | "the")
}

library! {
    /// What OCaml knows of Rust.
    name = "my_binding",
    exports = [is_ignored],
    imports = [counter],
}

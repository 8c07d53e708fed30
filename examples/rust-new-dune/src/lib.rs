// SPDX-License-Identifier: MIT
//! Functions that OCaml calls: its module `My_binding`.
#![forbid(unsafe_code)]

use ocaml_boxroot::{self as ocaml, prelude::*};
use std::num::ParseIntError;

/// How somebody is greeted.
#[derive(OCamlType, FromOCaml)]
enum Style {
    Calm,
    Loud { marks: usize },
}

/// A greeting. Without `Runtime`, a function gets and returns Rust values.
#[export]
fn greet(name: &str, style: Style) -> String {
    match style {
        Style::Calm => format!("Hello, {name}."),
        Style::Loud { marks } => format!("HELLO, {}{}", name.to_uppercase(), "!".repeat(marks)),
    }
}

/// The sum of the numbers in a text. An error of Rust is the exception `Ocaml_boxroot.Rust_error`.
#[export]
fn sum(text: &str) -> Result<i64, ParseIntError> {
    text.split_whitespace().map(str::parse::<i64>).sum()
}

/// Calls a function with each word of a text. With `&mut Runtime`, a function may call OCaml. What OCaml raises ends
/// it.
#[export]
fn each(rt: &mut Runtime, text: &str, f: ValueRef<'_, Fun<(Str,), Unit>>) -> Result<(), ocaml::Exception> {
    for word in text.split_whitespace() {
        f.call(rt, (word,))?;
    }
    Ok(())
}

library! {
    /// What this library does.
    name = "my_binding",
    exports = [greet, sum, each],
}

// SPDX-License-Identifier: MIT
//! What Rust and OCaml know of each other.
#![forbid(unsafe_code)]

use ocaml_boxroot::prelude::*;

/// A formula, as OCaml's parser returns it.
#[derive(Debug, Clone, PartialEq, OCamlType, FromOCaml, ToOCaml)]
pub enum Expr {
    Number(f64),
    Variable(String),
    Sum(Box<Expr>, Box<Expr>),
    Product(Box<Expr>, Box<Expr>),
}

import! {
    /// OCaml functions.
    pub mod interpreter = "Interpreter";
    /// Reads a formula.
    pub fn parse(text: &str) -> Result<Expr, ocaml_boxroot::Exception>;
    /// Its value.
    pub fn eval(formula: &Expr) -> Result<f64, ocaml_boxroot::Exception>;
}

/// The value of a variable: in this program, of the environment.
#[export]
fn variable(name: &str) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    let text = std::env::var(name).map_err(|error| format!("${name}: {error}"))?;
    Ok(text.parse()?)
}

library! {
    /// The Rust side of the program.
    name = "formula",
    exports = [variable],
    imports = [interpreter],
}

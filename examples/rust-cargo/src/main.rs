// SPDX-License-Identifier: MIT
//! A Rust program that contains OCaml. With OCaml in PATH:
//!   X=4 cargo run '1.5 + X * 2'
#![forbid(unsafe_code)]

use formula::interpreter;
use ocaml_boxroot::{attach, start, Exception, Runtime, StartOptions};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let ocaml = start(&StartOptions::default())?;
    for text in std::env::args().skip(1) {
        let value = attach(|rt| match evaluate(rt, &text) {
            Ok(value) => value.to_string(),
            Err(exception) => format!("OCaml raised {}", exception.printed(rt)),
        })?;
        println!("{value}");
    }
    Ok(ocaml.shutdown()?)
}

/// The value of a formula.
fn evaluate(rt: &mut Runtime, text: &str) -> Result<f64, Exception> {
    let formula = interpreter::parse(rt, text)?;
    println!("{formula:?}");
    interpreter::eval(rt, &formula)
}

// SPDX-License-Identifier: MIT
//! A Rust program that contains OCaml. With OCaml in PATH:
//!   X=4 cargo run '1.5 + X * 2'
#![forbid(unsafe_code)]

use formula::interpreter;
use ocaml_boxroot::{attach, start, StartOptions};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let ocaml = start(&StartOptions::default())?;
    for text in std::env::args().skip(1) {
        let value = attach(|rt| {
            let formula = interpreter::parse(rt, &text)?;
            println!("{formula:?}");
            interpreter::eval(rt, &formula)
        })?;
        match value {
            Ok(value) => println!("{value}"),
            Err(exception) => println!("OCaml raised {exception}"),
        }
    }
    Ok(ocaml.shutdown()?)
}

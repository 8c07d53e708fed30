// SPDX-License-Identifier: MIT
//! A program that uses the library: `cargo test`. With OCaml in PATH.
#![forbid(unsafe_code)]

use my_binding::{counter, Entry};
use ocaml_boxroot::{attach, start, Exception, Runtime, StartOptions};

#[test]
fn words_are_counted() {
    let ocaml = start(&StartOptions::default()).unwrap();
    attach(|rt: &mut Runtime| -> Result<(), Exception> {
        let entry = |word: &str, times| Entry { word: word.into(), times };
        assert_eq!(counter::count(rt, "the fish a red fish")?.0, [entry("fish", 2), entry("red", 1)]);
        let exception = counter::count(rt, "").unwrap_err();
        assert_eq!(exception.printed(rt), "Invalid_argument(\"no words\")");
        Ok(())
    })
    .unwrap()
    .unwrap();
    ocaml.shutdown().unwrap();
}

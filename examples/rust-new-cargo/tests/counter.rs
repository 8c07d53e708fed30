// SPDX-License-Identifier: MIT
//! A program that uses the library: `cargo test`. With OCaml in PATH.
#![forbid(unsafe_code)]

use my_binding::{counter, Entry};
use ocaml_boxroot::{attach, start, Exception, Runtime, StartOptions};
use std::sync::Once;

/// Calls OCaml, which the first test starts. Each test runs on a thread of its own: build.rs links OCaml's threads.
fn with_ocaml(test: impl FnOnce(&mut Runtime) -> Result<(), Exception>) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| start(&StartOptions::default()).map(drop).unwrap());
    attach(test).unwrap().unwrap();
}

#[test]
fn words_are_counted() {
    with_ocaml(|rt| {
        let entry = |word: &str, times| Entry { word: word.into(), times };
        assert_eq!(counter::count(rt, "the fish a red fish")?.0, [entry("fish", 2), entry("red", 1)]);
        let exception = counter::count(rt, "").unwrap_err();
        assert_eq!(exception.printed(rt), "Invalid_argument(\"no words\")");
        Ok(())
    });
}

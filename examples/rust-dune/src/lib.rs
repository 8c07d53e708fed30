// SPDX-License-Identifier: MIT
//! Functions that OCaml calls.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use std::collections::BTreeMap;
use std::num::ParseFloatError;

/// A word, and how often it occurs.
#[derive(OCamlType, ToOCaml)]
struct Count {
    word: String,
    times: usize,
}

/// The words of a text, the most frequent first.
#[export]
fn count(text: &str) -> List<Count> {
    let mut known = BTreeMap::<&str, usize>::new();
    for word in text.split_whitespace() {
        *known.entry(word).or_default() += 1;
    }
    let mut counts: Vec<Count> =
        known.into_iter().map(|(word, times)| Count { word: word.to_owned(), times }).collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.times));
    List(counts)
}

/// The sum of the numbers in a text. An error is the exception `Rust_error`.
#[export]
fn sum(text: &str) -> Result<f64, ParseFloatError> {
    text.split_whitespace().map(str::parse::<f64>).sum()
}

/// Calls a function with each word. An exception ends it.
#[export]
fn each(rt: &mut Runtime, text: &str, f: ValueRef<'_, Fun<(Str,), Unit>>) -> Result<(), Exception> {
    for word in text.split_whitespace() {
        f.call(rt, (word,))?;
    }
    Ok(())
}

library! {
    /// Words of a text.
    name = "words",
    exports = [count, sum, each],
}

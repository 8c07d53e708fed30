// SPDX-License-Identifier: MIT
//! Names in OCaml and in C.

/// A Rust name as OCaml can have it: `r#` goes, and a keyword of OCaml gets an underscore.
pub fn value(rust: &str) -> String {
    let name = rust.strip_prefix("r#").unwrap_or(rust);
    let mut name = name.to_owned();
    if name.starts_with(|c: char| c.is_uppercase()) {
        name = name[..1].to_lowercase() + &name[1..];
    }
    if KEYWORDS.contains(&&*name) {
        name.push('_');
    }
    name
}

/// What stands in front of the C names of a crate.
pub fn crate_prefix() -> String {
    std::env::var("CARGO_CRATE_NAME").unwrap_or_else(|_| "rust".into())
}

/// The keywords of OCaml, with those of OCaml 5.3 (`effect`).
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "asr",
    "assert",
    "begin",
    "class",
    "constraint",
    "do",
    "done",
    "downto",
    "effect",
    "else",
    "end",
    "exception",
    "external",
    "false",
    "for",
    "fun",
    "function",
    "functor",
    "if",
    "in",
    "include",
    "inherit",
    "initializer",
    "land",
    "lazy",
    "let",
    "lor",
    "lsl",
    "lsr",
    "lxor",
    "match",
    "method",
    "mod",
    "module",
    "mutable",
    "new",
    "nonrec",
    "object",
    "of",
    "open",
    "or",
    "private",
    "rec",
    "sig",
    "struct",
    "then",
    "to",
    "true",
    "try",
    "type",
    "val",
    "virtual",
    "when",
    "while",
    "with",
];

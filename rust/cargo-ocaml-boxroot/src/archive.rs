// SPDX-License-Identifier: MIT
//! What `library!` named the libraries in an archive.
use object::read::archive::ArchiveFile;
use std::path::Path;

/// The end of the name of a C function that each library has.
const TEXT: &str = "_ocaml_text";

/// The names of the libraries in an archive: at least one.
pub fn libraries(file: &Path) -> Result<Vec<String>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
    let data = std::fs::read(file).map_err(|error| wrong(&error))?;
    let archive = ArchiveFile::parse(&*data).map_err(|error| wrong(&error))?;
    let mut names = Vec::new();
    for symbol in archive.symbols().map_err(|error| wrong(&error))?.into_iter().flatten() {
        let symbol = symbol.map_err(|error| wrong(&error))?;
        if let Some(name) = library(&String::from_utf8_lossy(symbol.name())) {
            names.push(name);
        }
    }
    names.sort();
    names.dedup();
    match names.is_empty() {
        false => Ok(names),
        true => Err(format!("{} has no `library! {{ … }}`, which lists what OCaml is to see", file.display())),
    }
}

/// The library whose text the function of this name returns. On some systems names begin with an underscore.
fn library(symbol: &str) -> Option<String> {
    let name = symbol.strip_suffix(TEXT)?;
    let name = name.strip_prefix('_').unwrap_or(name);
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(good)).then(|| name.into())
}

#[test]
fn names_of_libraries() {
    assert_eq!(library("tasks_ocaml_text").as_deref(), Some("tasks"));
    assert_eq!(library("_a_b2_ocaml_text").as_deref(), Some("a_b2"));
    for other in ["_ocaml_text", "tasks_ocaml_check", "tasks_ocaml_text2", "_ZN5tasks_ocaml_text", "Tasks_ocaml_text"] {
        assert_eq!(library(other), None, "{other}");
    }
}

// SPDX-License-Identifier: MIT
//! The bindings of src/lib.rs against the C header: both texts are read, and the C compiler judges a file of static assertions
//! made from the Rust side. Needs a C compiler and OCaml's headers; is not linked with either.

#[allow(dead_code)]
#[path = "../build/lookup.rs"]
mod lookup;

use ocaml_boxroot_sys::{BoxrootStats, Status};
use std::mem::size_of;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In the header but not bound: a static inline function kept for C programs of earlier versions.
const NOT_BOUND: [&str; 1] = ["boxroot_setup_systhreads"];
/// Bound by Rust functions with the same name and meaning; 0.4.0 has them so.
const INLINE: [(&str, &str); 2] = [("boxroot_get", "value (boxroot)"), ("boxroot_get_ref", "value const * (boxroot)")];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn bindings() -> String {
    let text = std::fs::read_to_string(package().join("src/lib.rs")).unwrap();
    text.lines().map(|l| l.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The header without comments.
fn header() -> String {
    let text = std::fs::read_to_string(package().join("vendor/include/boxroot.h")).unwrap();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("/*") {
        plain += before;
        rest = after.split_once("*/").expect("end of comment").1;
    }
    plain + rest
}

fn c_type(rust: &str) -> &'static str {
    match rust.split_whitespace().collect::<Vec<_>>().join(" ").as_str() {
        "Value" => "value",
        "BoxRoot" | "super::BoxRoot" | "Option<BoxRoot>" => "boxroot",
        "*mut BoxRoot" => "boxroot *",
        "*const c_char" => "char const *",
        "*const super::ValueCell" | "*const ValueCell" => "value const *",
        "*mut BoxrootStats" => "boxroot_statistics *",
        "Status" => "int",
        "bool" => "bool",
        "u64" => "uint64_t",
        "" => "void",
        other => panic!("no C type is known for {:?}: extend this table", other),
    }
}

/// Name and C type of each function declared in extern blocks: `pub fn name(x: T, …) -> R;`
fn functions(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for piece in text.split("pub fn ").skip(1) {
        let declaration = match piece.split_once(';') {
            Some((d, _)) if !d.contains('{') => d,
            _ => continue, // has a body
        };
        let (name, rest) = declaration.split_once('(').unwrap();
        let (params, result) = rest.rsplit_once(')').unwrap();
        let params: Vec<_> =
            params.split(',').filter(|p| !p.trim().is_empty()).map(|p| c_type(p.split_once(':').unwrap().1)).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let result = c_type(result.trim().trim_start_matches("->"));
        found.push((name.to_owned(), format!("{} ({})", result, params)));
    }
    found
}

/// The lines `pub name: type,` of a struct.
fn fields(text: &str, name: &str) -> Vec<(String, String)> {
    let body = text.split_once(&format!("pub struct {} {{", name)).unwrap().1.split_once('}').unwrap().0;
    body.split(',')
        .filter(|f| !f.trim().is_empty())
        .map(|f| f.trim().trim_start_matches("pub ").split_once(':').unwrap())
        .map(|(f, t)| (f.trim().to_owned(), t.trim().to_owned()))
        .collect()
}

fn identifiers(text: &str, prefix: &str) -> Vec<String> {
    let mut all: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| w.starts_with(prefix))
        .map(str::to_owned)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Functions that the header declares: a name, then a parenthesis.
fn declared(header: &str) -> Vec<String> {
    let mut all = identifiers(header, "boxroot_");
    all.retain(|name| {
        header.match_indices(name.as_str()).any(|(i, _)| {
            let before = header[..i].chars().last().unwrap_or(' ');
            !before.is_alphanumeric() && before != '_' && header[i + name.len()..].trim_start().starts_with('(')
        })
    });
    all
}

#[test]
fn every_function_of_the_header_is_bound_and_no_other() {
    let text = bindings();
    let mut bound: Vec<_> = functions(&text).into_iter().map(|f| f.0).collect();
    bound.extend(INLINE.iter().map(|f| f.0.to_owned()));
    bound.extend(NOT_BOUND.iter().map(|f| f.to_string()));
    bound.sort();
    bound.dedup();
    for (name, _) in INLINE {
        assert!(text.contains(&format!("fn {}(br: BoxRoot)", name)), "{} is not in src/lib.rs", name);
    }
    assert_eq!(declared(&header()), bound);
}

#[test]
fn types_and_values_agree() {
    let text = bindings();
    let mut c = String::from("#include <stddef.h>\n#include <boxroot.h>\n");
    let mut assert = |condition: String, what: &str| c += &format!("_Static_assert({}, \"{}\");\n", condition, what);

    let functions: Vec<_> = functions(&text).into_iter().chain(INLINE.iter().map(|f| (f.0.to_owned(), f.1.to_owned()))).collect();
    assert!(functions.len() >= 11, "the parser found too little: {:?}", functions);
    for (name, kind) in &functions {
        assert(format!("__builtin_types_compatible_p(__typeof__({}), {})", name, kind), name);
    }

    let fields = fields(&text, "BoxrootStats");
    let parts: Vec<String> = fields.iter().map(|f| f.0.clone()).collect();
    assert!(fields.len() >= 17, "the parser found too little: {:?}", fields);
    for (i, (field, kind)) in fields.iter().enumerate() {
        assert_eq!(kind, "u64", "offsets below are for this type only");
        assert(format!("offsetof(boxroot_statistics, {}) == {}", field, i * size_of::<u64>()), field);
        assert(format!("__builtin_types_compatible_p(__typeof__(((boxroot_statistics *)0)->{}), {})", field, c_type(kind)), field);
    }
    assert_eq!(size_of::<BoxrootStats>(), parts.len() * size_of::<u64>());
    assert(format!("sizeof(boxroot_statistics) == {}", size_of::<BoxrootStats>()), "boxroot_statistics");

    for (status, name) in [
        (Status::NotSetup, "BOXROOT_NOT_SETUP"),
        (Status::Running, "BOXROOT_RUNNING"),
        (Status::ToreDown, "BOXROOT_TORE_DOWN"),
        (Status::Invalid, "BOXROOT_INVALID"),
    ] {
        assert(format!("{} == {}", name, status as i32), name);
    }
    assert(format!("sizeof(int) == {}", size_of::<Status>()), "Status");
    assert(format!("sizeof(value) == {}", size_of::<ocaml_boxroot_sys::Value>()), "Value");
    assert(format!("sizeof(boxroot) == {}", size_of::<Option<ocaml_boxroot_sys::BoxRoot>>()), "BoxRoot");
    assert(format!("sizeof(bool) == {}", size_of::<bool>()), "bool");
    let text = header();
    let states = text.split("enum {").nth(1).unwrap().split('}').next().unwrap();
    assert_eq!(identifiers(states, "BOXROOT_").len(), 4, "a status is new in the header");

    compile(&c).unwrap();
    // The test can fail: a wrong assertion is seen.
    assert!(compile(&format!("{}_Static_assert(sizeof(boxroot_statistics) == 1, \"wrong\");\n", c)).unwrap_err().contains("wrong"));
}

fn compile(c: &str) -> Result<(), String> {
    let ocaml = lookup::find(&|name| std::env::var_os(name)).map_err(|e| e.to_string())?;
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("header.c");
    std::fs::write(&file, c).unwrap();
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let out = Command::new(&cc)
        .args(["-std=gnu11", "-fsyntax-only", "-I"])
        .arg(package().join("vendor/include"))
        .arg("-I")
        .arg(&ocaml.library)
        .arg(&file)
        .output()
        .map_err(|e| format!("cannot run {}: {}", cc, e))?;
    if out.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

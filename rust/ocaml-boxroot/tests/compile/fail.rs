// SPDX-License-Identifier: MIT
//! What must not compile, each with a twin, different in one line, that must.
//!
//! The files in ../compile_fail/ hold cases, each in a section:
//!
//! ```text
//! //# NAME CODE[+CODE][|…] [TEXT]   the error codes (`-`: an error without one; `|`: what they are differs by the
//!                                   version of the compiler), and a part of the message where the message is ours
//! …
//!     line                  //~ this line is in the failing program only
//!     //+ line              this line is in the twin only
//! ```
//!
//! Before each section stands what all programs have: `#![forbid(unsafe_code)]`, and the crate's names. Every error of
//! the program must have one of the codes, and every code must be there. All failing programs and one program with all
//! twins are compiled by one run of cargo.

use crate::project::{self, Project};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "#![forbid(unsafe_code)]\n#![allow(unused, clippy::all)]\n";
const NAMES: &str = "use ocaml_boxroot::*;\n";

struct Case {
    name: String,
    code: String,
    text: String,
    fails: String,
    twin: String,
}

impl Case {
    fn has_codes(&self, errors: &[(String, String)]) -> bool {
        let found: BTreeSet<&str> = errors.iter().map(|(code, _)| code.as_str()).collect();
        self.code.split('|').any(|codes| codes.split('+').collect::<BTreeSet<_>>() == found)
    }
}

fn cases(file: &Path) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    for line in fs::read_to_string(file).unwrap().lines() {
        if let Some(header) = line.strip_prefix("//# ") {
            let mut words = header.splitn(3, ' ');
            let name = format!("{stem}_{}", words.next().unwrap());
            let code = words.next().unwrap_or_else(|| panic!("{name}: no code")).to_owned();
            let text = words.next().unwrap_or("").to_owned();
            cases.push(Case { name, code, text, fails: String::new(), twin: String::new() });
        } else if let Some(case) = cases.last_mut() {
            if let Some(twin) = line.trim_start().strip_prefix("//+ ") {
                writeln!(case.twin, "{twin}").unwrap();
            } else if let Some((fails, _)) = line.split_once("//~") {
                writeln!(case.fails, "{}", fails.trim_end()).unwrap();
            } else {
                writeln!(case.fails, "{line}").unwrap();
                writeln!(case.twin, "{line}").unwrap();
            }
        }
    }
    for case in &cases {
        let count = |mark: &str, s: &str| s.lines().filter(|l| l.contains(mark)).count();
        let differ = case.fails.lines().count().abs_diff(case.twin.lines().count());
        assert!(
            case.fails != case.twin && differ == 0 && count("//~", &case.fails) == 0,
            "{}: not one line and its twin",
            case.name
        );
        let lines = case.fails.lines().zip(case.twin.lines()).filter(|(a, b)| a != b).count();
        assert_eq!(lines, 1, "{}: differs in {lines} lines", case.name);
    }
    cases
}

/// What cargo says.
fn cargo(project: &Project, words: &[&str]) -> String {
    let output = project.cargo(&[words, &["--offline", "--message-format=short", "--color=never"]].concat());
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    project.add("log", &log);
    log
}

fn project(name: &str) -> Project {
    let project = project::empty(name);
    let manifest = project::manifest(name, "2021", "ocaml-boxroot");
    project.add("Cargo.toml", &format!("{manifest}[workspace]\n{}", project::PROFILE));
    project
}

/// Compiles the programs; the errors of each, as (code, message).
fn check(project: &Project, cases: &[Case]) -> BTreeMap<String, Vec<(String, String)>> {
    let mut twins = HEAD.to_owned();
    for case in cases {
        project.add(&format!("src/bin/{}.rs", case.name), &format!("{HEAD}{NAMES}{}\nfn main() {{}}\n", case.fails));
        writeln!(twins, "mod {} {{\n{NAMES}{}\n}}", case.name, case.twin).unwrap();
    }
    project.add("src/bin/twins.rs", &(twins + "fn main() {}\n"));
    let log = cargo(project, &["check", "--bins", "--keep-going"]);
    let mut errors: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for line in log.lines() {
        // src/bin/NAME.rs:LINE:COLUMN: error[CODE]: message
        let Some((place, rest)) = line.split_once(": error") else { continue };
        let Some((file, _)) = place.strip_prefix("src/bin/").and_then(|p| p.split_once(".rs:")) else { continue };
        let (code, message) = match rest.strip_prefix('[').and_then(|r| r.split_once("]: ")) {
            Some((code, message)) => (code.to_owned(), message.to_owned()),
            None => ("-".to_owned(), rest.trim_start_matches(": ").to_owned()),
        };
        errors.entry(file.to_owned()).or_default().push((code, message));
    }
    assert!(log.contains("could not compile") || errors.is_empty(), "cargo failed:\n{log}");
    assert!(!errors.is_empty(), "nothing failed to compile; cargo says:\n{log}");
    errors
}

#[test]
fn what_must_not_compile() {
    let mut files: Vec<PathBuf> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect();
    files.sort();
    let cases: Vec<Case> = files.iter().flat_map(|file| cases(file)).collect();
    let errors = check(&project("compile-fail"), &cases);
    let mut wrong = String::new();
    for error in errors.get("twins").into_iter().flatten() {
        writeln!(wrong, "a twin does not compile: {error:?}").unwrap();
    }
    for case in &cases {
        match errors.get(&case.name) {
            None => writeln!(wrong, "{}: compiles, but should fail with {}", case.name, case.code).unwrap(),
            Some(found) if case.has_codes(found) => {
                if !found.iter().any(|(_, message)| message.contains(&case.text)) {
                    writeln!(wrong, "{}: the message should say {:?}: {found:?}", case.name, case.text).unwrap()
                }
            }
            Some(found) => writeln!(wrong, "{}: should fail with {}: {found:?}", case.name, case.code).unwrap(),
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    println!("{} cases, {} twins", cases.len(), cases.len());
}

/// Lengths of wide roots: the errors come when code is generated, so a library is built, with public functions.
#[test]
fn what_must_not_compile_when_code_is_generated() {
    let project = project("lengths");
    let make = |n: usize| {
        format!("pub fn make{n}(rt: &Runtime) -> WideRoot<[Int; {n}]> {{ WideRoot::new(rt, [int(0); {n}]) }}\n")
    };
    for (lengths, fails) in [(&[1, 2, 64][..], false), (&[0], true), (&[65], true), (&[1000], true)] {
        let functions: String = lengths.iter().map(|n| make(*n)).collect();
        project.add("src/lib.rs", &format!("{HEAD}{NAMES}{functions}"));
        let log = cargo(&project, &["build", "--lib"]);
        let refused = log.lines().any(|l| l.contains("error[E0080]: ") && l.contains("a wide root has 1 to 64 values"));
        assert_eq!(refused, fails, "{log}");
        assert_eq!(log.contains("Finished"), !fails, "{log}");
    }
}

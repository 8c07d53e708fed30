// SPDX-License-Identifier: MIT
//! `cargo ocaml-boxroot`: see the text of `--help`.
#![forbid(unsafe_code)]

mod archive;
mod generate;
mod library;

use generate::{Generate, Outcome};
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
Writes the OCaml side of a Rust library that uses ocaml-boxroot.

    cargo ocaml-boxroot generate [OPTIONS]

The library is built as a static library, and linked with a small OCaml program, which asks it for the text of its
files: NAME.ml, NAME.mli, NAME_imports.ml if it imports OCaml functions, and ocaml_boxroot.ml and .mli. NAME is that of
`library!`. Only files that differ are written.

    --out FOLDER            where the files are (default: the current folder)
    --check                 write nothing; print how the files differ, and end with exit code 1 if they do
    --bare                  without ocaml_boxroot.ml and .mli, which ocaml-boxroot-build adds to Rust programs
    --domains               also ocaml_boxroot_domains.ml, for Runtime::spawn_domain; the file is empty with OCaml 4

Options for cargo: -p, --package SPEC; --manifest-path FILE; --features LIST; --all-features; --no-default-features;
--release; --profile NAME; --target-dir FOLDER; --offline; --locked; --frozen; --config KEY=VALUE.

The OCaml compiler is the one that ocaml-boxroot is compiled against: OCAMLOPT, or ocamlopt in PATH, or that of the opam
switch. Exit codes: 0; 1 (--check: files differ); 2 (anything else).
";

/// Options that go to cargo, and whether they have a value.
const CARGO: [(&str, bool); 12] = [
    ("package", true),
    ("manifest-path", true),
    ("features", true),
    ("all-features", false),
    ("no-default-features", false),
    ("release", false),
    ("profile", true),
    ("target-dir", true),
    ("offline", false),
    ("locked", false),
    ("frozen", false),
    ("config", true),
];

enum Request {
    Help,
    Generate(Generate),
}

fn parse(mut parser: lexopt::Parser) -> Result<Request, lexopt::Error> {
    let mut generate = Generate::default();
    let mut command = None::<OsString>;
    let mut first = true;
    while let Some(argument) = parser.next()? {
        match argument {
            // cargo passes its subcommand's name.
            Value(word) if first && word == "ocaml-boxroot" => (),
            Value(word) if command.is_none() => command = Some(word),
            Short('h') | Long("help") => return Ok(Request::Help),
            Long("out") => generate.out = parser.value()?.into(),
            Long("check") => generate.check = true,
            Long("bare") => generate.bare = true,
            Long("domains") => generate.domains = true,
            Short('p') => generate.cargo.extend(["--package".into(), parser.value()?]),
            Long(name) => {
                let known = CARGO.iter().find(|known| known.0 == name);
                let Some((name, has_value)) = known else { return Err(argument.unexpected()) };
                generate.cargo.push(format!("--{name}").into());
                if *has_value {
                    generate.cargo.push(parser.value()?);
                }
            }
            _ => return Err(argument.unexpected()),
        }
        first = false;
    }
    match command {
        Some(word) if word == "generate" => Ok(Request::Generate(generate)),
        Some(word) => Err(format!("there is no command {}: it is `generate`", word.to_string_lossy()).into()),
        None => Ok(Request::Help),
    }
}

fn main() -> ExitCode {
    let outcome = match parse(lexopt::Parser::from_env()) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Generate(generate)) => generate.run(),
        Err(error) => Err(format!("{error}\n  cargo ocaml-boxroot --help lists the options")),
    };
    match outcome {
        Ok(Outcome::Agree) => ExitCode::SUCCESS,
        Ok(Outcome::Differ) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

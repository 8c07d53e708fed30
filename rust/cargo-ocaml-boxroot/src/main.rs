// SPDX-License-Identifier: MIT
//! `cargo ocaml-boxroot`: see the text of `--help`.
#![forbid(unsafe_code)]

mod archive;
mod generate;
mod library;
mod skeleton;

use generate::{Generate, Outcome};
use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;
use skeleton::New;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Bindings between Rust and OCaml that use ocaml-boxroot.

    cargo ocaml-boxroot new NAME [--dune | --cargo] [--from FOLDER | --registry]
    cargo ocaml-boxroot generate [OPTIONS]

`new` writes a small project, complete with a test, into a folder of that name.

    --dune                  Rust functions for OCaml, as a library of dune (this is what is made if nothing is said)
    --cargo                 OCaml functions for Rust, in a crate of Rust
    --from FOLDER           where the crates are: the folder `rust` of a clone (default: where this command was built)
    --registry              take the crates from cargo's registry

`generate` writes the OCaml side of a Rust library. The library is built as a static library, and linked with a small
OCaml program, which asks it for the text of its files: NAME.ml, NAME.mli, NAME_imports.ml if it imports OCaml
functions, and ocaml_boxroot.ml and .mli. NAME is that of `library!`. Only files that differ are written.

    --out FOLDER            where the files are (default: the current folder)
    --check                 write nothing; print how the files differ, and end with exit code 1 if they do
    --bare                  without ocaml_boxroot.ml and .mli, which the OCaml library ocaml-boxroot has, and
                            ocaml-boxroot-build adds to Rust programs

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
    New(New),
    Generate(Generate),
}

fn parse(mut parser: lexopt::Parser) -> Result<Request, lexopt::Error> {
    let mut first = true;
    let command = loop {
        match parser.next()? {
            // cargo passes its subcommand's name.
            Some(Value(word)) if first && word == "ocaml-boxroot" => first = false,
            Some(Value(word)) => break word,
            Some(Short('h') | Long("help")) | None => return Ok(Request::Help),
            Some(argument) => return Err(argument.unexpected()),
        }
    };
    match command.to_str() {
        Some("new") => parse_new(parser),
        Some("generate") => parse_generate(parser),
        _ => Err(format!("there is no command {}: they are `new` and `generate`", command.to_string_lossy()).into()),
    }
}

fn parse_new(mut parser: lexopt::Parser) -> Result<Request, lexopt::Error> {
    let (mut name, mut kind, mut from) = (None::<String>, None::<bool>, None::<Option<PathBuf>>);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) if name.is_none() => name = Some(word.string()?),
            Long("dune") if kind.is_none() => kind = Some(false),
            Long("cargo") if kind.is_none() => kind = Some(true),
            Long("from") if from.is_none() => from = Some(Some(absolute(parser.value()?)?)),
            Long("registry") if from.is_none() => from = Some(None),
            Short('h') | Long("help") => return Ok(Request::Help),
            _ => return Err(argument.unexpected()),
        }
    }
    let name = name.ok_or("`new` needs the name of the project")?;
    Ok(Request::New(New { name, cargo: kind.unwrap_or(false), from: from.unwrap_or_else(New::from_here) }))
}

fn absolute(path: OsString) -> Result<PathBuf, lexopt::Error> {
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.to_string_lossy()).into())
}

fn parse_generate(mut parser: lexopt::Parser) -> Result<Request, lexopt::Error> {
    let mut generate = Generate::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Long("out") => generate.out = parser.value()?.into(),
            Long("check") => generate.check = true,
            Long("bare") => generate.bare = true,
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
    }
    Ok(Request::Generate(generate))
}

fn main() -> ExitCode {
    let outcome = match parse(lexopt::Parser::from_env()) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::New(new)) => new.run().map(|()| Outcome::Agree),
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

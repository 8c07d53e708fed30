// SPDX-License-Identifier: MIT
//! Values that OCaml's compiler builds from text, beside those that Rust builds.

use crate::{assume, attached, marshal, unmarshal, OCAMLOPT};
use ocaml_boxroot::*;
use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

type Check = Box<dyn Fn(&mut Runtime, &[u8]) -> Result<(), String>>;

/// Values, as OCaml text and as what they are in Rust.
#[derive(Default)]
pub struct Batch {
    /// The definitions of their types.
    pub definitions: Definitions,
    text: String,
    checks: Vec<Check>,
}

impl Batch {
    /// Adds a value, and its text in OCaml.
    pub fn add<R>(&mut self, r: R, source: &str)
    where
        R: ToOCaml<Type: OCamlType> + for<'a> FromOCaml<'a> + Debug + 'static,
    {
        let ty = <R::Type as OCamlType>::describe(&mut self.definitions);
        let source = format!("({source} : {ty})");
        self.text += &format!("let () = out {source}\n");
        self.checks.push(Box::new(move |rt, theirs| {
            let same = |what: &str, same: bool| same.then_some(()).ok_or_else(|| format!("{what}\n{r:?}\n{source}"));
            let bytes = |rt: &mut Runtime, r: &R| {
                let ours = rt.alloc(r).unwrap().into_any().root();
                marshal(rt).call(rt, (&ours,)).unwrap().to_rust::<Vec<u8>>().unwrap()
            };
            same("made by Rust", bytes(rt, &r) == theirs)?;
            let value = unmarshal(rt).call(rt, (theirs,)).unwrap();
            let read = assume::<R::Type>(value.value().into_any()).to_rust::<R>(value.rt());
            let read = read.map_err(|error| format!("cannot be read: {error}\n{r:?}\n{source}"))?;
            same("read by Rust", format!("{read:?}") == format!("{r:?}"))?;
            // Floats that are not numbers look alike until they are made again.
            same("read and made again", bytes(rt, &read) == theirs)
        }));
    }

    /// Compiles the definitions and the values in a new folder, and compares each value with what Rust makes and reads.
    /// The error is about the first one that differs.
    pub fn run(self, folder: &Path, name: &str) -> Result<(), String> {
        assert!(self.definitions.clashes().is_empty(), "{:?}", self.definitions.clashes());
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "{}\nlet out x =\n  String.iter (fun c -> Printf.printf \"%02x\" (Char.code c)) (Marshal.to_string x \
             [ Marshal.No_sharing ]);\n  print_newline ()\n\n{}",
            self.definitions.text(),
            self.text
        );
        std::fs::write(folder.join("values.ml"), text).unwrap();
        // Documentation comments that belong to nothing, or to two things, are an error.
        let compiled = Command::new(OCAMLOPT)
            .current_dir(&folder)
            .args(["-w", "-a+50", "-warn-error", "+50", "values.ml", "-o", "values"])
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{}: {log}", folder.display());
        let output = Command::new(folder.join("values")).output().unwrap();
        assert!(output.status.success());
        let lines: Vec<&[u8]> = output.stdout.split(|c| *c == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), self.checks.len());
        attached(|rt| {
            for (line, check) in lines.iter().zip(&self.checks) {
                let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
                let bytes: Vec<u8> = line.chunks(2).map(|pair| digit(pair[0]) * 16 + digit(pair[1])).collect();
                check(rt, &bytes)?;
            }
            Ok(())
        })
    }
}

impl Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch of {}", self.checks.len())
    }
}

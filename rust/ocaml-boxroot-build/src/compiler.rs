// SPDX-License-Identifier: MIT
use crate::lookup::{self, Ocaml};
use crate::Error;
use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a build script is told which OCaml `ocaml-boxroot`, or the raw crate, was compiled against: of the packages
/// that depend on it directly.
const TOLD: [&str; 2] = ["DEP_OCAML_BOXROOT_SAFE_OCAML", "DEP_OCAML_BOXROOT_OCAML"];

/// An OCaml compiler for native code.
#[derive(Debug, Clone)]
pub struct Compiler {
    library: PathBuf,
    version: u32,
    command: Vec<OsString>,
    found_by: String,
}

impl Compiler {
    /// The compiler that `ocaml-boxroot` was compiled against, in the build script of a package that depends on it.
    /// Elsewhere the first of: `OCAML_WHERE_PATH`, `OCAMLOPT`, `ocamlopt` in `PATH`, that of the opam switch,
    /// `ocamlfind ocamlopt`. That is where `ocaml-boxroot-sys` looks, so it is the same in the same environment.
    ///
    /// The error lists each place, and what is wrong there.
    pub fn find() -> Result<Compiler, Error> {
        let told = TOLD.into_iter().find_map(|name| std::env::var_os(name).map(|folder| (name, folder)));
        let env = |name: &str| match &told {
            Some((_, folder)) if name == "OCAML_WHERE_PATH" => Some(folder.clone()),
            _ => std::env::var_os(name),
        };
        let mut ocaml = lookup::find(&env).map_err(|error| Error(format!("cannot find OCaml\n{error}")))?;
        if told.is_some() {
            ocaml.found_by = "as ocaml-boxroot was compiled against it".into();
        }
        let command = lookup::compiler_of(&ocaml, &env).map_err(|error| {
            let library = ocaml.library.display();
            Error(format!("cannot find the compiler whose standard library is {library}\n{error}"))
        })?;
        Ok(Compiler::new(ocaml, command))
    }

    pub(crate) fn new(ocaml: Ocaml, command: Vec<OsString>) -> Compiler {
        Compiler { library: ocaml.library, version: ocaml.version, command, found_by: ocaml.found_by }
    }

    /// The variables of the environment that decide which compiler is found.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        lookup::VARIABLES.into_iter()
    }

    /// The folder of the standard library.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Its version, such as `(5, 4, 1)`.
    pub fn version(&self) -> (u32, u32, u32) {
        (self.version / 10000, self.version / 100 % 100, self.version % 100)
    }

    /// `ocamlopt`.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    /// Another program of the same installation, such as `ocamldep`.
    pub fn tool(&self, name: &str) -> Result<Command, Error> {
        if let Some(ocamlfind) = self.ocamlfind_in_command() {
            let mut command = Command::new(ocamlfind);
            command.arg(name);
            return Ok(command);
        }
        let file = format!("{name}{EXE_SUFFIX}");
        let beside = Path::new(&self.command[0]).with_file_name(&file);
        let installed = self.library.join("../../bin").join(&file);
        let found = [&beside, &installed].into_iter().find(|path| path.is_file());
        match found {
            Some(path) => Ok(Command::new(path)),
            None => Err(self.lacks(&format!("the program {name}: there is no {}", beside.display()))),
        }
    }

    /// `ocamlfind`, where the compiler is called through it.
    pub(crate) fn ocamlfind_in_command(&self) -> Option<&OsStr> {
        let program = self.command[0].as_os_str();
        (Path::new(program).file_stem() == Some(OsStr::new("ocamlfind"))).then_some(program)
    }

    /// Where `ocamlfind` of this installation would be.
    pub(crate) fn ocamlfind_beside(&self) -> PathBuf {
        Path::new(&self.command[0]).with_file_name(format!("ocamlfind{EXE_SUFFIX}"))
    }

    /// The error that this compiler lacks something.
    pub(crate) fn lacks(&self, what: &str) -> Error {
        Error(format!("OCaml {self}\n  lacks {what}"))
    }

    /// Runs one of its programs; what it prints.
    pub(crate) fn run(&self, command: &mut Command) -> Result<String, Error> {
        let shown = format!("{command:?}").replace('"', "");
        let output =
            command.output().map_err(|error| Error(format!("cannot run `{shown}`: {error}\n  OCaml {self}")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let said = if said.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { said };
            let (said, status) = (said.trim(), output.status);
            return Err(Error(format!("`{shown}` failed ({status})\n{said}\n  OCaml {self}")));
        }
        if !said.trim().is_empty() {
            eprintln!("{}", said.trim_end());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Version, command, and what led to it.
impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        write!(f, "{} ({}; found by: {})", lookup::show(self.version), words.join(" "), self.found_by)
    }
}

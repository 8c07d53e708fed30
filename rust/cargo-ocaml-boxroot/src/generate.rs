// SPDX-License-Identifier: MIT
//! `cargo ocaml-boxroot generate`.
use crate::archive;
use crate::library::StaticLibrary;
use ocaml_boxroot_build::Compiler;
use similar::TextDiff;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug, Default)]
pub struct Generate {
    /// Where the files are; empty: the current folder.
    pub out: PathBuf,
    pub check: bool,
    /// Without the modules of ocaml-boxroot.
    pub bare: bool,
    /// Options of cargo.
    pub cargo: Vec<OsString>,
}

/// Whether the files are now as they are to be.
pub enum Outcome {
    Agree,
    Differ,
}

impl Generate {
    pub fn run(&self) -> Result<Outcome, String> {
        let library = StaticLibrary::build(&self.cargo)?;
        let compiler = Compiler::find().map_err(|error| error.to_string())?;
        let mut outcome = Outcome::Agree;
        for name in archive::libraries(&library.file)? {
            let program = Program::link(&compiler, &library, &name)?;
            let list = program.text("files")?;
            let wanted = |file: &&str| !(self.bare && file.starts_with("ocaml_boxroot."));
            let texts = list.lines().filter(wanted).map(|file| Ok((file, program.text(file)?)));
            for (file, text) in texts.collect::<Result<Vec<_>, String>>()? {
                if !self.file(file, &text)? {
                    outcome = Outcome::Differ;
                }
            }
        }
        Ok(outcome)
    }

    /// Writes or compares a file; whether it is now as it is to be.
    fn file(&self, name: &str, text: &str) -> Result<bool, String> {
        let path = self.out.join(name);
        let before = match fs::read_to_string(&path) {
            Ok(before) => Some(before),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        if before.as_deref() == Some(text) {
            return Ok(true);
        }
        if self.check {
            let before = before.unwrap_or_default();
            let diff = TextDiff::from_lines(&*before, text);
            let (old, new) = (path.display().to_string(), format!("{} (of the library)", path.display()));
            print!("{}", diff.unified_diff().header(&old, &new));
            return Ok(false);
        }
        let cannot = |error| format!("cannot write {}: {error}", path.display());
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        fs::write(&path, text).map_err(cannot)?;
        println!("wrote {}", path.display());
        Ok(true)
    }
}

/// An OCaml program that contains the library, and prints its texts.
struct Program(PathBuf);

impl Program {
    fn link(compiler: &Compiler, library: &StaticLibrary, name: &str) -> Result<Program, String> {
        let beside = library.file.parent().unwrap_or(Path::new("."));
        let folder = beside.join("ocaml-boxroot").join(name);
        let source = folder.join("generate.ml");
        let text = format!(
            "external text : string -> string = \"{name}_ocaml_text\"\n\
             let () = set_binary_mode_out stdout true; print_string (text Sys.argv.(1))\n"
        );
        let cannot = |error| format!("cannot write {}: {error}", source.display());
        fs::create_dir_all(&folder).map_err(cannot)?;
        fs::write(&source, text).map_err(cannot)?;
        let program = folder.join("generate");
        let mut command = compiler.command();
        command.current_dir(&folder).arg("generate.ml").arg(&library.file);
        for needed in &library.needs {
            command.args(["-cclib", needed]);
        }
        said(command.arg("-o").arg(&program)).map_err(|error| format!("{error}\n  OCaml {compiler}"))?;
        Ok(Program(program))
    }

    fn text(&self, file: &str) -> Result<String, String> {
        said(Command::new(&self.0).arg(file))
    }
}

/// What a command prints on standard output.
fn said(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}").replace('"', "");
    let output = command.output().map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{shown}` failed ({})\n{}", output.status, errors.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{shown}` printed something that is not UTF-8"))
}

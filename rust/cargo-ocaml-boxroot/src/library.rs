// SPDX-License-Identifier: MIT
//! The package's library as a static library, built by cargo.
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A static library, and what it is to be linked with.
#[derive(Debug, Default)]
pub struct StaticLibrary {
    pub file: PathBuf,
    /// Options of a linker, such as `-lm`.
    pub needs: Vec<String>,
}

/// How rustc says what a static library needs.
const NEEDS: &str = "native-static-libs: ";
/// What it says before that; older versions begin with a capital.
const BEFORE_NEEDS: &str = "link against the following native artifacts";

impl StaticLibrary {
    /// Builds it, with these options of cargo; its messages go to standard error.
    pub fn build(options: &[OsString]) -> Result<StaticLibrary, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(&cargo);
        command.args(["rustc", "--quiet", "--lib", "--crate-type", "staticlib", "--message-format", "json"]);
        command.args(options).args(["--", "--print", "native-static-libs"]);
        // Packages that contain OCaml (ocaml-boxroot-build) leave it out: the program that asks brings its own.
        command.env("OCAML_BOXROOT_WITHOUT_PROGRAM", "1").stdout(Stdio::piped());
        let cannot = |error| format!("cannot run {}: {error}", cargo.to_string_lossy());
        let mut child = command.spawn().map_err(cannot)?;
        let mut library = StaticLibrary::default();
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            library.read(&line.map_err(cannot)?);
        }
        let status = child.wait().map_err(cannot)?;
        match (status.success(), library.file.as_os_str().is_empty()) {
            (true, false) => Ok(library),
            (true, true) => Err("cargo named no static library".into()),
            (false, _) => Err(format!("cargo could not build the static library ({status})")),
        }
    }

    /// A message of cargo.
    fn read(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        match message["reason"].as_str() {
            Some("compiler-artifact") => {
                let kinds = message["target"]["crate_types"].as_array().into_iter().flatten();
                if !kinds.into_iter().any(|kind| kind == "staticlib") {
                    return;
                }
                let mut files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
                if let Some(file) = files.find(|file| file.ends_with(".a") || file.ends_with(".lib")) {
                    self.file = file.into();
                }
            }
            Some("compiler-message") => {
                let text = message["message"]["message"].as_str().unwrap_or_default();
                if let Some(needs) = text.strip_prefix(NEEDS) {
                    self.needs = needs.split_whitespace().map(String::from).collect();
                } else if !text.to_ascii_lowercase().starts_with(BEFORE_NEEDS) {
                    eprint!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
                }
            }
            _ => (),
        }
    }
}

#[test]
fn messages_of_cargo() {
    let mut library = StaticLibrary::default();
    library.read("not JSON");
    library.read(r#"{"reason":"compiler-artifact","target":{"crate_types":["lib"]},"filenames":["/x/libother.rlib"]}"#);
    library
        .read(r#"{"reason":"compiler-artifact","target":{"crate_types":["staticlib"]},"filenames":["/x/libtasks.a"]}"#);
    library.read(r#"{"reason":"compiler-message","message":{"message":"native-static-libs: -lm -lc"}}"#);
    assert_eq!((library.file, library.needs), ("/x/libtasks.a".into(), vec!["-lm".into(), "-lc".into()]));
}

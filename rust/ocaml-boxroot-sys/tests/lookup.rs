// SPDX-License-Identifier: MIT
//! How the build script finds OCaml, in made-up environments with made-up compilers.
#![cfg(unix)]

#[path = "../build/lookup.rs"]
mod lookup;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// A folder of its own for each test.
struct World {
    /// One test at a time: a program cannot be run while another thread, about to run its own, still has it open for
    /// writing.
    _alone: MutexGuard<'static, ()>,
    root: PathBuf,
    vars: Vec<(String, OsString)>,
}

impl World {
    fn new(name: &str) -> World {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lookup").join(name);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        World { _alone: alone, root: root.canonicalize().unwrap(), vars: Vec::new() }
    }
    fn path(&self, p: &str) -> PathBuf {
        self.root.join(p)
    }
    /// A standard library folder with the header of a version.
    fn library(&self, dir: &str, version: &str) -> PathBuf {
        let caml = self.path(dir).join("caml");
        std::fs::create_dir_all(&caml).unwrap();
        std::fs::write(
            caml.join("version.h"),
            format!("/* x */\n#define OCAML_VERSION_MAJOR 9\n#define OCAML_VERSION {}\n", version),
        )
        .unwrap();
        self.path(dir)
    }
    fn program(&self, file: &str, script: &str) {
        let file = self.path(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("#!/bin/sh\n{}\n", script)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    /// prefix/bin/ocamlopt with prefix/lib/ocaml, as an installation has them.
    fn install(&self, prefix: &str, version: &str) -> PathBuf {
        let library = self.library(&format!("{}/lib/ocaml", prefix), version);
        self.program(
            &format!("{}/bin/ocamlopt", prefix),
            &format!("[ \"$1\" = -where ] && echo '{}'", library.display()),
        );
        library
    }
    fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.vars.push((name.into(), value.as_ref().into()));
    }
    fn get(&self, name: &str) -> Option<OsString> {
        self.vars.iter().rev().find(|v| v.0 == name).map(|v| v.1.clone())
    }
    fn find(&self) -> Result<lookup::Ocaml, lookup::NotFound> {
        lookup::find(&|name| self.get(name))
    }
    fn error(&self) -> String {
        self.find().unwrap_err().to_string()
    }
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {:?} in:\n{}", part, text);
    }
}

#[test]
fn nothing_set_names_every_place() {
    let mut w = World::new("nothing");
    w.set("PATH", "/nonexistent/one:/nonexistent/two");
    let text = w.error();
    contains(
        &text,
        &[
            "1. OCAML_WHERE_PATH, a folder: not set",
            "2. OCAMLOPT, a command: not set",
            "3. ocamlopt in PATH: no program ocamlopt in /nonexistent/one, /nonexistent/two",
            "4. OPAM_SWITCH_PREFIX, the opam switch: not set",
            "5. `ocamlfind ocamlopt`, ocamlfind in PATH: no program ocamlfind in",
            "opam env",
        ],
    );
    assert!(!text.contains("nothing else was tried"));
}

#[test]
fn an_empty_environment_and_empty_variables() {
    let mut w = World::new("empty");
    contains(&w.error(), &["PATH is empty"]);
    for name in lookup::VARIABLES {
        w.set(name, "");
    }
    contains(&w.error(), &["1. OCAML_WHERE_PATH, a folder: not set", "PATH is empty"]);
}

#[test]
fn order_of_preference() {
    let mut w = World::new("order");
    let by_find = w.library("find", "50100");
    w.program("tools/ocamlfind", &format!("[ \"$1 $2\" = 'ocamlopt -where' ] && echo '{}'", by_find.display()));
    w.set("PATH", w.path("tools"));
    assert_eq!(w.find().unwrap().library, by_find);

    let by_opam = w.install("switch", "50200");
    w.set("OPAM_SWITCH_PREFIX", w.path("switch"));
    assert_eq!(w.find().unwrap().library, by_opam);

    let by_path = w.install("usr", "50300");
    w.set("PATH", format!("{}:{}", w.path("tools").display(), w.path("usr/bin").display()));
    assert_eq!(w.find().unwrap().library, by_path);

    let by_command = w.install("mine", "50400");
    w.set("OCAMLOPT", w.path("mine/bin/ocamlopt"));
    let found = w.find().unwrap();
    assert_eq!((found.library, found.version), (by_command.clone(), 50400));
    contains(&found.found_by, &["OCAMLOPT="]);

    let by_where = w.library("headers", "41400");
    w.set("OCAML_WHERE_PATH", &by_where);
    let found = w.find().unwrap();
    assert_eq!(found.library, by_where);
    assert!(found.compiler.is_empty());
}

#[test]
fn ocamlopt_may_have_arguments_or_spaces() {
    let mut w = World::new("command");
    let library = w.library("lib", "50401");
    w.program("bin/ocamlfind", &format!("[ \"$1 $2\" = 'ocamlopt -where' ] && echo '{}'", library.display()));
    w.set("PATH", w.path("bin"));
    w.set("OCAMLOPT", "ocamlfind ocamlopt");
    assert_eq!(w.find().unwrap().library, library);

    let library = w.install("a folder", "50401");
    w.set("OCAMLOPT", w.path("a folder/bin/ocamlopt"));
    assert_eq!(w.find().unwrap().library, library);
}

#[test]
fn a_set_variable_decides_alone() {
    let mut w = World::new("decides");
    w.install("usr", "50401");
    w.set("PATH", w.path("usr/bin"));
    w.set("OCAMLOPT", "no-such-ocamlopt");
    contains(
        &w.error(),
        &[
            "OCAMLOPT=no-such-ocamlopt: no program no-such-ocamlopt in",
            "OCAMLOPT is set, so nothing else was tried",
            "unset it",
        ],
    );

    w.set("OCAMLOPT", w.path("no/ocamlopt"));
    contains(&w.error(), &["no such file: "]);

    w.program("broken", "echo 'cannot load something' >&2; exit 3");
    w.set("OCAMLOPT", w.path("broken"));
    contains(&w.error(), &["-where` failed", "exit status: 3", "cannot load something"]);

    w.program("silent", "true");
    w.set("OCAMLOPT", w.path("silent"));
    contains(&w.error(), &["printed nothing"]);

    w.set("OCAML_WHERE_PATH", w.path("nowhere"));
    contains(&w.error(), &["OCAML_WHERE_PATH=", "is not a folder", "OCAML_WHERE_PATH is set"]);

    std::fs::create_dir_all(w.path("empty")).unwrap();
    w.set("OCAML_WHERE_PATH", w.path("empty"));
    contains(&w.error(), &["cannot read the C header", "version.h"]);
}

#[test]
fn old_versions_are_refused_by_name_and_passed_over() {
    let mut w = World::new("old");
    w.install("usr", "41302");
    w.set("PATH", w.path("usr/bin"));
    contains(&w.error(), &["holds OCaml 4.13.2; 4.14 or later is needed"]);

    let library = w.install("switch", "41400");
    w.set("OPAM_SWITCH_PREFIX", w.path("switch"));
    assert_eq!(w.find().unwrap().library, library);

    w.set("OCAML_WHERE_PATH", w.library("ancient", "40800"));
    contains(&w.error(), &["OCaml 4.08.0; 4.14 or later is needed"]);
}

#[test]
fn the_compiler_of_a_folder() {
    let mut w = World::new("compiler");
    w.install("other", "50401");
    w.set("PATH", w.path("other/bin"));
    let library = w.install("mine", "50401");
    w.set("OCAML_WHERE_PATH", &library);
    let ocaml = w.find().unwrap();
    let compiler = lookup::compiler_of(&ocaml, &|name| w.get(name)).unwrap();
    assert_eq!(lookup::output(&compiler, &[OsStr::new("-where")], None).unwrap(), library.display().to_string());

    // The compiler of another installation is not taken.
    std::fs::remove_file(w.path("mine/bin/ocamlopt")).unwrap();
    let text = lookup::compiler_of(&ocaml, &|name| w.get(name)).unwrap_err().to_string();
    contains(&text, &["beside the library", "its library is", "other/lib/ocaml, not"]);
    assert_eq!(lookup::show(50401), "5.4.1");
}

// SPDX-License-Identifier: MIT
//! Links the OCaml runtime and an empty OCaml program, for tests that start OCaml from Rust.

use crate::lookup::{output, Ocaml};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Compiles the empty program in `out_dir` and prints the link directives.
pub fn link(ocaml: &Ocaml, compiler: &[OsString], out_dir: &Path) -> Result<(), String> {
    std::fs::write(out_dir.join("boxroot_dummy.ml"), "")
        .map_err(|e| format!("cannot write to {}: {}", out_dir.display(), e))?;
    let args = ["-output-obj", "-o", "boxroot_dummy_program.o", "boxroot_dummy.ml"];
    output(compiler, &args.map(OsStr::new), Some(out_dir))?;
    cc::Build::new()
        .object(out_dir.join("boxroot_dummy_program.o"))
        .try_compile("ocaml-boxroot-dummy")
        .map_err(|e| e.to_string())?;

    println!("cargo:rustc-link-search=native={}", ocaml.library.display());
    println!("cargo:rustc-link-lib=static={}", runtime_archive(&ocaml.library)?);
    let libraries = output(compiler, &["-config-var", "native_c_libraries"].map(OsStr::new), None)?;
    for word in libraries.split_whitespace() {
        if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", name);
        } else if let Some(dir) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", dir);
        } else {
            println!("cargo:rustc-link-arg={}", word);
        }
    }
    Ok(())
}

/// The position-independent archive when there is one: Rust's programs are position independent.
fn runtime_archive(library: &Path) -> Result<&'static str, String> {
    ["asmrun_pic", "asmrun"].into_iter().find(|name| library.join(format!("lib{}.a", name)).is_file()).ok_or_else(
        || {
            format!(
                "{} holds neither libasmrun_pic.a nor libasmrun.a: a runtime for native code is needed",
                library.display()
            )
        },
    )
}

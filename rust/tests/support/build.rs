// SPDX-License-Identifier: MIT
//! Compiles program.ml and compare.c, and links it with OCaml's runtime. OCAML_RUNTIME_VARIANT=d takes the debug
//! runtime; OCAML_RUNTIME_FOLDER is where a variant is that did not come with OCaml.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=program.ml");
    println!("cargo:rerun-if-changed=own.ml");
    println!("cargo:rerun-if-changed=own.c");
    println!("cargo:rerun-if-changed=blocking.c");
    println!("cargo:rustc-check-cfg=cfg(ocaml5, float16)");
    println!("cargo:rerun-if-changed=../../ocaml-boxroot/ocaml");
    println!("cargo:rerun-if-env-changed=OCAML_RUNTIME_VARIANT");
    println!("cargo:rerun-if-env-changed=OCAML_RUNTIME_FOLDER");
    let library = PathBuf::from(std::env::var_os("DEP_OCAML_BOXROOT_SAFE_OCAML").expect("the OCaml of ocaml-boxroot"));
    println!("cargo:rerun-if-changed={}", library.join("caml/version.h").display());
    let compiler = library.join("../../bin/ocamlopt");
    println!("cargo:rustc-env=TESTING_OCAMLOPT={}", compiler.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let variant = match std::env::var("OCAML_RUNTIME_VARIANT") {
        Ok(variant) if !variant.is_empty() => variant,
        _ if library.join("libasmrun_pic.a").is_file() => "_pic".into(),
        _ => String::new(),
    };

    let version = run(Command::new(&compiler).arg("-version"));
    if !["4.", "5.0.", "5.1."].iter().any(|old| version.starts_with(old)) {
        println!("cargo:rustc-cfg=float16");
    }
    if !version.starts_with('4') {
        println!("cargo:rustc-cfg=ocaml5");
    }
    println!("cargo:rerun-if-changed=effects5.ml");
    match version.starts_with('4') {
        true => std::fs::write(out.join("effects5.ml"), "").expect("write to OUT_DIR"),
        false => copy("effects5.ml", &out),
    }
    copy("../../ocaml-boxroot/ocaml/ocaml_boxroot.ml", &out);
    copy("program.ml", &out);
    copy("own.ml", &out);
    let sources = ["ocaml_boxroot.ml", "effects5.ml", "own.ml", "program.ml"];
    run(Command::new(&compiler)
        .current_dir(&out)
        .args(["-g", "-I", "+unix", "-I", "+threads", "unix.cmxa", "threads.cmxa"])
        .args(["-output-obj", "-o", "testing_program.o"])
        .args(sources));
    cc::Build::new().object(out.join("testing_program.o")).compile("testing_program");
    println!("cargo:rerun-if-changed=compare.c");
    let include = std::env::var_os("DEP_OCAML_BOXROOT_SAFE_INCLUDE").expect("the headers of ocaml-boxroot");
    cc::Build::new()
        .file("compare.c")
        .file("own.c")
        .file("blocking.c")
        .include(include)
        .include(&library)
        .opt_level(2)
        .compile("testing_compare");
    // In the order in which they refer to each other. OCaml 4 calls one of them differently.
    if let Ok(folder) = std::env::var("OCAML_RUNTIME_FOLDER") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-search=native={}", library.display());
    let unix = if library.join("libunixnat.a").is_file() { "unixnat" } else { "unix" };
    for name in ["threadsnat", unix, &format!("asmrun{variant}")] {
        println!("cargo:rustc-link-lib=static={name}");
    }
    for word in run(Command::new(&compiler).args(["-config-var", "native_c_libraries"])).split_whitespace() {
        if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={name}");
        }
    }
}

fn copy(file: &str, out: &Path) {
    let from = Path::new(file);
    std::fs::copy(from, out.join(from.file_name().expect("a file"))).expect("copy to OUT_DIR");
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

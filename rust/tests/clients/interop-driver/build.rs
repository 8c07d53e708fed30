// SPDX-License-Identifier: MIT
//! Compiles the OCaml program with the compiler in OCAMLOPT and links it with the runtime and the threads library.
use std::{env, path::Path, process::Command};

fn ocamlopt(dir: &str, args: &[&str]) -> String {
    let compiler = env::var("OCAMLOPT").expect("OCAMLOPT is set");
    let out = Command::new(compiler).current_dir(dir).args(args).output().expect("the compiler runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

fn main() {
    println!("cargo:rerun-if-changed=driver.ml");
    println!("cargo:rerun-if-env-changed=OCAMLOPT");
    let out = env::var("OUT_DIR").unwrap();
    let library = ocamlopt(".", &["-where"]);
    std::fs::copy("driver.ml", format!("{out}/driver.ml")).unwrap();
    ocamlopt(
        &out,
        &[
            "-I",
            "+unix",
            "-I",
            "+threads",
            "unix.cmxa",
            "threads.cmxa",
            "-output-obj",
            "-o",
            "driver_program.o",
            "driver.ml",
        ],
    );
    // libunixnat.a was called libunix.a in OCaml 4.
    let unix = if Path::new(&library).join("libunixnat.a").exists() { "-lunixnat" } else { "-lunix" };
    let libraries = ocamlopt(".", &["-config-var", "native_c_libraries"]);
    let object = format!("{out}/driver_program.o");
    let search = format!("-L{library}");
    for arg in [&object, &search, "-lthreadsnat", unix, "-lasmrun_pic"].into_iter().chain(libraries.split_whitespace())
    {
        println!("cargo:rustc-link-arg={arg}");
    }
}

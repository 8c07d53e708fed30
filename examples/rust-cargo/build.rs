// SPDX-License-Identifier: MIT
//! Compiles the OCaml part. The files with the names of the library are written by
//! `cargo ocaml-boxroot generate --bare --out ocaml`.
fn main() {
    ocaml_boxroot_build::Build::new()
        .files(["ocaml/formula.ml", "ocaml/interpreter.ml", "ocaml/formula_imports.ml"])
        .package("str")
        .compile("program");
}

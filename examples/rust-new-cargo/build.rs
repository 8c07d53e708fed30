// SPDX-License-Identifier: MIT
//! Compiles the OCaml part. When src/lib.rs has changed, `cargo ocaml-boxroot generate --bare --out ocaml` writes the
//! files with the name of the library.
fn main() {
    ocaml_boxroot_build::Build::new()
        .files(["ocaml/my_binding.ml", "ocaml/counter.ml", "ocaml/my_binding_imports.ml"])
        .package("threads") // so that any thread of Rust can use OCaml
        .compile("my_binding");
}

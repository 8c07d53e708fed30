// SPDX-License-Identifier: MIT
//! Compiles the C glue against the OCaml that the raw crate found.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=glue/glue.c");
    println!("cargo:rustc-check-cfg=cfg(ocaml5, flat_float_array)");
    let folder = |key: &str| std::env::var_os(format!("DEP_OCAML_BOXROOT_{key}"));
    // Absent where the raw crate was built without the C library, as for documentation.
    let (Some(include), Some(ocaml)) = (folder("INCLUDE"), folder("OCAML")) else { return };
    println!("cargo:ocaml={}", ocaml.to_string_lossy());
    println!("cargo:include={}", include.to_string_lossy());
    let header = |name| std::fs::read_to_string(std::path::Path::new(&ocaml).join(name)).unwrap_or_default();
    if header("caml/m.h").lines().any(|line| line.trim() == "#define FLAT_FLOAT_ARRAY 1") {
        println!("cargo:rustc-cfg=flat_float_array");
    }
    let version = header("caml/version.h");
    let major = version.lines().find_map(|line| line.strip_prefix("#define OCAML_VERSION_MAJOR "));
    if major.is_some_and(|number| number.trim() != "4") {
        println!("cargo:rustc-cfg=ocaml5");
    }
    let mut build = cc::Build::new();
    build.file("glue/glue.c").include(include).include(ocaml).define("NATIVE_CODE", None).std("gnu11");
    if std::env::var_os("CARGO_FEATURE_CHECKED").is_some() {
        build.define("BOXROOT_DEBUG", "1");
    }
    if let Err(error) = build.try_compile("ocaml-boxroot-glue") {
        eprintln!("error: ocaml-boxroot: cannot compile the C glue\n  {error}");
        std::process::exit(1);
    }
}

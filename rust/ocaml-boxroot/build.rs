// SPDX-License-Identifier: MIT
//! Compiles the C glue against the OCaml that the raw crate found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=glue");
    println!("cargo:rerun-if-changed=ocaml");
    println!("cargo:rustc-check-cfg=cfg(ocaml5, flat_float_array)");
    let version =
        std::env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION").replace(['.', '-', '+'], "_");
    println!("cargo:rustc-env=OBX_VERSION={version}");
    let folder = |key: &str| std::env::var_os(format!("DEP_OCAML_BOXROOT_{key}"));
    // Absent where the raw crate was built without the C library, as for documentation.
    let (Some(include), Some(ocaml)) = (folder("INCLUDE"), folder("OCAML")) else { return };
    println!("cargo:ocaml={}", ocaml.to_string_lossy());
    println!("cargo:include={}", include.to_string_lossy());
    println!("cargo:modules={}", modules().display());
    let header = |name| std::fs::read_to_string(Path::new(&ocaml).join(name)).unwrap_or_default();
    if header("caml/m.h").lines().any(|line| line.trim() == "#define FLAT_FLOAT_ARRAY 1") {
        println!("cargo:rustc-cfg=flat_float_array");
    }
    let numbers = header("caml/version.h");
    let major = numbers.lines().find_map(|line| line.strip_prefix("#define OCAML_VERSION_MAJOR "));
    if major.is_some_and(|number| number.trim() != "4") {
        println!("cargo:rustc-cfg=ocaml5");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let names: String = names().iter().map(|name| format!("#define {name} {name}_v{version}\n")).collect();
    std::fs::write(out.join("obx_names.h"), names).expect("write to OUT_DIR");
    let mut build = cc::Build::new();
    build.file("glue/all.c").include(out).include(include).include(ocaml).define("NATIVE_CODE", None).std("gnu11");
    if std::env::var_os("CARGO_FEATURE_CHECKED").is_some() {
        build.define("BOXROOT_DEBUG", "1");
    }
    // As the C library was compiled, whoever asked for it.
    if folder("DYNAMIC_TLS").is_some() {
        build.define("BOXROOT_TLS_DYNAMIC", "1");
    }
    if let Err(error) = build.try_compile("ocaml-boxroot-glue") {
        eprintln!("error: ocaml-boxroot: cannot compile the C glue\n  {error}");
        std::process::exit(1);
    }
}

/// All names in the glue that begin with `obx_`.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir("glue").expect("the folder glue") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a text");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        names.extend(words.filter(|word| word.starts_with("obx_")).map(str::to_owned));
    }
    // The header that they are written to.
    names.remove("obx_names");
    names
}

/// The folder of the OCaml modules, for ocaml-boxroot-build. A copy in OUT_DIR, which stays where it is when a sandbox
/// with this package's sources is gone.
fn modules() -> PathBuf {
    let to = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("ocaml");
    let copy = || -> std::io::Result<()> {
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir("ocaml")? {
            let file = file?;
            std::fs::write(to.join(file.file_name()), std::fs::read(file.path())?)?;
        }
        Ok(())
    };
    if let Err(error) = copy() {
        eprintln!("error: ocaml-boxroot: cannot copy the OCaml modules to {}\n  {error}", to.display());
        std::process::exit(1);
    }
    to
}

// SPDX-License-Identifier: MIT
//! Compiles the C library against the OCaml found by build/lookup.rs.

#[path = "build/lookup.rs"]
mod lookup;
#[path = "build/runtime.rs"]
mod runtime;

use std::path::{Path, PathBuf};

fn main() {
    let bundle = feature("BUNDLE_BOXROOT");
    let link_runtime = feature("LINK_OCAML_RUNTIME_AND_DUMMY_PROGRAM");
    for file in ["build.rs", "build", "vendor/include", "vendor/src"] {
        println!("cargo:rerun-if-changed={}", file);
    }
    println!("cargo:rustc-check-cfg=cfg(boxroot_thread_words, values(none(), \"ocaml4\", \"ocaml5\"))");
    if !bundle && !link_runtime {
        println!("cargo:rustc-env=BOXROOT_OCAML=not_known"); // for names that are not used then
        return;
    }
    for name in lookup::VARIABLES {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    let env = |name: &str| std::env::var_os(name);
    let ocaml = lookup::find(&env).unwrap_or_else(|e| {
        let other = "turn off the feature `bundle-boxroot`, if the program gets the C library in another way";
        fail("cannot find OCaml", &format!("{}\n    - {}", e, other))
    });
    println!("cargo:rerun-if-changed={}", ocaml.library.join("caml/version.h").display());
    println!("cargo:rustc-env=BOXROOT_OCAML={}", ocaml.version);
    warn_about_other_switch(&ocaml);

    if bundle {
        compile(&ocaml);
        if let Some(words) = thread_words(&ocaml) {
            // The first for cfg(boxroot_thread_words).
            println!("cargo:rustc-cfg=boxroot_thread_words");
            println!("cargo:rustc-cfg=boxroot_thread_words=\"{}\"", words);
        }
    }
    if link_runtime {
        let compiler = lookup::compiler_of(&ocaml, &env).unwrap_or_else(|e| {
            fail(&format!("cannot find the compiler of {}", ocaml.library.display()), &e.to_string())
        });
        let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        runtime::link(&ocaml, &compiler, &out_dir).unwrap_or_else(|e| {
            fail("cannot link the OCaml runtime", &indent(&format!("{}\nOCaml found by: {}", e, ocaml.found_by)))
        });
    }
}

fn compile(ocaml: &lookup::Ocaml) {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let include = root.join("vendor/include");
    let source = Path::new("vendor/src/all.c");
    if !source.is_file() {
        fail(
            "the C sources are missing",
            &format!(
                "  {} should hold src/all.c; in a checkout it is a link to the C library's folder.",
                root.join("vendor").display()
            ),
        );
    }
    let mut build = cc::Build::new();
    build.file(source).include("vendor/include").include(&ocaml.library);
    if feature("CHECKED") {
        build.define("BOXROOT_DEBUG", "1");
    }
    if feature("DYNAMIC_TLS") {
        build.define("BOXROOT_TLS_DYNAMIC", "1");
        println!("cargo:dynamic_tls=1");
    }
    build.try_compile("ocaml-boxroot").unwrap_or_else(|e| {
        fail(
            "cannot compile the C library",
            &indent(&format!("{}\nOCaml {} found by: {}", e, lookup::show(ocaml.version), ocaml.found_by)),
        )
    });
    // For build scripts of crates that depend on this one: DEP_OCAML_BOXROOT_INCLUDE, DEP_OCAML_BOXROOT_OCAML,
    // DEP_OCAML_BOXROOT_DYNAMIC_TLS.
    println!("cargo:include={}", headers(&include).display());
    println!("cargo:ocaml={}", ocaml.library.display());
}

/// A copy of the headers in OUT_DIR, which stays where it is when a sandbox with this crate's sources is gone.
fn headers(from: &Path) -> PathBuf {
    let to = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("include");
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let (entry, to) = entry.map(|e| (e.path(), to.join(e.file_name())))?;
            if entry.is_dir() {
                copy(&entry, &to)?;
            } else {
                std::fs::write(&to, std::fs::read(&entry)?)?;
            }
        }
        Ok(())
    }
    if let Err(e) = copy(from, &to) {
        fail("cannot copy the headers", &format!("  to {}: {}", to.display(), e));
    }
    to
}

/// Which thread-local words src/inline.rs can read by inline assembly: those of the inline functions in C, where these
/// use the initial-exec model (BXR_TLS_MODEL in config.h). tests/header.rs compares the names with what the C compiler
/// uses. None: calls.
fn thread_words(ocaml: &lookup::Ocaml) -> Option<&'static str> {
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{}", name)).unwrap_or_default();
    let model = target("OS") == "linux" && target("ENV") == "gnu" && target("POINTER_WIDTH") == "64";
    let miri = std::env::var_os("CARGO_CFG_MIRI").is_some();
    let assembly = ["x86_64", "aarch64"].contains(&target("ARCH").as_str()) && !miri;
    if feature("CHECKED") || feature("DYNAMIC_TLS") || !model || !assembly {
        None
    } else if ocaml.version < 50000 {
        Some("ocaml4")
    } else {
        // Whether the runtime's own word can be used directly.
        let settings = std::fs::read_to_string(ocaml.library.join("caml/s.h")).unwrap_or_default();
        settings.lines().any(|line| line.starts_with("#define HAS_FULL_THREAD_VARIABLES")).then_some("ocaml5")
    }
}

/// PATH and the opam environment disagree: a frequent cause of confusion.
fn warn_about_other_switch(ocaml: &lookup::Ocaml) {
    if let (Some(program), Some(prefix)) = (ocaml.compiler.first(), std::env::var_os("OPAM_SWITCH_PREFIX")) {
        if !prefix.is_empty() && !ocaml.library.starts_with(&prefix) && !Path::new(program).starts_with(&prefix) {
            println!(
                "cargo:warning=using OCaml {} of {}, which is not in the opam switch {}; set OCAMLOPT to choose",
                lookup::show(ocaml.version),
                Path::new(program).display(),
                Path::new(&prefix).display()
            );
        }
    }
}

fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{}", name)).is_some()
}

fn indent(text: &str) -> String {
    text.lines().map(|l| format!("  {}\n", l)).collect::<String>().trim_end().to_owned()
}

fn fail(what: &str, detail: &str) -> ! {
    eprintln!("error: ocaml-boxroot-sys: {}\n{}", what, detail);
    std::process::exit(1)
}

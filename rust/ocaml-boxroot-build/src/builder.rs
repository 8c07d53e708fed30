// SPDX-License-Identifier: MIT
use crate::packages::Libraries;
use crate::{Compiler, Error};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Set by `cargo ocaml-boxroot generate`, which needs the Rust part only, and brings another OCaml program.
const WITHOUT: &str = "OCAML_BOXROOT_WITHOUT_PROGRAM";
/// Where the OCaml modules of ocaml-boxroot are: told to the build scripts of packages that depend on it directly.
const MODULES: &str = "DEP_OCAML_BOXROOT_SAFE_MODULES";

/// The OCaml part of a Rust program: its files and libraries.
///
/// Beside the files given here it has the module `Ocaml_boxroot` (the exceptions that Rust raises), where the package
/// depends on `ocaml-boxroot`.
#[derive(Debug, Clone, Default)]
pub struct Build {
    files: Vec<PathBuf>,
    sorted: bool,
    packages: Vec<String>,
    flags: Vec<OsString>,
    c_libraries: Vec<String>,
    runtime_variant: Option<String>,
}

impl Build {
    /// Nothing yet.
    pub fn new() -> Build {
        Build::default()
    }

    /// Adds an OCaml file, relative to the package's folder. Files are compiled and linked in the order in which they
    /// are given. An interface (`.mli`) beside its implementation is found, and need not be given.
    pub fn file(&mut self, file: impl Into<PathBuf>) -> &mut Build {
        self.files.push(file.into());
        self
    }

    /// Adds OCaml files; see [`file`](Build::file).
    pub fn files(&mut self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> &mut Build {
        self.files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Orders the files by what they refer to, as `ocamldep -sort` does, instead of in the order given.
    pub fn sorted(&mut self) -> &mut Build {
        self.sorted = true;
        self
    }

    /// Adds a library by the name of its package, with what it needs. `unix`, `threads`, `str`, `dynlink` and
    /// `runtime_events` come with OCaml; others are found by `ocamlfind`.
    pub fn package(&mut self, name: impl Into<String>) -> &mut Build {
        self.packages.push(name.into());
        self
    }

    /// Adds a C library, as `-lNAME` of the linker does. (C files are compiled by the crate `cc`.)
    pub fn c_library(&mut self, name: impl Into<String>) -> &mut Build {
        self.c_libraries.push(name.into());
        self
    }

    /// Adds an option of `ocamlopt`, for compiling and linking.
    pub fn flag(&mut self, flag: impl Into<OsString>) -> &mut Build {
        self.flags.push(flag.into());
        self
    }

    /// Takes another variant of OCaml's runtime: `d` for the debug runtime. (Default: the position-independent one, if
    /// there is one.) It is looked for beside the compiler's own, and in folders given by `flag("-I").flag(FOLDER)`:
    /// there, `_outheap_pic` is what `outheap-build --flavours pic` wrote.
    pub fn runtime_variant(&mut self, variant: impl Into<String>) -> &mut Build {
        self.runtime_variant = Some(variant.into());
        self
    }

    /// Compiles all of it to the library `name` in `OUT_DIR`, and tells cargo to link it, and when to do so again. A
    /// program does this once. An error ends the build script, with a message.
    ///
    /// In a package with a library, that is what it is linked with: a binary of the same package must use the library.
    pub fn compile(&self, name: &str) {
        if let Err(error) = self.try_compile(name) {
            eprintln!("error: ocaml-boxroot-build: {error}");
            std::process::exit(1)
        }
    }

    /// As [`compile`](Build::compile), but returns errors.
    pub fn try_compile(&self, name: &str) -> Result<(), Error> {
        for variable in Compiler::variables().chain([WITHOUT]) {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        if std::env::var_os(WITHOUT).is_some() {
            return Ok(()); // some of the files may be about to be written
        }
        for file in self.with_interfaces()? {
            println!("cargo:rerun-if-changed={}", file.display());
        }
        let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
        let out = out.ok_or_else(|| Error("OUT_DIR is not set: this is to be called by a build script".into()))?;
        let compiler = Compiler::find()?;
        println!("cargo:rerun-if-changed={}", compiler.library().join("caml/version.h").display());
        let mut libraries = Libraries::find(&compiler, &self.packages)?;
        libraries.add_runtime(&compiler.run(compiler.command().args(["-config-var", "native_c_libraries"]))?);
        let object = self.object(&compiler, &libraries, &out, name)?;
        cc::Build::new().cargo_metadata(false).object(&object).try_compile(name).map_err(|error| {
            let object = object.display();
            Error(format!("cannot make a library of {object}: {error}\n  OCaml {compiler}"))
        })?;
        // All of it: OCaml's runtime, to which only other crates refer, is needed as a whole, and by them.
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=static:+whole-archive,-bundle={name}");
        for library in &self.c_libraries {
            println!("cargo:rustc-link-lib={library}");
        }
        for directive in &libraries.directives {
            println!("cargo:{directive}");
        }
        Ok(())
    }

    /// The files, each interface in front of its implementation.
    fn with_interfaces(&self) -> Result<Vec<PathBuf>, Error> {
        let mut all = Vec::new();
        for file in &self.files {
            if !file.is_file() {
                return Err(Error(format!("there is no file {}", file.display())));
            }
            let interface = file.with_extension("mli");
            match file.extension().and_then(|end| end.to_str()) {
                Some("ml") if interface.is_file() && !all.contains(&interface) => all.push(interface),
                Some("ml" | "mli") => (),
                _ => return Err(Error(format!("{} is neither .ml nor .mli", file.display()))),
            }
            if !all.contains(file) {
                all.push(file.clone());
            }
        }
        Ok(all)
    }

    /// The object file with the whole program.
    fn object(&self, compiler: &Compiler, libraries: &Libraries, out: &Path, name: &str) -> Result<PathBuf, Error> {
        let folder = out.join(format!("{name}.ocaml"));
        let io = |error: std::io::Error| Error(format!("cannot write to {}: {error}", out.display()));
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(io)?;
        }
        fs::create_dir_all(&folder).map_err(io)?;
        let mut files = support(&folder)?;
        files.extend(self.order(compiler)?);
        let mut modules = Vec::new();
        let mut known = BTreeSet::new();
        for file in &files {
            let stem = file.file_stem().unwrap_or_default();
            let interface = file.extension().is_some_and(|end| end == "mli");
            if !known.insert((stem.to_owned(), interface)) {
                let stem = stem.to_string_lossy();
                return Err(Error(format!("two files are named {stem}: OCaml's modules are named after their files")));
            }
            let result = folder.join(stem).with_extension(if interface { "cmi" } else { "cmx" });
            let mut command = compiler.command();
            command.args(["-g", "-c", "-I"]).arg(&folder);
            libraries.folders.iter().for_each(|folder| {
                command.arg("-I").arg(folder);
            });
            compiler.run(command.args(&self.flags).arg("-o").arg(&result).arg(file))?;
            if !interface {
                modules.push(result);
            }
        }
        let object = out.join(format!("{name}.o")); // not beside the modules' files: a module may have this name
        let mut command = compiler.command();
        command.args(["-g", "-output-complete-obj", "-noautolink"]).args(&self.flags);
        if let Some(variant) = self.variant(compiler)? {
            command.args(["-runtime-variant", &variant]);
        }
        libraries.folders.iter().for_each(|folder| {
            command.arg("-I").arg(folder);
        });
        command.args(&libraries.archives).args(&modules).args(&libraries.stubs).arg("-o").arg(&object);
        compiler.run(&mut command)?;
        Ok(object)
    }

    /// The files, in the order in which they are compiled.
    fn order(&self, compiler: &Compiler) -> Result<Vec<PathBuf>, Error> {
        let files = self.with_interfaces()?;
        if !self.sorted || files.is_empty() {
            return Ok(files);
        }
        // One file a line is not offered, and a name may have spaces: names are looked for in the answer.
        let answer = compiler.run(compiler.tool("ocamldep")?.arg("-sort").args(&files))?;
        let (mut left, mut order) = (answer.as_str(), Vec::new());
        while !left.trim_start().is_empty() {
            left = left.trim_start();
            let next = files.iter().filter(|file| left.starts_with(&*file.to_string_lossy()));
            let Some(next) = next.max_by_key(|file| file.as_os_str().len()) else {
                return Err(Error(format!("`ocamldep -sort` named a file that was not asked for: {left}")));
            };
            order.push(next.clone());
            left = &left[next.to_string_lossy().len()..];
        }
        Ok(order)
    }

    fn variant(&self, compiler: &Compiler) -> Result<Option<String>, Error> {
        let file = |variant: &str| compiler.library().join(format!("libasmrun{variant}.a"));
        let mut folders = self.flags.windows(2).filter(|pair| pair[0] == "-I").map(|pair| Path::new(&pair[1]));
        match &self.runtime_variant {
            Some(variant) if file(variant).is_file() => Ok(Some(variant.clone())),
            Some(variant) if folders.any(|folder| folder.join(format!("libasmrun{variant}.a")).is_file()) => {
                Ok(Some(variant.clone()))
            }
            Some(variant) => {
                let file = file(variant);
                let where_else = "nor is there one in a folder given by `-I`";
                let file = file.display();
                Err(compiler.lacks(&format!("the runtime variant `{variant}`: there is no {file}, {where_else}")))
            }
            None if file("_pic").is_file() => Ok(Some("_pic".into())),
            None if file("").is_file() => Ok(None),
            None => Err(compiler.lacks(&format!("a runtime for native code: there is no {}", file("").display()))),
        }
    }
}

/// The OCaml modules of ocaml-boxroot that the program needs, copied to `folder`.
fn support(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let Some(from) = std::env::var_os(MODULES).map(PathBuf::from) else { return Ok(Vec::new()) };
    let copy = |name: &str| {
        let to = folder.join(name);
        fs::copy(from.join(name), &to).map(|_| to).map_err(|error| {
            Error(format!("cannot copy {} to {}: {error}", from.join(name).display(), folder.display()))
        })
    };
    ["ocaml_boxroot.mli", "ocaml_boxroot.ml"].into_iter().map(copy).collect()
}

// SPDX-License-Identifier: MIT
//! `cargo ocaml-boxroot new`: the files of an example, with another name.
use std::fs;
use std::path::{Path, PathBuf};

/// The name in the examples, also of their OCaml modules.
const NAME: &str = "my_binding";
const MODULE: &str = "My_binding";

/// Where the crates are, as the examples see them.
const CRATES: &str = "../../rust/";

/// Files that say where the crates are, if they are in a folder.
const PLACES: &str = ".cargo/config.toml";

/// The examples are these files, by links, which packing replaces by what they lead to. A manifest has another name
/// here, as cargo packs no folder that looks like another package.
macro_rules! files {
    ($folder:literal: $($path:literal $file:literal)*) => {
        &[$(($path, include_str!(concat!("../skeletons/", $folder, "/", $file)))),*]
    };
}

const DUNE: &[(&str, &str)] = files! { "dune":
    "README.md" "README.md"
    "Cargo.toml" "manifest.toml"
    ".cargo/config.toml" "config.toml"
    ".gitignore" "gitignore"
    "dune" "dune"
    "dune-project" "dune-project"
    "src/lib.rs" "lib.rs"
    "test.ml" "test.ml"
};

const CARGO: &[(&str, &str)] = files! { "cargo":
    "README.md" "README.md"
    "Cargo.toml" "manifest.toml"
    ".gitignore" "gitignore"
    "build.rs" "build.rs"
    "src/lib.rs" "lib.rs"
    "tests/counter.rs" "test.rs"
    "ocaml/my_binding.ml" "my_binding.ml"
    "ocaml/my_binding.mli" "my_binding.mli"
    "ocaml/my_binding_imports.ml" "my_binding_imports.ml"
    "ocaml/counter.ml" "counter.ml"
};

/// What is asked for.
#[derive(Debug)]
pub struct New {
    /// Of the folder and the package; the crate and the OCaml module have underscores for hyphens.
    pub name: String,
    /// A Rust program with OCaml in it, under cargo alone; else a library for OCaml, under dune.
    pub cargo: bool,
    /// The folder of the crates; none: the registry.
    pub from: Option<PathBuf>,
}

impl New {
    /// Where the crates are from if nothing is said: the clone that this command was built in, if it is still there.
    pub fn from_here() -> Option<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        is_clone(folder).then(|| folder.to_owned())
    }

    pub fn run(&self) -> Result<(), String> {
        self.check()?;
        let folder = Path::new(&self.name);
        if fs::symlink_metadata(folder).is_ok() {
            return Err(format!("there is something at {} already", folder.display()));
        }
        let files = if self.cargo { CARGO } else { DUNE };
        for (path, text) in files.iter().filter(|file| self.from.is_some() || file.0 != PLACES) {
            let path = folder.join(self.named_value(path));
            let cannot = |error| format!("cannot write {}: {error}", path.display());
            fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(cannot)?;
            fs::write(&path, self.text(text)).map_err(cannot)?;
            println!("wrote {}", path.display());
        }
        let test = if self.cargo { "cargo test" } else { "dune test" };
        println!("Now, with OCaml in PATH: cd {} && cargo fetch && {test}", self.name);
        println!("(`ocamlopt -version` has to answer; with opam: eval $(opam env). README.md says more.)");
        if !self.cargo {
            let clone = self.from.as_deref().and_then(Path::parent);
            let how = clone.map(|top| format!("pin add ocaml-boxroot {}", top.display()));
            println!("It needs a package of OCaml: opam {}", how.unwrap_or_else(|| "install ocaml-boxroot".into()));
        }
        Ok(())
    }

    /// The crate's name in Rust, which is that of the OCaml module.
    fn identifier(&self) -> String {
        self.name.replace('-', "_")
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(good) {
            let rule = "lower-case letters, digits, underscores and hyphens, a letter first";
            return Err(format!("`{name}` cannot be the name of a crate and of an OCaml module: {rule}"));
        }
        // Names of modules and targets of the skeletons, of OCaml's library and of the crates.
        const TAKEN: [&str; 8] = ["test", "main", "counter", "std", "core", "alloc", "stdlib", "ocaml_boxroot"];
        let identifier = self.identifier();
        let keyword = is_keyword(&identifier);
        if TAKEN.contains(&identifier.as_str()) || keyword {
            let why = if keyword { "a keyword" } else { "taken" };
            return Err(format!("the name `{name}` is {why}: choose another"));
        }
        match &self.from {
            Some(from) if !is_clone(from) => {
                Err(format!("{} has no folder ocaml-boxroot with a Cargo.toml", from.display()))
            }
            _ => Ok(()),
        }
    }

    fn named_value(&self, text: &str) -> String {
        let mut module = self.identifier();
        module[..1].make_ascii_uppercase();
        // Of the package, and in the heading of README.md.
        let packages = ["[package]\nname = \"", "# "].map(|before| format!("{before}{NAME}"));
        let text = packages
            .iter()
            .fold(text.to_owned(), |text, package| text.replace(package, &package.replace(NAME, &self.name)));
        text.replace(NAME, &self.identifier()).replace(MODULE, &module)
    }

    fn text(&self, text: &str) -> String {
        let text: String =
            text.split_inclusive('\n').filter(|line| !line.contains("SPDX-License-Identifier")).collect();
        let (text, mut out) = (self.named_value(&text), String::new());
        let mut rest = &*text;
        // `path = "../../rust/ocaml-boxroot"`
        while let Some((before, behind)) = rest.split_once(&format!("path = \"{CRATES}")) {
            let (name, behind) = behind.split_once('"').unwrap_or((behind, ""));
            out += before;
            out += &match &self.from {
                Some(from) => format!("path = {:?}", from.join(name)),
                None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            };
            rest = behind;
        }
        out + rest
    }
}

fn is_clone(folder: &Path) -> bool {
    folder.join("ocaml-boxroot/Cargo.toml").is_file()
}

/// Words that are no name in Rust or OCaml.
fn is_keyword(name: &str) -> bool {
    const WORDS: &str = "and as assert async await begin break class const constraint continue crate do done \
                         downto dyn else end enum exception external false fn for fun function functor if impl in \
                         include inherit initializer lazy let loop match method mod module move mut mutable new nonrec \
                         object of open or private pub rec ref return self sig static struct super then to trait true \
                         try type unsafe use val virtual when where while with abstract become box final macro \
                         override typeof unsized yield gen land lor lxor lsl lsr asr effect";
    WORDS.split_whitespace().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, from: Option<&str>) -> New {
        New { name: name.into(), cargo: false, from: from.map(Into::into) }
    }

    #[test]
    fn names() {
        for good in ["a", "my_lib2", "zstd", "hello-world", "a-2"] {
            assert_eq!(new(good, None).check(), Ok(()));
        }
        for bad in ["", "A", "-a", "2d", "_x", "a.b", "../x", "été", "test", "match", "effect", "ocaml-boxroot"] {
            assert!(new(bad, None).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn hyphens_are_for_packages() {
        let new = new("hello-world", None);
        let text = "# my_binding\n\n[package]\nname = \"my_binding\"\nlibrary! { name = \"my_binding\" } My_binding\n";
        let wanted =
            "# hello-world\n\n[package]\nname = \"hello-world\"\nlibrary! { name = \"hello_world\" } Hello_world\n";
        assert_eq!(new.text(text), wanted);
        assert_eq!(new.named_value("ocaml/my_binding.ml"), "ocaml/hello_world.ml");
    }

    #[test]
    fn places() {
        let line =
            "// SPDX-License-Identifier: MIT\nmy_binding = { path = \"../../rust/ocaml-boxroot\", x } My_binding\n";
        assert_eq!(
            new("abc", None).text(line),
            format!("abc = {{ version = \"{}\", x }} Abc\n", env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(new("abc", Some("/a \"b")).text(line), "abc = { path = \"/a \\\"b/ocaml-boxroot\", x } Abc\n");
    }

    #[test]
    fn nothing_is_left_of_the_examples() {
        for (path, text) in DUNE.iter().chain(CARGO) {
            let text = new("other", None).text(text) + &new("other", None).named_value(path);
            assert!(!text.to_lowercase().contains(NAME) && !text.contains("../") && !text.contains("SPDX"), "{path}");
        }
    }
}

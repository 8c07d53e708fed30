// SPDX-License-Identifier: MIT
//! OCaml libraries by the names of their packages.
use crate::{Compiler, Error};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the compiler is told of libraries.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// For `-I`.
    pub folders: Vec<PathBuf>,
    /// In the order in which they are linked.
    pub archives: Vec<PathBuf>,
    /// Their C parts: files for the linker, later packages first, as these may need the earlier ones.
    pub stubs: Vec<PathBuf>,
    /// What else they need when the whole program is linked: directives for cargo.
    pub directives: Vec<String>,
}

/// The libraries that come with OCaml: package, folder since OCaml 5 (before, only that of threads was one), archive,
/// packages that it needs.
const OWN: [(&str, &str, &str, &[&str]); 6] = [
    ("unix", "unix", "unix", &[]),
    ("threads", "threads", "threads", &["unix"]),
    ("threads.posix", "threads", "threads", &["unix"]),
    ("str", "str", "str", &[]),
    ("dynlink", "dynlink", "dynlink", &[]),
    ("runtime_events", "runtime_events", "runtime_events", &[]),
];

impl Libraries {
    /// Those of the packages, and of what they need. OCaml's own libraries are found without ocamlfind.
    pub fn find(compiler: &Compiler, packages: &[String]) -> Result<Libraries, Error> {
        let mut found = Libraries::default();
        let foreign: Vec<&String> = packages.iter().filter(|name| !OWN.iter().any(|own| own.0 == *name)).collect();
        if foreign.is_empty() {
            for name in packages {
                found.add_own(compiler, name)?;
            }
        } else {
            found.query(compiler, packages, foreign[0])?;
        }
        for archive in found.archives.clone().iter().rev() {
            let said = compiler.run(compiler.tool("ocamlobjinfo")?.arg(archive))?;
            let places = [archive.parent().unwrap_or(Path::new(".")).to_owned(), compiler.library().to_owned()];
            let extra = |line: &str| line.strip_prefix("Extra C ")?.split_once(':').map(|(_, words)| words.to_owned());
            let words: Vec<String> = said.lines().filter_map(extra).collect();
            found.add_c(&words.join(" "), places.into());
        }
        Ok(found)
    }

    /// What an archive asks of the linker. Files of the archive's own are part of the program's object file; libraries
    /// of the system are not.
    fn add_c(&mut self, words: &str, mut places: Vec<PathBuf>) {
        places.extend(words.split_whitespace().filter_map(|word| word.strip_prefix("-L")).map(PathBuf::from));
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            let file = match word.strip_prefix("-l") {
                Some(name) => format!("lib{name}.a"),
                None => word.into(),
            };
            let file = places.iter().map(|place| place.join(&file)).find(|path| path.is_file());
            match file {
                Some(file) if self.stubs.contains(&file) => (),
                Some(file) => self.stubs.push(file),
                None => self.tell_cargo(word, &mut words),
            }
        }
    }

    /// What OCaml's runtime asks of the linker: libraries of the system.
    pub fn add_runtime(&mut self, words: &str) {
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            self.tell_cargo(word, &mut words);
        }
    }

    /// Passes a word of a linker's command line on, with the words that belong to it.
    fn tell_cargo<'a>(&mut self, word: &str, rest: &mut impl Iterator<Item = &'a str>) {
        let directive = match (word.strip_prefix("-l"), word.strip_prefix("-L")) {
            (Some(name), _) => format!("rustc-link-lib={name}"),
            (_, Some(place)) => format!("rustc-link-search=native={place}"),
            _ if word == "-framework" => format!("rustc-link-lib=framework={}", rest.next().unwrap_or_default()),
            _ => format!("rustc-link-arg={word}"),
        };
        if !self.directives.contains(&directive) {
            self.directives.push(directive);
        }
    }

    fn add_own(&mut self, compiler: &Compiler, name: &str) -> Result<(), Error> {
        let Some((_, folder, archive, needs)) = OWN.iter().find(|own| own.0 == name) else { return Ok(()) };
        for needed in *needs {
            self.add_own(compiler, needed)?;
        }
        let file = format!("{archive}.cmxa");
        let places = [compiler.library().join(folder), compiler.library().to_owned()];
        let Some(place) = places.iter().find(|place| place.join(&file).is_file()) else {
            return Err(compiler.lacks(&format!("the library {name}: there is no {}", places[0].join(&file).display())));
        };
        let archive = place.join(file);
        if !self.archives.contains(&archive) {
            if place != compiler.library() {
                self.folders.push(place.clone());
            }
            self.archives.push(archive);
        }
        Ok(())
    }

    /// Asks ocamlfind, which must be of the same OCaml.
    fn query(&mut self, compiler: &Compiler, packages: &[String], foreign: &str) -> Result<(), Error> {
        let beside = compiler.ocamlfind_beside();
        let program = match compiler.ocamlfind_in_command() {
            Some(program) => PathBuf::from(program),
            None if beside.is_file() => beside,
            None => "ocamlfind".into(),
        };
        let standard = Command::new(&program).args(["printconf", "stdlib"]).output();
        let standard = match &standard {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            _ => {
                let wanted = format!("ocamlfind, by which the package `{foreign}` would be found");
                return Err(compiler.lacks(&format!("{wanted}: there is none beside the compiler, or in PATH")));
            }
        };
        if !same(Path::new(&standard), compiler.library()) {
            let program = program.display();
            let other = format!("{program} is of another OCaml, whose standard library is {standard}");
            return Err(compiler.lacks(&format!("ocamlfind, by which the package `{foreign}` would be found: {other}")));
        }
        let ask = |format: &str| {
            let words = ["query", "-recursive", "-predicates", "native,mt,mt_posix", "-format", format];
            compiler.run(Command::new(&program).args(words).args(packages))
        };
        for line in ask("%d")?.lines().map(PathBuf::from) {
            if !self.folders.contains(&line) && !same(&line, compiler.library()) {
                self.folders.push(line);
            }
        }
        for line in ask("%+a")?.lines().filter(|line| !line.is_empty()).map(PathBuf::from) {
            if !self.archives.contains(&line) {
                self.archives.push(line);
            }
        }
        Ok(())
    }
}

fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[test]
fn c_parts_of_archives() {
    let place = std::env::temp_dir().join(format!("ocaml-boxroot-build-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    for file in ["libstubs.a", "more.o"] {
        std::fs::write(place.join(file), "").unwrap();
    }
    let mut found = Libraries::default();
    found.add_c("-lstubs -lz more.o -L/opt/lib -framework Cocoa -Wl,-x -lz -lstubs", vec![place.clone()]);
    std::fs::remove_dir_all(&place).unwrap();
    assert_eq!(found.stubs, [place.join("libstubs.a"), place.join("more.o")]);
    found.add_runtime("-L/opt/zstd -lzstd -lz -pthread");
    let of_archive = ["lib=z", "search=native=/opt/lib", "lib=framework=Cocoa", "arg=-Wl,-x"];
    let of_runtime = ["search=native=/opt/zstd", "lib=zstd", "arg=-pthread"];
    let all = of_archive.iter().chain(&of_runtime).map(|end| format!("rustc-link-{end}"));
    assert_eq!(found.directives, all.collect::<Vec<_>>());
}

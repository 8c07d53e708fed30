// SPDX-License-Identifier: MIT
//! Finds the OCaml whose headers the C library is compiled against.
//!
//! A variable set by the user decides alone: when it is wrong, the lookup fails rather than take another OCaml.
//! Otherwise the first candidate that works is taken. PATH comes before the opam switch because other binding crates,
//! and the user's shell, take the `ocamlopt` of PATH: all parts of a program must agree on one OCaml.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variables that the lookup reads.
pub const VARIABLES: [&str; 4] = ["OCAML_WHERE_PATH", "OCAMLOPT", "PATH", "OPAM_SWITCH_PREFIX"];
pub const MINIMUM: u32 = 41400;

/// Reads a variable; the tests pass a made-up environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

#[derive(Debug)]
pub struct Ocaml {
    /// The folder of the standard library, which holds the C headers: what `ocamlopt -where` prints.
    pub library: PathBuf,
    /// As in OCAML_VERSION of the headers: 5.4.1 is 50401.
    pub version: u32,
    /// Program and first arguments; empty when only the folder was given.
    pub compiler: Vec<OsString>,
    /// What led to it, for messages.
    pub found_by: String,
}

/// One place that was tried: what, and why it is no good.
#[derive(Debug)]
pub struct Attempt {
    pub what: String,
    pub why: String,
}

#[derive(Debug)]
pub struct NotFound {
    pub attempts: Vec<Attempt>,
    /// The variable that ended the lookup, if any.
    pub decisive: Option<&'static str>,
}

/// The OCaml to use, or everything that was tried.
pub fn find(env: Environment) -> Result<Ocaml, NotFound> {
    let mut attempts = Vec::new();
    for candidate in candidates(env) {
        match candidate.place.and_then(|place| examine(place, &candidate.what)) {
            Ok(ocaml) => return Ok(ocaml),
            Err(why) => attempts.push(Attempt { what: candidate.what, why }),
        }
        if candidate.decisive.is_some() {
            return Err(NotFound { attempts, decisive: candidate.decisive });
        }
    }
    Err(NotFound { attempts, decisive: None })
}

/// The compiler of an OCaml that may have been given by its folder only.
pub fn compiler_of(ocaml: &Ocaml, env: Environment) -> Result<Vec<OsString>, NotFound> {
    if !ocaml.compiler.is_empty() {
        return Ok(ocaml.compiler.clone());
    }
    let beside = ocaml.library.join("../../bin").join(format!("ocamlopt{}", EXE_SUFFIX));
    let mut all = candidates(env);
    all.insert(
        0,
        Candidate {
            what: format!("{} (beside the library)", beside.display()),
            place: Ok(Place::Compiler(vec![beside.into()])),
            decisive: None,
        },
    );
    let mut attempts = Vec::new();
    for candidate in all {
        let why = match candidate.place {
            Ok(Place::Library(_)) => continue,
            Ok(place) => match examine(place, &candidate.what) {
                Ok(other) if same_folder(&other.library, &ocaml.library) => return Ok(other.compiler),
                Ok(other) => format!("its library is {}, not {}", other.library.display(), ocaml.library.display()),
                Err(why) => why,
            },
            Err(why) => why,
        };
        attempts.push(Attempt { what: candidate.what, why });
    }
    Err(NotFound { attempts, decisive: None })
}

/// Runs a compiler and returns what it prints, trimmed.
pub fn output(compiler: &[OsString], args: &[&OsStr], dir: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).args(args);
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let shown = format!("{:?}", command).replace('"', "");
    let out = command.output().map_err(|e| format!("cannot run `{}`: {}", shown, e))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let text = if text.trim().is_empty() { String::from_utf8_lossy(&out.stdout) } else { text };
        return Err(format!("`{}` failed ({}): {}", shown, out.status, text.trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

enum Place {
    Library(PathBuf),
    Compiler(Vec<OsString>),
}

struct Candidate {
    what: String,
    place: Result<Place, String>,
    decisive: Option<&'static str>,
}

fn candidates(env: Environment) -> Vec<Candidate> {
    let get = |name: &str| env(name).filter(|v| !v.is_empty());
    let dirs: Vec<PathBuf> = get("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
    let unset = || Err("not set".to_owned());
    let mut all = Vec::new();

    all.push(match get("OCAML_WHERE_PATH") {
        Some(dir) => Candidate {
            what: format!("OCAML_WHERE_PATH={}", dir.to_string_lossy()),
            place: Ok(Place::Library(dir.into())),
            decisive: Some("OCAML_WHERE_PATH"),
        },
        None => Candidate { what: "OCAML_WHERE_PATH, a folder".into(), place: unset(), decisive: None },
    });

    all.push(match get("OCAMLOPT") {
        Some(command) => Candidate {
            what: format!("OCAMLOPT={}", command.to_string_lossy()),
            place: split_command(&command, &dirs).map(Place::Compiler),
            decisive: Some("OCAMLOPT"),
        },
        None => Candidate { what: "OCAMLOPT, a command".into(), place: unset(), decisive: None },
    });

    all.push(Candidate {
        what: "ocamlopt in PATH".into(),
        place: in_path("ocamlopt", &dirs).map(|p| Place::Compiler(vec![p.into()])),
        decisive: None,
    });

    all.push(match get("OPAM_SWITCH_PREFIX") {
        Some(prefix) => {
            let program = Path::new(&prefix).join("bin").join(format!("ocamlopt{}", EXE_SUFFIX));
            Candidate {
                what: format!("{} of the opam switch", program.display()),
                place: if program.is_file() {
                    Ok(Place::Compiler(vec![program.into()]))
                } else {
                    Err("no such file".into())
                },
                decisive: None,
            }
        }
        None => Candidate { what: "OPAM_SWITCH_PREFIX, the opam switch".into(), place: unset(), decisive: None },
    });

    all.push(Candidate {
        what: "`ocamlfind ocamlopt`, ocamlfind in PATH".into(),
        place: in_path("ocamlfind", &dirs).map(|p| Place::Compiler(vec![p.into(), "ocamlopt".into()])),
        decisive: None,
    });
    all
}

/// A command with arguments, or the name of a file that has spaces in it.
fn split_command(text: &OsStr, dirs: &[PathBuf]) -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = if Path::new(text).is_file() {
        vec![text.to_owned()]
    } else {
        text.to_string_lossy().split_whitespace().map(OsString::from).collect()
    };
    match words.first().cloned() {
        None => return Err("the command is blank".into()),
        Some(first) if Path::new(&first).components().count() > 1 => {
            if !Path::new(&first).is_file() {
                return Err(format!("no such file: {}", Path::new(&first).display()));
            }
        }
        Some(first) => words[0] = in_path(&first.to_string_lossy(), dirs)?.into(),
    }
    Ok(words)
}

fn in_path(name: &str, dirs: &[PathBuf]) -> Result<PathBuf, String> {
    let file = format!("{}{}", name, if name.ends_with(EXE_SUFFIX) { "" } else { EXE_SUFFIX });
    match dirs.iter().map(|d| d.join(&file)).find(|p| is_program(p)) {
        Some(program) => Ok(program),
        None if dirs.is_empty() => Err(format!("no program {}: PATH is empty", name)),
        None => {
            let list: Vec<_> = dirs.iter().map(|d| d.display().to_string()).collect();
            Err(format!("no program {} in {}", name, list.join(", ")))
        }
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn examine(place: Place, what: &str) -> Result<Ocaml, String> {
    let (library, compiler) = match place {
        Place::Library(dir) => (dir, Vec::new()),
        Place::Compiler(command) => {
            let dir = output(&command, &[OsStr::new("-where")], None)?;
            if dir.is_empty() {
                return Err(format!("`{} -where` printed nothing", Path::new(&command[0]).display()));
            }
            (PathBuf::from(dir), command)
        }
    };
    if !library.is_dir() {
        return Err(format!("{} is not a folder", library.display()));
    }
    let header = library.join("caml").join("version.h");
    let text = std::fs::read_to_string(&header)
        .map_err(|e| format!("cannot read the C header {}: {}", header.display(), e))?;
    let version = version_of(&text).ok_or_else(|| format!("{} does not define OCAML_VERSION", header.display()))?;
    if version < MINIMUM {
        return Err(format!("{} holds OCaml {}; 4.14 or later is needed", library.display(), show(version)));
    }
    let found_by = match compiler.first() {
        Some(program) => format!("{} ({})", what, Path::new(program).display()),
        None => what.to_owned(),
    };
    Ok(Ocaml { library, version, compiler, found_by })
}

fn version_of(header: &str) -> Option<u32> {
    header.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("#define"), Some("OCAML_VERSION"), Some(number)) => number.parse().ok(),
            _ => None,
        }
    })
}

/// 50401 as 5.4.1; OCaml writes the minor version of the 4 series with two digits.
pub fn show(version: u32) -> String {
    let (major, minor, patch) = (version / 10000, version / 100 % 100, version % 100);
    if major < 5 {
        format!("{}.{:02}.{}", major, minor, patch)
    } else {
        format!("{}.{}.{}", major, minor, patch)
    }
}

fn same_folder(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "  Looked for OCaml 4.14 or later, in this order:")?;
        for (i, attempt) in self.attempts.iter().enumerate() {
            let why = attempt.why.replace('\n', "\n         ");
            writeln!(f, "    {}. {}: {}", i + 1, attempt.what, why)?;
        }
        if let Some(name) = self.decisive {
            writeln!(f, "  {} is set, so nothing else was tried.", name)?;
        }
        writeln!(f, "  To fix this, do one of the following:")?;
        if let Some(name) = self.decisive {
            writeln!(f, "    - correct {}, or unset it to have PATH and the opam switch searched", name)?;
        }
        writeln!(f, "    - put the folder of ocamlopt in PATH; with opam: eval $(opam env)")?;
        writeln!(f, "    - set OCAMLOPT to the command of the compiler, for example OCAMLOPT=\"ocamlfind ocamlopt\"")?;
        write!(f, "    - set OCAML_WHERE_PATH to the folder that `ocamlopt -where` prints")
    }
}

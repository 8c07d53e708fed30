# SPDX-License-Identifier: MIT
"""OCaml modules in Rust programs (ocaml-boxroot-build), and `cargo ocaml-boxroot`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import BUILD, CARGO, VENDORED, Shop
from testing.run import ROOT, Outcome
from testing.steps import locked

RUST = ROOT / "rust"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    compilers = [(c, [pytest.mark.xdist_group(f"rust-build-{c.name}"), *skip]) for c in matrix.ends()]
    metafunc.parametrize("compiler", [pytest.param(c, id=c.name, marks=marks) for c, marks in compilers])


MANIFEST = f"""
[package]
name = "NAME"
version = "0.0.0"
edition = "2021"
[dependencies]
ocaml-boxroot = {{ path = "{RUST / "ocaml-boxroot"}", features = ["start"] }}
[build-dependencies]
ocaml-boxroot-build = {{ path = "{RUST / "ocaml-boxroot-build"}" }}
[workspace]
"""
# What the build script is to do is in the file `case`: a word a line, with its argument.
BUILD_SCRIPT = """
fn main() {
    let mut build = ocaml_boxroot_build::Build::new();
    println!("cargo:rerun-if-changed=case");
    for line in std::fs::read_to_string("case").unwrap().lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("file", name) => build.file(name),
            ("package", name) => build.package(name),
            ("flag", flag) => build.flag(flag),
            ("c", name) => build.c_library(name),
            ("variant", name) => build.runtime_variant(name),
            ("sorted", _) => build.sorted(),
            other => panic!("{other:?}"),
        };
    }
    build.compile("program");
}
"""
MAIN = """
#![forbid(unsafe_code)]
fn main() {
    let ocaml = ocaml_boxroot::start(&Default::default()).unwrap_or_else(|error| panic!("{error}"));
    ocaml_boxroot::attach(|rt| rt.spawn_domain(|_| 7).map(|domain| println!("domain: {:?}", domain.join(rt))).ok())
        .unwrap();
    ocaml.shutdown().unwrap();
    println!("done");
}
"""


class Project:
    """A Rust program in a folder of its own; what it depends on is compiled once for all of a compiler's."""

    def __init__(self, compiler: Compiler, name: str, files: dict[str, str]) -> None:
        self.shop = Shop(compiler)
        self.target = self.shop.target
        self.folder = self.shop.folder / "programs" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.put({"Cargo.toml": MANIFEST.replace("NAME", name)} | files)
        self.shop.pin(self.folder)
        self.name = name

    def put(self, files: dict[str, str]) -> None:
        for file, text in files.items():
            (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / file).write_text(text)

    def case(self, *lines: str, **more: str) -> Outcome:
        (self.folder / "case").write_text("".join(f"{line}\n" for line in lines))
        return self.shop.try_run([CARGO, "run", "--offline"], self.folder, self.target, more)

    def prints(self, expected: str, *lines: str, **more: str) -> str:
        outcome = self.case(*lines, **more)
        assert outcome.passed and expected in outcome.text.splitlines(), outcome.tail(40)
        return outcome.text

    def fails(self, *lines: str, **more: str) -> str:
        outcome = self.case(*lines, **more)
        assert not outcome.passed and "error: ocaml-boxroot-build: " in outcome.text, outcome.text
        assert "panicked" not in outcome.text, outcome.text
        return outcome.text


def program(compiler: Compiler, name: str, files: dict[str, str]) -> Project:
    return Project(compiler, name, {"build.rs": BUILD_SCRIPT, "src/main.rs": MAIN} | files)


LIBRARIES = """
let lock = Mutex.create ()
let () =
  Thread.join (Thread.create (fun () -> Mutex.lock lock) ());
  assert (Str.string_match (Str.regexp "a+") "aaa" 0);
  assert (Dynlink.is_native);
  Printf.printf "libraries: %b\\n%!" (Unix.getpid () > 0)
"""


@pytest.mark.slow
def test_libraries_of_ocaml(compiler: Compiler) -> None:
    project = program(compiler, "libraries", {"ocaml/all.ml": LIBRARIES})
    packages = [f"package {name}" for name in ("threads", "str", "dynlink")]
    said = project.prints("libraries: true", "file ocaml/all.ml", *packages, "c m")
    assert ("domain: Ok(7)" in said) == (compiler.major >= 5), said
    # Nothing has changed; then the OCaml file has.
    project.shop.run([CARGO, "build", "--offline"], project.folder, project.target)
    outcome = project.shop.try_run([CARGO, "build", "--offline", "-v"], project.folder, project.target)
    assert "ValueGuard libraries" in outcome.text, outcome.text
    project.put({"ocaml/all.ml": 'let () = print_endline "changed"\n'})
    project.prints("changed", "file ocaml/all.ml", *packages)


def test_order_and_interfaces(compiler: Compiler) -> None:
    files = {
        "ocaml/first.ml": "let hidden = 1\nlet shown = hidden + 1\n",
        "ocaml/first.mli": "val shown : int\n",
        "ocaml/program.ml": 'let () = Printf.printf "shown: %d\\n" First.shown\n',
    }
    project = program(compiler, "order", files)
    project.prints("shown: 2", "file ocaml/first.ml", "file ocaml/program.ml")
    said = project.fails("file ocaml/program.ml", "file ocaml/first.ml")
    assert "ocaml/program.ml" in said and "First" in said and f"OCaml {compiler.version} (" in said, said
    project.prints("shown: 2", "file ocaml/program.ml", "file ocaml/first.ml", "sorted")
    project.put({"ocaml/program.ml": "let () = print_int First.hidden\n"})
    assert "Unbound value First.hidden" in project.fails("file ocaml/first.ml", "file ocaml/program.ml")


def test_messages(compiler: Compiler) -> None:
    project = program(compiler, "messages", {"a.ml": "", "b/a.ml": "", "c.txt": ""})
    where = f"OCaml {compiler.version} ("
    for lines, message in (
        (["file nowhere.ml"], "there is no file nowhere.ml"),
        (["file c.txt"], "c.txt is neither .ml nor .mli"),
        (["file a.ml", "file b/a.ml"], "two files are named a"),
        (["file a.ml", "variant none"], "lacks the runtime variant `none`: there is no "),
        (["file a.ml", "flag -no-such-flag"], "unknown option"),
        (["file a.ml", "package lwt"], "lacks ocamlfind, by which the package `lwt` would be found"),
    ):
        said = project.fails(*lines)
        assert message in said, said
        assert where in said or "named" in message or "c.txt" in message or "nowhere" in message, said
    project.prints("done", "file a.ml", "variant d", OCAMLRUNPARAM="v=0")
    # A variant that is elsewhere, as Outheap's is.
    elsewhere = project.folder / "else where"
    elsewhere.mkdir()
    shutil.copy(compiler.where / "libasmrund.a", elsewhere / "libasmrun_mine.a")
    project.prints("done", "file a.ml", "flag -I", f"flag {elsewhere}", "variant _mine", OCAMLRUNPARAM="v=0")


OCAMLFIND = """#!/bin/sh
case "$*" in
  'printconf stdlib') echo STANDARD;;
  'query '*' -format %d '*extra) echo STANDARD; echo FOLDER;;
  'query '*' -format %+a '*extra) echo; echo FOLDER/extra.cmxa;;
  *) echo "no such package: $*" >&2; exit 2;;
esac
"""


def test_packages_of_others(compiler: Compiler) -> None:
    """By a stand-in for ocamlfind, which answers as the real one does."""
    project = program(compiler, "packages", {"main.ml": 'let () = print_endline ("extra: " ^ Extra.name)\n'})
    extra = project.folder / "extra"
    project.put({"extra/extra.ml": 'let name = "found"\n'})
    project.shop.run([compiler.ocamlopt, "-a", "extra.ml", "-o", "extra.cmxa"], extra)
    tools = project.folder / "tools"
    tools.mkdir()
    path = {"PATH": f"{tools}:{project.shop.settings['PATH']}"}

    def ocamlfind(standard: Path) -> None:
        text = OCAMLFIND.replace("STANDARD", str(standard)).replace("FOLDER", str(extra))
        (tools / "ocamlfind").write_text(text)
        (tools / "ocamlfind").chmod(0o755)

    ocamlfind(compiler.where)
    project.prints("extra: found", "file main.ml", "package extra", **path)
    assert "no such package" in project.fails("file main.ml", "package other", **path)
    ocamlfind(extra)
    said = project.fails("file main.ml", "package extra", "c m", **path)
    assert "is of another OCaml, whose standard library is" in said, said


PACKAGES = {
    "lower/META": 'version = "1"\narchive(native) = "lower.cmxa"\n',
    "lower/lower.ml": "let twice n = 2 * n\n",
    "upper/META": """version = "1"
requires = "lower unix"
archive(native) = "upper.cmxa"
package "more" (
  requires = "upper threads"
  archive(native) = "more.cmxa"
)
""",
    "upper/upper.ml": """external next : int -> int = "upper_next"
let answer () = assert (Unix.getpid () > 0); next (next (Lower.twice 20))
""",
    "upper/upper_stubs.c": """#include <caml/mlvalues.h>
value upper_next(value n) { return Val_long(Long_val(n) + 1); }
""",
    "upper/more.ml": """let answer () =
  let n = ref 0 in
  Thread.join (Thread.create (fun () -> n := Upper.answer ()) ());
  !n
""",
}


@pytest.mark.everything
def test_packages_of_findlib(compiler: Compiler) -> None:
    """By findlib itself: packages that need others, OCaml's too, with a C part, installed by `ocamlfind install`."""
    done = subprocess.run([ROOT / "tools/findlib", compiler.prefix], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    ocamlfind = Path(done.stdout.strip())
    project = program(compiler, "findlib", {"main.ml": 'let () = Printf.printf "answer: %d\\n" (More.answer ())\n'})
    project.put({f"packages/{name}": text for name, text in PACKAGES.items()})
    there = project.folder / "installed"
    there.mkdir()
    path = {"PATH": f"{ocamlfind.parent}:{project.shop.settings['PATH']}", "OCAMLPATH": str(there)}

    def run(folder: str, *words: str) -> None:
        project.shop.run(words, project.folder / "packages" / folder, more=path)

    def install(folder: str, *files: str) -> None:
        run(folder, "ocamlfind", "install", "-destdir", str(there), folder, "META", *files)

    archive = ("ocamlfind", "ocamlopt", "-a", "-package")
    run("lower", "ocamlfind", "ocamlopt", "-a", "lower.ml", "-o", "lower.cmxa")
    install("lower", "lower.cmi", "lower.cmx", "lower.cmxa", "lower.a")
    run("upper", "ocamlfind", "ocamlopt", "-c", "upper_stubs.c")
    run("upper", "ar", "rcs", "libupper_stubs.a", "upper_stubs.o")
    run("upper", *archive, "lower,unix", "upper.ml", "-cclib", "-lupper_stubs", "-o", "upper.cmxa")
    run("upper", *archive, "threads.posix", "-thread", "more.ml", "-o", "more.cmxa")
    parts = [f"{name}.{end}" for name in ("upper", "more") for end in ("cmi", "cmx", "cmxa", "a")]
    install("upper", *parts, "libupper_stubs.a")
    project.prints("answer: 42", "file main.ml", "package upper.more", **path)
    project.prints("answer: 42", "file main.ml", "package threads", "package upper.more", "package str", **path)
    said = project.fails("file main.ml", "package upper.none", **path)
    assert "upper.none" in said and "not found" in said, said


@pytest.mark.everything
def test_works_from_vendored_sources_without_a_network(compiler: Compiler) -> None:
    files = {"main.ml": 'let () = print_endline "vendored"\n', "case": "file main.ml"}
    project = program(compiler, "vendored", files)
    project.shop.run([CARGO, "--offline", "vendor", "vendor"], project.folder)
    project.put({".cargo/config.toml": VENDORED})
    home = project.folder / "home"
    home.mkdir()
    toolchains = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    project.prints("vendored", "file main.ml", CARGO_HOME=str(home), RUSTUP_HOME=toolchains)
    assert not (home / "registry").exists()


@pytest.mark.slow
def test_of_the_packages_themselves(compiler: Compiler) -> None:
    shop = Shop(compiler)
    with locked(BUILD / "command.lock"):
        shop.cargo("test", "-p", "ocaml-boxroot-build", "-p", "cargo-ocaml-boxroot", cwd=RUST, target=BUILD / "command")
        # Packing builds what is packed; a link to a file of another package becomes the file.
        shop.cargo("package", "--allow-dirty", cwd=RUST / "ocaml-boxroot-build", target=BUILD / "command")


# --- cargo ocaml-boxroot


LIBRARY = """
#![forbid(unsafe_code)]
use ocaml_boxroot::*;
/// Adds.
#[export]
fn add(a: isize, b: isize) -> isize { a + b }
IMPORT
library! { name = "adding", exports = [add] USED }
"""
IMPORT = 'import! { mod host = "Host"; pub fn f(x: isize) -> Result<isize, Exception>; }'


class Library(Project):
    """A Rust library, and the command."""

    def __init__(self, compiler: Compiler, name: str, files: dict[str, str]) -> None:
        super().__init__(compiler, name, files)
        command = BUILD / "command"
        with locked(BUILD / "command.lock"):
            self.shop.cargo("build", "-p", "cargo-ocaml-boxroot", cwd=RUST, target=command)
        self.tool = command / "debug/cargo-ocaml-boxroot"

    def generate(self, *words: str) -> tuple[int, str]:
        words = ("generate", "--offline", "--out", "ocaml", *words)
        outcome = self.shop.try_run([self.tool, "ocaml-boxroot", *words], self.folder, self.target)
        return outcome.code, outcome.text

    def files(self) -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in (self.folder / "ocaml").iterdir()}


def text_of(imports: bool) -> str:
    text = LIBRARY.replace("IMPORT", IMPORT if imports else "")
    return text.replace("USED", ", imports = [host]" if imports else "")


def test_generate(compiler: Compiler) -> None:
    library = Library(compiler, "adding", {"src/lib.rs": text_of(imports=False)})
    code, said = library.generate()
    assert code == 0 and "wrote ocaml/adding.ml" in said, said
    first = library.files()
    assert set(first) == {"adding.ml", "adding.mli", "ocaml_boxroot.ml", "ocaml_boxroot.mli"}
    interface = (library.folder / "ocaml/adding.mli").read_text()
    assert "external add : (int [@untagged]) -> (int [@untagged]) -> int" in interface
    for file in ("ocaml_boxroot.ml", "ocaml_boxroot.mli"):
        assert (library.folder / "ocaml" / file).read_text() == (RUST / "ocaml-boxroot/ocaml" / file).read_text()
    # As it is: nothing is written.
    code, said = library.generate("--check")
    assert code == 0 and not said.strip(), said
    assert library.generate()[0] == 0 and library.files() == first
    # The library has changed.
    library.put({"src/lib.rs": text_of(imports=True).replace("b: isize", "b: f64").replace("a + b", "a")})
    code, said = library.generate("--check")
    assert code == 1 and library.files() == first
    assert "\n-external add : (int [@untagged]) -> (int [@untagged]) -> int" in said, said
    assert "\n+external add : (int [@untagged]) -> (float [@unboxed]) -> int" in said, said
    assert "+++ ocaml/adding_imports.ml" in said, said
    code, said = library.generate()
    assert code == 0, said
    second = library.files()
    assert set(second) == {*first, "adding_imports.ml"}
    assert {name for name in first if second[name] != first[name]} == {"adding.ml", "adding.mli"}
    shutil.rmtree(library.folder / "ocaml")
    assert library.generate("--bare", "--all-features")[0] == 0
    assert set(library.files()) == {"adding.ml", "adding.mli", "adding_imports.ml"}


def test_generate_says_what_is_wrong(compiler: Compiler) -> None:
    library = Library(compiler, "empty", {"src/lib.rs": "use ocaml_boxroot as _;\n"})
    for words, message in (
        ([], "libempty.a has no `library! { … }`"),
        (["--no-such-option"], "invalid option '--no-such-option'"),
        (["again"], "unexpected argument"),
        (["--manifest-path", "nowhere/Cargo.toml"], "cargo could not build the static library"),
    ):
        code, said = library.generate(*words)
        assert code == 2 and message in said and "panicked" not in said, said
    library.put({"src/lib.rs": text_of(False).replace("exports = [add]", "exports = [add, add]")})
    code, said = library.generate()
    assert code == 2 and "two functions are named `add`" in said, said
    assert not (library.folder / "ocaml").exists()

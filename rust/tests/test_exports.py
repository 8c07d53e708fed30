# SPDX-License-Identifier: MIT
"""Rust libraries in OCaml programs: exported and imported functions, the OCaml text, and what does not fit together."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import CARGO, Shop
from testing.run import ROOT

RUST = ROOT / "rust"
SOURCES = RUST / "tests/exports/ocaml"
MODULES = RUST / "ocaml-boxroot/ocaml"
LINK = ("-cclib", "-lpthread", "-cclib", "-ldl", "-cclib", "-lm")
PACKAGE = "ocaml-boxroot-testing-exports"
OURS = ("ocaml_boxroot.mli", "ocaml_boxroot.ml")
FILES = (*OURS, "exports.mli", "exports.ml", "host.ml", "exports_imports.ml")
TEST = (*FILES, "check.ml", "exceptions.ml", "blocking.c", "domains.ml", "test.ml")
QUIET = {"RUST_BACKTRACE": "0"}
EVERY_VERSION = ("test_native", "test_native_with", "test_bytecode")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    compilers = [(c, [pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()]
    if metafunc.function.__name__ in EVERY_VERSION:
        others = [c for c in matrix.compilers() if c not in matrix.ends()]
        compilers += [(c, [pytest.mark.xdist_group(f"rust-{c.name}"), pytest.mark.everything, *skip]) for c in others]
    metafunc.parametrize("compiler", [pytest.param(c, id=c.name, marks=marks) for c, marks in compilers])


class Program:
    """An OCaml program with a Rust library."""

    def __init__(self, compiler: Compiler, name: str, *words: str, more: dict[str, str] | None = None) -> None:
        self.shop = Shop(compiler)
        self.folder = self.shop.folder / "exports" / name
        self.shop.cargo("build", "-p", PACKAGE, *words, cwd=RUST, more=more)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        profile = "release" if "--release" in words else "debug"
        shutil.copy(self.shop.target / profile / "libexports.a", self.folder)
        for file in [*SOURCES.glob("*.ml"), *SOURCES.glob("*.c"), *MODULES.glob("ocaml_boxroot*")]:
            shutil.copy(file, self.folder)
        domains = self.folder / ("domains5.ml" if compiler.major >= 5 else "domains4.ml")
        shutil.copy(domains, self.folder / "domains.ml")
        self.link("generate", "generate.ml")
        for which, file in (("ml", "exports.ml"), ("mli", "exports.mli"), ("imports", "exports_imports.ml")):
            (self.folder / file).write_text(self.shop.run(["./generate", which], self.folder))

    def link(self, name: str, *files: str, bytecode: bool = False, flags: tuple[str, ...] = ()) -> None:
        compiler, end = self.shop.compiler, "cma" if bytecode else "cmxa"
        start = [compiler.ocamlc, "-custom"] if bytecode else [compiler.ocamlopt]
        libraries = [*compiler.libraries, f"unix.{end}", f"threads.{end}"]
        # Warnings are errors: the generated text has none.
        words = [*start, "-g", "-w", "+a-4-40..42-44-45-70", "-warn-error", "+a", *flags, *libraries, *files]
        self.shop.run([*words, "libexports.a", *LINK, "-o", name], self.folder)

    def run(self, name: str, *words: str, **more: str) -> None:
        said = self.shop.run([f"./{name}", *words], self.folder, more=QUIET | more)
        assert "exports: ok" in said.splitlines(), said

    def fails(self, name: str, *words: str) -> str:
        """What it says when it ends badly."""
        outcome = self.shop.try_run([f"./{name}", *words], self.folder, more=QUIET)
        assert not outcome.passed
        return outcome.text


@cache
def native(compiler: Compiler) -> Program:
    program = Program(compiler, "native")
    program.link("test", *TEST)
    return program


def test_native(compiler: Compiler) -> None:
    native(compiler).run("test")


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["OCAMLRUNPARAM=s=4k", "RUST_BACKTRACE=1"])
def test_native_with(compiler: Compiler, setting: str) -> None:
    name, _, value = setting.partition("=")
    native(compiler).run("test", **{name: value})


def test_bytecode(compiler: Compiler) -> None:
    program = Program(compiler, "bytecode")
    program.link("test", *TEST, bytecode=True)
    program.run("test")


@pytest.mark.everything
def test_optimised(compiler: Compiler) -> None:
    program = Program(compiler, "optimised", "--release")
    program.link("test", *TEST)
    program.run("test", OCAMLRUNPARAM="s=4k")


@pytest.mark.everything
def test_debug_runtime_over_the_checked_build(compiler: Compiler) -> None:
    program = Program(compiler, "checked", "--features", "checked")
    program.link("test", *TEST, flags=("-runtime-variant", "d"))
    program.run("test", OCAMLRUNPARAM="s=4k,v=0")
    program.link("refused", *FILES, "check.ml", "refused.ml", flags=("-runtime-variant", "d"))
    program.run("refused", OCAMLRUNPARAM="v=0")


def test_a_panic_in_a_noalloc_function_ends_the_process(compiler: Compiler) -> None:
    said = native(compiler).fails("test", "noalloc")
    assert "panic in the function `explode_noalloc`, which is noalloc and cannot raise" in said, said


@pytest.mark.slow
def test_errors_raise_in_programs_that_abort_on_panics(compiler: Compiler) -> None:
    """And without the module with Rust's exceptions."""
    program = Program(compiler, "abort", "--config", "profile.dev.panic='abort'")
    text = """
      let () =
        assert (try ignore (Exports.parse "x"); false with Failure s -> s = "invalid digit found in string");
        assert (try Exports.reraise (fun () -> raise Not_found); false with Not_found -> true);
        assert (try ignore (Exports.small 256); false with Invalid_argument _ -> true);
        assert (try ignore (Exports.parse_line 0); false with Exports.Parse_error ("empty", 3) -> true);
        assert (try ignore (Exports.fail_with 6); false with Failure s -> s = "Closed"); (* no module declares it *)
        print_endline "exports: ok"
    """
    (program.folder / "abort.ml").write_text(text)
    exports = program.folder / "exports.ml"
    exports.write_text(exports.read_text().replace("[%extension_constructor Ocaml_boxroot.Rust_error]", "()"))
    program.link("abort", "exports.mli", "exports.ml", "abort.ml")
    program.run("abort")


DRIFTED = (
    ("exports.ml", '"external half : (float', '"external half : (int', "the function `half` is `external half : (int"),
    ("exports.ml", '("the function `half`"', '("the function `halve`"', "the function `halve` is not in the library"),
    ("exports.ml", '("the function `half`"', None, "the function `half` of the library is not in exports.ml"),
    ("exports.ml", "check_ [|", "check_ [| Obj.magic 3;", "the table in exports.ml is not readable"),
    ("exports.ml", '"exception Full"', '"exception Full of int"', "the exception `Full` is `exception Full of int` in"),
    ("exports.ml", '("the exception `Full`"', None, "the exception `Full` of the library is not in exports.ml"),
    ("exports.ml", "exceptions_ [|", "exceptions_ [| Obj.magic 3;", "the table of exceptions in exports.ml is not"),
    ("exports_imports.ml", '"Host.add", "int', '"Host.add", "bool', "the function `Host.add` is `bool -> int -> int`"),
    ("exports_imports.ml", '"Host.add", "int', '"Host.sub", "int', "the library does not import `Host.sub`"),
    ("exports_imports.ml", '"exception Closed"', '"exception Open"', "the exception `Host.Closed` is `exception Open`"),
    ("exports_imports.ml", '("Host.Closed"', None, "the exception `Host.Closed` is not in exports_imports.ml"),
    ("exports_imports.ml", '("Host.add"', None, "the function `Host.add` is not in exports_imports.ml"),
)


def test_what_does_not_belong_together_is_refused(compiler: Compiler) -> None:
    program = Program(compiler, "drifted")
    (program.folder / "main.ml").write_text('let () = print_endline "exports: ok"\n')
    for file, pattern, replacement, message in DRIFTED:
        good = (program.folder / file).read_text()
        assert good.count(pattern) == 1, pattern
        if replacement is None:
            bad = "".join(line for line in good.splitlines(keepends=True) if pattern not in line)
        else:
            bad = good.replace(pattern, replacement)
        (program.folder / file).write_text(bad)
        program.link("main", *FILES, "main.ml", flags=("-w", "-a"))
        said = program.fails("main")
        assert message in said and "do not belong together" in said and "Failure" in said, said
        (program.folder / file).write_text(good)
    program.link("main", *FILES, "main.ml")
    program.run("main")


def test_imports_that_ocaml_refuses(compiler: Compiler) -> None:
    """The OCaml compiler sees that a function has another type, is not polymorphic, or gives a value any type."""
    program = Program(compiler, "typed")
    host = (program.folder / "host.ml").read_text()
    for pattern, replacement in (
        ("add a b = a + b", "add a b = a +. b"),
        ("identity x = x", "identity x = x + 1"),
        ("identity x = x", "module O = Obj\nlet identity = O.magic"),
        ("counter () = 42", "counter () = input_value stdin"),
        ("fail text : unit", "fail text"),
        ("pair x y = (x, y)", "pair x _ = (x, Obj.magic x)"),
        ("exception Closed", "exception Closed of int"),
        ("Refused of string * float", "Refused of string * int"),
        ("Pair of (int * bool)", "Pair of int * bool"),
        ("file : string; line : int", "file : string; line : float"),
    ):
        assert pattern in host
        (program.folder / "host.ml").write_text(host.replace(pattern, replacement))
        with pytest.raises(pytest.fail.Exception, match="exports_imports.ml"):
            program.link("main", *FILES)


def test_imports_that_are_registered_again(compiler: Compiler) -> None:
    """While Rust is calling one of them: what it uses lives on."""
    program = Program(compiler, "again")
    for file, pattern, replacement in (
        ("host.ml", "let add a b = a + b", "let hook = ref ignore\nlet add a b = !hook (); a + b"),
        ("exports_imports.ml", "let () =\n  register_", "let register_again () =\n  register_"),
        ("exports_imports.ml", "end : sig end)", "end)"),
    ):
        text = (program.folder / file).read_text()
        assert text.count(pattern) == 1
        (program.folder / file).write_text(text.replace(pattern, replacement))
    with (program.folder / "exports_imports.ml").open("a") as imports:
        imports.write("let () = register_again ()\n")
    (program.folder / "main.ml").write_text("""
      let () =
        Host.hook := (fun () -> Exports_imports.register_again (); Gc.compact ());
        for n = 1 to 50 do assert (Exports.import_add n 2 = n + 2) done;
        assert (Exports.walk 3 2 = 3);
        assert (match Exports.fail_with 6 with _ -> false | exception Host.Closed -> true);
        print_endline "exports: ok"
    """)
    program.link("main", *FILES, "main.ml", flags=("-w", "-a"))
    program.run("main")


def test_what_is_internal_is_hidden(compiler: Compiler) -> None:
    program = native(compiler)
    internal = ["Exports.check_", "Exports.exceptions_", "Exports_imports.register_"]
    internal += ["Ocaml_boxroot.seal", "Ocaml_boxroot.run"]
    for path in internal:
        (program.folder / "user.ml").write_text(f"let _ = {path}\n")
        with pytest.raises(pytest.fail.Exception, match=f"Unbound value {path}"):
            program.link("user", *FILES, "user.ml")


def test_exceptions_whose_arguments_are_in_other_places(compiler: Compiler) -> None:
    """OCaml takes the fields of a record in any order, and a tuple as several arguments; the library does not start."""
    program = Program(compiler, "order")
    host = (program.folder / "host.ml").read_text()
    for name, pattern, replacement in (
        ("Located", "{ file : string; line : int }", "{ line : int; file : string }"),
        ("Refused", "string * float", "(string * float)"),
    ):
        assert f"{name} of {pattern}" in host
        (program.folder / "host.ml").write_text(host.replace(f"{name} of {pattern}", f"{name} of {replacement}"))
        program.link("main", *FILES)
        said = program.fails("main")
        assert f"the exception `Host.{name}` has other arguments in OCaml than of {pattern}, or in" in said, said


CLIENT = """
#![forbid(unsafe_code)]
#![deny(warnings, rust_2018_idioms, unused_qualifications, missing_docs, clippy::all)]
#![deny(unsafe_op_in_unsafe_fn, elided_lifetimes_in_paths, single_use_lifetimes, unreachable_pub)]
//! A client.
use NAME::*;
mod sub {
    use NAME::*;
    ATTRIBUTE
    pub(crate) fn apply<'a, A, B>(
        rt: &'a mut Runtime, f: ValueRef<'_, Fun<(A,), B>>, a: ValueRef<'_, A>,
    ) -> Result<ValueGuard<'a, B>, Exception> {
        f.call(rt, (a,))
    }
}
ATTRIBUTE
fn many(a: isize, b: f64, c: String, d: bool, e: &str, f: i32) -> String {
    format!("{a}{b}{c}{d}{e}{f}")
}
NAME::import! {
    CRATE;
    mod host = "Host";
    pub fn add(a: isize, b: &str) -> Result<String, Exception>;
}
ATTRIBUTE
fn caller(rt: &mut Runtime) -> Result<String, Exception> {
    host::add(rt, 1, "x")
}
NAME::library! { name = "client", exports = [sub::apply, many, caller], imports = [host], CRATE }
"""


@pytest.mark.slow
@pytest.mark.parametrize("edition", ["2018", "2021", "2024"])
@pytest.mark.parametrize("name", ["ocaml_boxroot", "renamed"])
def test_macros_in_editions_and_renamed(compiler: Compiler, edition: str, name: str) -> None:
    shop = Shop(compiler)
    folder = shop.folder / f"clients-of-macros/{name}-{edition}"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    dependency = f'{name} = {{ package = "ocaml-boxroot", path = "{RUST / "ocaml-boxroot"}" }}'
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "client"\nversion = "0.0.0"\nedition = "{edition}"\n'
        f'[lib]\ncrate-type = ["staticlib"]\n[dependencies]\n{dependency}\n[workspace]\n'
    )
    text = CLIENT.replace("ATTRIBUTE", f"#[{name}::export(CRATE)]").replace("CRATE", f"crate = ::{name}")
    (folder / "src/lib.rs").write_text(text.replace("NAME", name))
    shop.pin(folder)
    shop.run([CARGO, "clippy", "--offline"], folder, target=shop.target)


def test_names_of_the_c_library(compiler: Compiler) -> None:
    """A crate and a function whose names make one of libc's take nobody's place."""
    shop = Shop(compiler)
    folder = shop.folder / "clock"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    (folder / "src/lib.rs").write_text("""
#![forbid(unsafe_code)]
use ocaml_boxroot::*;
#[export]
fn gettime() -> bool { std::time::SystemTime::now() > std::time::UNIX_EPOCH }
library! { name = "clock", exports = [gettime] }
""")
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "clock"\nversion = "0.0.0"\nedition = "2021"\n[lib]\ncrate-type = ["staticlib"]\n'
        f'[dependencies]\nocaml-boxroot = {{ path = "{RUST / "ocaml-boxroot"}" }}\n[workspace]\n'
    )
    shop.pin(folder)
    shop.run([CARGO, "build", "--offline"], folder, target=shop.target)
    shutil.copy(shop.target / "debug/libclock.a", folder)
    text = 'external text : string -> string = "clock_ocaml_text"\nlet () = print_string (text Sys.argv.(1))\n'
    (folder / "text.ml").write_text(text)
    shop.run([compiler.ocamlopt, "text.ml", "libclock.a", *LINK, "-o", "text"], folder)
    (folder / "clock.ml").write_text(shop.run(["./text", "ml"], folder))
    for file in MODULES.glob("ocaml_boxroot*"):
        shutil.copy(file, folder)
    (folder / "main.ml").write_text("let () = assert (Clock.gettime ())\n")
    shop.run([compiler.ocamlopt, *OURS, "clock.ml", "main.ml", "libclock.a", *LINK, "-o", "main"], folder)
    shop.run(["./main"], folder)


def many(folder: Path, count: int) -> None:
    functions = [
        f"#[export]\npub fn f{i}(rt: &mut Runtime, a: ValueRef<'_, Str>, n: isize) -> String {{\n"
        f"    rt.minor_gc();\n    format!(\"{{}} {{}}\", a.get(rt).to_str().unwrap(), n + {i})\n}}\n"
        for i in range(count)
    ]
    names = ", ".join(f"f{i}" for i in range(count))
    head = "#![forbid(unsafe_code)]\nuse ocaml_boxroot::*;\n"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src/lib.rs").write_text(
        head + "".join(functions) + f'library! {{ name = "exports", exports = [{names}] }}\n'
    )
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "exports"\nversion = "0.0.0"\nedition = "2021"\n[lib]\ncrate-type = ["staticlib"]\n'
        f'[dependencies]\nocaml-boxroot = {{ path = "{RUST / "ocaml-boxroot"}" }}\n[workspace]\n'
    )


@pytest.mark.slow
def test_two_hundred_exports(compiler: Compiler) -> None:
    shop = Shop(compiler)
    folder = shop.folder / "two-hundred"
    shutil.rmtree(folder, ignore_errors=True)
    many(folder, 200)
    shop.pin(folder)
    shop.run([CARGO, "build", "--offline"], folder, target=shop.target)
    shutil.copy(shop.target / "debug/libexports.a", folder)
    shutil.copy(SOURCES / "generate.ml", folder)
    shop.run([compiler.ocamlopt, "generate.ml", "libexports.a", *LINK, "-o", "generate"], folder)
    (folder / "exports.ml").write_text(shop.run(["./generate", "ml"], folder))
    for file in MODULES.glob("ocaml_boxroot*"):
        shutil.copy(file, folder)
    calls = "".join(f'  assert (Exports.f{i} "x" 1 = "x {i + 1}");\n' for i in range(200))
    (folder / "main.ml").write_text(f"let () =\n{calls}  print_endline \"two hundred: ok\"\n")
    shop.run([compiler.ocamlopt, *OURS, "exports.ml", "main.ml", "libexports.a", *LINK, "-o", "main"], folder)
    assert "two hundred: ok" in shop.run(["./main"], folder)

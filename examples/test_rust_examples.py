# SPDX-License-Identifier: MIT
"""The programs in Rust and OCaml: each from a copy in a folder of its own, as a user begins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import NO_DUNE, Compiler, dune, dune_is_there
from testing.crate import BUILD, CARGO, VENDORED, Shop
from testing.run import ROOT, Outcome
from testing.steps import locked

HOME = ROOT / "examples"
NO_RUST = crate.missing()


def may_use_dune(config: pytest.Config) -> bool:
    return bool(config.getoption("everything") or dune_is_there())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    there = may_use_dune(metafunc.config)
    alone = (test_rust_cargo, test_rust_new)
    why = NO_RUST or ("" if there or metafunc.function in alone else NO_DUNE)
    compilers = [c for c in matrix.ends() if c.major >= 5 or metafunc.function is not test_rust_handlers]
    skip = [pytest.mark.skip(reason=why)] if why else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-examples-{c.name}"), *skip]) for c in compilers
    ]
    metafunc.parametrize("compiler", params)


class Example:
    """A copy of an example. What the crates' compilation leaves is shared by all of a compiler's."""

    def __init__(self, compiler: Compiler, name: str) -> None:
        self.shop = Shop(compiler)
        self.folder = self.shop.folder / "examples" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(HOME / name, self.folder, ignore=shutil.ignore_patterns("target", "_build"))
        for file in (self.folder / ".cargo/config.toml", self.folder / "Cargo.toml"):
            if file.exists():
                file.write_text(re.sub(r"\.\./\.\./rust", f"{ROOT}/rust", file.read_text()))
        self.target = self.shop.target
        self.shop.online("fetch", "--locked", cwd=self.folder)

    def try_dune(self, *words: str, **more: str) -> Outcome:
        # dune's cache knows nothing of the crates outside of the folder.
        more = {"CARGO_TARGET_DIR": str(self.target), "DUNE_CACHE": "disabled"} | self.shop.package() | more
        return self.shop.try_run([dune(), words[0], "--root", ".", *words[1:]], self.folder, more=more)

    def dune(self, *words: str, **more: str) -> str:
        outcome = self.try_dune(*words, **more)
        assert outcome.passed, outcome.tail(30)
        return outcome.text

    def run(self, *words: str | Path, **more: str) -> str:
        return self.shop.run(words, self.folder, more=more)


DUNE_SAYS = "my_binding: all tests passed\n"


def test_rust_dune(compiler: Compiler) -> None:
    """Native code, bytecode and the toplevel."""
    example = Example(compiler, "rust-new-dune")
    rules = example.folder / "dune"
    rules.write_text(rules.read_text().replace("(name test)", "(name test)\n (modes exe byte)"))
    example.dune("build", "./test.exe", "./test.bc", "my_binding.cma")
    built = example.folder / "_build/default"
    assert example.run(built / "test.exe") == DUNE_SAYS
    places = example.shop.package()["OCAMLPATH"]
    stubs = {"CAML_LD_LIBRARY_PATH": f"{built}:{places}/stublibs"}
    assert example.run("ocamlrun", built / "test.bc", **stubs) == DUNE_SAYS
    (example.folder / "session.ml").write_text('#use "test.ml";;\n')
    folders = ["-I", built, "-I", built / ".my_binding.objs/byte", "-I", f"{places}/ocaml-boxroot"]
    archives = ("ocaml_boxroot.cma", "my_binding.cma")
    said = example.run("ocaml", "-noinit", *folders, *archives, "session.ml", **stubs)
    assert DUNE_SAYS in said, said


def compiled(text: str) -> set[str]:
    """The crates that cargo compiled."""
    return set(re.findall(r"Compiling ([\w-]+) v", text))


@pytest.mark.slow
def test_rust_dune_in_a_sandbox(compiler: Compiler) -> None:
    """Only what has changed is compiled again, although each run is in a fresh folder."""
    example = Example(compiler, "rust-new-dune")
    library = example.folder / "src/lib.rs"
    target = {"CARGO_TARGET_DIR": "", "CARGO_TERM_QUIET": "false"}  # as users have it, in _build; and it tells
    build = ("build", "--sandbox", "symlink", "./test.exe")
    assert {"ocaml-boxroot", "my_binding"} <= compiled(example.dune(*build, **target))
    assert compiled(example.dune(*build, **target)) == set()
    assert (example.folder / "_build/.cargo/release/libmy_binding.a").exists()
    source = library.read_text()
    changed = source.replace("fn sum(", "fn total(").replace("[greet, sum,", "[greet, total,")
    assert changed.count("total") == 2
    library.write_text(changed)
    outcome = example.try_dune(*build, **target)
    assert "Unbound value My_binding.sum" in outcome.text, outcome.tail(30)
    assert compiled(outcome.text) == {"my_binding"}
    test = example.folder / "test.ml"
    test.write_text(test.read_text().replace("My_binding.sum", "My_binding.total"))
    assert compiled(example.dune(*build, **target)) == set()
    assert example.run(example.folder / "_build/default/test.exe") == DUNE_SAYS


ARCHIVED = """
use ocaml_boxroot::*;
import! {
    mod helper = "Helper";
    pub fn twice(n: isize) -> Result<isize, Exception>;
}
type Error = Box<dyn std::error::Error + Send + Sync>;
#[export]
fn four(rt: &mut Runtime) -> Result<isize, Exception> { helper::twice(rt, 2) }
#[export]
fn fails() -> Result<isize, Error> { Err("no".into()) }
#[export]
fn domain(rt: &mut Runtime) -> Result<isize, Error> {
    let domain = rt.spawn_domain(|_| 42)?;
    Ok(domain.join(rt).map_err(|e| e.to_string())?)
}
library! { name = "my_binding", exports = [four, fails, domain], imports = [helper] }
"""
OF_ARCHIVED = """
let say f = print_endline (match f () with n -> string_of_int n | exception e -> Printexc.to_string e)
let () = My_binding.(say four; say fails; say domain)
"""


@pytest.mark.slow
def test_rust_dune_library_is_whole(compiler: Compiler) -> None:
    """A library is an archive, of which OCaml drops modules that no other one names. What is lost then is said."""
    example = Example(compiler, "rust-new-dune")
    (example.folder / "src/lib.rs").write_text(ARCHIVED)
    (example.folder / "helper.ml").write_text("let twice n = 2 * n\n")
    (example.folder / "test.ml").write_text(OF_ARCHIVED)
    rules = (example.folder / "dune").read_text()
    for old, new in (
        ("my_binding.ml my_binding.mli", "my_binding.ml my_binding.mli my_binding_imports.ml"),
        ("(modules my_binding", "(modules helper my_binding_imports my_binding"),
    ):
        assert old in rules
        rules = rules.replace(old, new)
    (example.folder / "dune").write_text(rules)
    example.dune("build", "./test.exe")
    domain = "42" if compiler.major >= 5 else "Rust error: no domains: this is OCaml 4"
    said = example.run(example.folder / "_build/default/test.exe").splitlines()
    assert said == ["4", "Rust error: no", domain], said
    assert rules.count(" (library_flags -linkall)") == 1
    (example.folder / "dune").write_text(rules.replace(" (library_flags -linkall)", " "))
    example.dune("build", "./test.exe")
    said = example.run(example.folder / "_build/default/test.exe").splitlines()
    assert "Helper.twice is not registered" in said[0] and "(library_flags -linkall)" in said[0], said
    assert said[1:] == ["Rust error: no", domain], said


@pytest.mark.slow
def test_rust_dune_wherever_cargo_writes(compiler: Compiler, tmp_path: Path) -> None:
    """The library is the one that cargo has just built, for a named target too; the project is in a folder of another
    one, and dune builds elsewhere."""
    example = Example(compiler, "rust-new-dune")
    outer, test = example.folder / "outer", "./inner/test.exe"
    inner = outer / "inner"
    files = list(example.folder.iterdir())
    inner.mkdir(parents=True)
    for file in files:
        file.rename(inner / file.name)
    (inner / "dune-project").rename(outer / "dune-project")
    example.folder = outer
    host = re.search(r"^host: (.*)$", example.run("rustc", "-vV"), re.M)
    assert host is not None
    source = (inner / "src/lib.rs").read_text()
    for where, greeting, more in (
        ("_build", "Hello", {}),
        ("_build", "Welcome", {"CARGO_BUILD_TARGET": host[1]}),
        (str(tmp_path / "a build"), "Good day", {"CARGO_TARGET_DIR": ""}),
    ):
        (inner / "src/lib.rs").write_text(source.replace("Hello", greeting))
        text = (HOME / "rust-new-dune/test.ml").read_text()
        (inner / "test.ml").write_text(text.replace("Hello", greeting))
        example.dune("build", "--build-dir", where, test, **more)
        assert example.run(outer / where / "default" / test) == DUNE_SAYS
    assert (tmp_path / "a build/.cargo/release/libmy_binding.a").exists()


@pytest.mark.everything
def test_rust_dune_with_vendored_crates(compiler: Compiler) -> None:
    """Nothing but the project's files, as in a sandbox of opam."""
    example = Example(compiler, "rust-new-dune")
    example.run(CARGO, "--offline", "vendor", "vendor")
    config = example.folder / ".cargo/config.toml"
    config.write_text(config.read_text() + VENDORED)
    home = example.folder / "home"
    home.mkdir()
    toolchains = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    words = ("build", "--sandbox", "symlink", "./test.exe")
    example.dune(*words, CARGO_HOME=str(home), RUSTUP_HOME=toolchains)
    assert not (home / "registry").exists()
    assert example.run(example.folder / "_build/default/test.exe") == DUNE_SAYS


@pytest.mark.everything
def test_rust_dune_with_crates_in_the_project(compiler: Compiler) -> None:
    """They are in the sandbox too, and so compiled in each; what was fetched is not."""
    example = Example(compiler, "rust-new-dune")
    crates = ("ocaml-boxroot", "ocaml-boxroot-derive", "ocaml-boxroot-sys")
    for name in crates:
        shutil.copytree(ROOT / "rust" / name, example.folder / "crates" / name)
    manifest = example.folder / "Cargo.toml"
    text = manifest.read_text().replace('= "0.1"', '= { path = "crates/ocaml-boxroot" }')
    manifest.write_text(f'{text}exclude = ["crates"]\n')
    shutil.rmtree(example.folder / ".cargo")
    rules = example.folder / "dune"
    text = rules.read_text().replace("(source_tree src)", "(source_tree src) (source_tree crates)")
    rules.write_text(f"{text}(data_only_dirs crates)\n")
    words = ("build", "--sandbox", "symlink", "./test.exe")
    loud = {"CARGO_TARGET_DIR": "", "CARGO_TERM_QUIET": "false"}
    example.dune(*words, **loud)
    glue = example.folder / "crates/ocaml-boxroot/glue/all.c"
    glue.write_text(f"{glue.read_text()}\n")
    assert compiled(example.dune(*words, **loud)) == {*crates, "my_binding"}
    assert example.run(example.folder / "_build/default/test.exe") == DUNE_SAYS


@pytest.mark.slow
def test_rust_handlers(compiler: Compiler) -> None:
    said = Example(compiler, "rust-handlers").dune("exec", "./main.exe")
    assert "102 handlers are left, the sum is 501000" in said, said


@pytest.mark.slow
def test_rust_queue(compiler: Compiler) -> None:
    said = Example(compiler, "rust-queue").dune("exec", "./main.exe")
    assert "the smallest: 1; 9999 more\nthe queue is freed" in said, said


@pytest.mark.slow
def test_rust_bound_crate(compiler: Compiler) -> None:
    said = Example(compiler, "rust-bound-crate").dune("exec", "./main.exe")
    assert "bytes: true\nerror: there is no level 10\nerror: corrupt deflate stream" in said, said


@pytest.mark.slow
def test_rust_async(compiler: Compiler) -> None:
    said = Example(compiler, "rust-async").dune("exec", "./main.exe")
    assert "100 tasks of 50 ms, and 20 callbacks" in said, said


def command_of(shop: Shop) -> Path:
    """The folder of `cargo-ocaml-boxroot`."""
    command = BUILD / "command"
    with locked(BUILD / "command.lock"):
        shop.cargo("build", "-p", "cargo-ocaml-boxroot", cwd=ROOT / "rust", target=command)
    return command / "debug"


def paths(shop: Shop) -> dict[str, str]:
    """The settings of a user with `cargo ocaml-boxroot`, and with the OCaml package if there is a dune."""
    package = shop.package() if dune_is_there() else {"PATH": shop.settings["PATH"]}
    return package | {"PATH": f"{command_of(shop)}:{package['PATH']}", "CARGO_TARGET_DIR": str(shop.target)}


@pytest.mark.slow
def test_rust_cargo(compiler: Compiler) -> None:
    example = Example(compiler, "rust-cargo")
    command = command_of(example.shop)
    path = {"PATH": f"{command}:{example.shop.settings['PATH']}", "CARGO_TARGET_DIR": str(example.target)}
    generate = (CARGO, "ocaml-boxroot", "generate", "--offline", "--bare", "--out", "ocaml")
    # The files in the repository are those of the library.
    example.run(*generate, "--check", **path)
    formulas = ("1.5 + X * (2 + 0.25)", "1 + * 2", "Y")
    said = example.run(CARGO, "run", "--offline", "--quiet", "--", *formulas, X="4", **path)
    assert said.splitlines() == [
        'Sum(Number(1.5), Product(Variable("X"), Sum(Number(2.0), Number(0.25))))',
        "10.5",
        'OCaml raised Interpreter.Syntax_error("*")',
        'Variable("Y")',
        "OCaml raised Rust error: $Y: environment variable not found",
    ], said


def lines(file: Path) -> list[str]:
    """Without what differs: the licence's name, and where the crates are."""
    text = file.read_text().splitlines()
    return [re.sub(r'path = "[^"]*/', 'path = "', line) for line in text if "SPDX" not in line]


def test_rust_readme(compiler: Compiler, pytestconfig: pytest.Config) -> None:
    """What the README of ocaml-boxroot shows, in both languages, in a project as it says."""
    if not may_use_dune(pytestconfig):
        pytest.skip(NO_DUNE)
    shop = Shop(compiler)
    folder = shop.folder / "examples/readme"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = paths(shop)
    shop.run([CARGO, "ocaml-boxroot", "new", "events"], folder, more=path)
    text = (ROOT / "rust/ocaml-boxroot/README.md").read_text()
    blocks = dict(re.findall(r"^```(rust|ocaml)\n(.*?)^```$", text, re.M | re.S))
    (folder / "events/src/lib.rs").write_text(blocks["rust"])
    (folder / "events/test.ml").write_text(blocks["ocaml"])
    shop.pin(folder / "events")
    shop.online("fetch", cwd=folder / "events")
    said = shop.run([dune(), "test", "--root", "."], folder / "events", more=path | {"DUNE_CACHE": "disabled"})
    assert "all events were handled" in said


@pytest.mark.parametrize("kind", [pytest.param("dune", marks=pytest.mark.slow), "cargo"])
def test_rust_new(compiler: Compiler, kind: str, pytestconfig: pytest.Config) -> None:
    """`cargo ocaml-boxroot new` writes the example's files; with another name they build, and their tests pass."""
    if kind == "dune" and not may_use_dune(pytestconfig):
        pytest.skip(NO_DUNE)
    shop = Shop(compiler)
    folder = shop.folder / "examples" / f"new-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = paths(shop)
    example = HOME / f"rust-new-{kind}"
    for name in ("my_binding", "hello-world"):
        told = shop.run([CARGO, "ocaml-boxroot", "new", name, f"--{kind}"], folder, more=path)
        assert f"with OCaml in PATH: cd {name} && cargo fetch && " in told and "eval $(opam env)" in told, told
    again = shop.try_run([CARGO, "ocaml-boxroot", "new", "hello-world", f"--{kind}"], folder, more=path)
    assert again.code == 2 and "there is something at hello-world already" in again.text, again.text
    listed = subprocess.run(["git", "ls-files"], cwd=example, capture_output=True, text=True, check=True).stdout.split()
    listed.remove("Cargo.lock")  # the project gets its own
    files = [file for file in (folder / "my_binding").rglob("*") if file.is_file()]
    assert {str(file.relative_to(folder / "my_binding")) for file in files} == set(listed)
    assert all(lines(folder / "my_binding" / file) == lines(example / file) for file in listed)
    project = folder / "hello-world"
    assert (project / "README.md").read_text().startswith("# hello-world\n")
    shop.pin(project)
    shop.online("fetch", cwd=project)
    if kind == "cargo":
        # The OCaml side of the new name is what its library writes.
        generate = ("ocaml-boxroot", "generate", "--offline", "--bare", "--check", "--out", "ocaml")
        shop.run([CARGO, *generate], project, more=path)
        # More tests, on threads of their own.
        test = project / "tests/counter.rs"
        begin, body = test.read_text().split("#[test]\nfn words_are_counted")
        test.write_text(begin + "".join(f"#[test]\nfn words_{n}{body}" for n in range(9)))
        assert "9 passed" in shop.run([CARGO, "test", "--offline"], project, more=path)
    else:
        said = shop.run([dune(), "test", "--root", "."], project, more=path | {"DUNE_CACHE": "disabled"})
        assert "hello_world: all tests passed" in said

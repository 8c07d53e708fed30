# SPDX-License-Identifier: MIT
"""OCaml packages with Rust inside: two of them, from archives of their own, in one program."""

from __future__ import annotations

import shutil
import tarfile
from functools import cache
from pathlib import Path

import pytest
from test_rust_examples import NO_RUST, may_use_dune
from testing import matrix
from testing.compilers import NO_DUNE, Compiler, dune
from testing.crate import Shop
from testing.run import ROOT

COPIES = ROOT / "rust/tests/copies"
EXAMPLE = ROOT / "examples/rust-new-dune"
# The libraries of rust/tests/copies, and what needs modules that nothing refers to: imported functions, domains.
OLD = """library! {
    name = "NAME", exports = [mine,"""
IMPORTS = """
type Error = Box<dyn std::error::Error + Send + Sync>;
import! {
    mod helper = "Helper_of_NAME";
    pub fn twice(n: isize) -> Result<isize, Exception>;
}
#[export]
fn four(rt: &mut Runtime) -> Result<isize, Exception> { helper::twice(rt, 2) }
#[export]
fn refuse() -> Result<isize, Error> { Err("refused by NAME".into()) }
#[export]
fn domain(rt: &mut Runtime) -> Result<isize, Error> { Ok(rt.spawn_domain(|_| 42)?.join(rt)?) }
#[export]
fn thread(rt: &mut Runtime, f: Root<Fun<(Unit,), Int>>) -> Result<isize, Error> {
    let run = move || attach(|rt| f.call(rt, ((),)).map(|n| n.value().to_isize()).ok());
    Ok(rt.join(std::thread::spawn(run))??.unwrap_or(-1))
}
library! {
    name = "NAME", imports = [helper], exports = [four, refuse, domain, thread, mine,"""
MAIN = """
let error f = match f () with _ -> "" | exception Ocaml_boxroot.Rust_error e -> e.message | exception e -> raise e
let () =
  User.run ();
  assert (One.four () = 4 && Two.four () = 4);
  assert (error One.refuse = "refused by one" && error Two.refuse = "refused by two");
  assert (One.thread (fun () -> Two.four ()) = 4 && Two.thread (fun () -> One.four ()) = 4);
  if Sys.ocaml_release.major >= 5 then assert (One.domain () = 42 && Two.domain () = 42);
  print_endline "packages: ok"
"""
RULES = "(executable (name main) (modes exe byte) (libraries one two threads.posix))\n"
PASSED = "packages: ok"
QUIET = {"RUST_BACKTRACE": "0"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = NO_RUST or ("" if may_use_dune(metafunc.config) else NO_DUNE)
    skip = [pytest.mark.skip(reason=why)] if why else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-examples-{c.name}"), *skip])
        for c in matrix.ends()
    ]
    metafunc.parametrize("compiler", params)


def archive(folder: Path, name: str, profile: str, features: str) -> Path:
    """A project that began as the skeleton, with another library in it, as an archive of its files."""
    project = folder / "sources" / name
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("target", "_build", "test.ml"))
    source = (COPIES / "library.rs").read_text()
    (project / "src/lib.rs").write_text(source.replace(OLD, IMPORTS).replace("NAME", name))
    (project / f"helper_of_{name}.ml").write_text("let twice n = 2 * n\n")
    for file in ("Cargo.toml", "Cargo.lock", "dune", "dune-project"):
        (project / file).write_text((project / file).read_text().replace("my_binding", name))
    manifest = project / "Cargo.toml"
    text = manifest.read_text().replace('= "0.1"', f'= {{ version = "0.1", features = [{features}] }}')
    manifest.write_text(f"{text}\n{profile}")
    config = project / ".cargo/config.toml"
    config.write_text(config.read_text().replace("../../rust", f"{ROOT}/rust"))
    rules = project / "dune"
    text = rules.read_text().partition("(test\n")[0]
    text = text.replace(f"{name}.ml {name}.mli", f"{name}.ml {name}.mli {name}_imports.ml")
    rules.write_text(text.replace(f"(modules {name})", f"(modules {name} {name}_imports helper_of_{name})"))
    packed = folder / f"{name}.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(project, name)
    return packed


class Packages:
    """Two packages, and where they and ocaml-boxroot are installed. One is optimised across crates, the other has the C
    library's checks: no code is shared but OCaml's."""

    def __init__(self, compiler: Compiler) -> None:
        self.shop = Shop(compiler)
        self.folder = self.shop.folder / "packages"
        self.prefix = self.folder / "prefix"
        shutil.rmtree(self.folder, ignore_errors=True)
        path = self.shop.package()
        self.places = [Path(path["OCAMLPATH"]), self.prefix / "lib"]
        path |= {"OCAMLPATH": ":".join(map(str, self.places)), "CAML_LD_LIBRARY_PATH": f"{self.places[0]}/stublibs"}
        path["CAML_LD_LIBRARY_PATH"] += f":{self.prefix}/lib/stublibs"
        self.settings = path | {"CARGO_TARGET_DIR": str(self.shop.target), "DUNE_CACHE": "disabled"} | QUIET
        for name, profile, features in (
            ("one", '[profile.release]\nlto = "fat"\n', ""),
            ("two", "[profile.release]\nopt-level = 0\ndebug-assertions = true\n", '"checked"'),
        ):
            with tarfile.open(archive(self.folder, name, profile, features)) as tar:
                tar.extractall(self.folder, filter="data")
            self.run(dune(), "build", "-p", name, "@install", folder=name)
            self.run(dune(), "install", "-p", name, "--prefix", self.prefix, folder=name)

    def run(self, *words: str | Path, folder: str = "user") -> str:
        return self.shop.run(words, self.folder / folder, more=self.settings)

    def project(self) -> Path:
        """A program that uses both."""
        user = self.folder / "user"
        shutil.rmtree(user, ignore_errors=True)
        user.mkdir()
        shutil.copy(COPIES / "user.ml", user)
        (user / "main.ml").write_text(MAIN)
        return user


@cache
def packages(compiler: Compiler) -> Packages:
    return Packages(compiler)


@pytest.mark.slow
def test_rust_packages(compiler: Compiler) -> None:
    """Native code and bytecode."""
    made = packages(compiler)
    user = made.project()
    (user / "dune").write_text(RULES)
    (user / "dune-project").write_text("(lang dune 3.8)\n")
    made.run(dune(), "build", "--root", ".", "./main.exe", "./main.bc")
    assert PASSED in made.run(user / "_build/default/main.exe")
    assert PASSED in made.run("ocamlrun", user / "_build/default/main.bc")


@pytest.mark.slow
def test_rust_packages_that_are_loaded(compiler: Compiler) -> None:
    """As plug-ins of a program that contains one of them, or none; and in the toplevel."""
    made = packages(compiler)
    user = made.project()
    ours = [made.places[0] / "ocaml-boxroot", made.places[1] / "one", made.places[1] / "two"]
    libraries = [*compiler.libraries, *(word for folder in ours for word in ("-I", folder))]
    (user / "host.ml").write_text("let () = Array.iteri (fun i f -> if i > 0 then Dynlink.loadfile f) Sys.argv\n")
    made.run(compiler.ocamlopt, *libraries, "-c", "user.ml", "main.ml")
    made.run(compiler.ocamlopt, "-shared", "user.cmx", "main.cmx", "-o", "main.cmxs")
    plugins = [ours[0] / "ocaml_boxroot.cmxs", ours[1] / "one.cmxs", ours[2] / "two.cmxs", "./main.cmxs"]
    host = ["unix.cmxa", "threads.cmxa", "dynlink.cmxa"]
    flags = ["-ccopt", f"-Wl,-E -L{ours[0]} -L{ours[1]}", "-o", "host"]
    for n, inside in ((0, []), (2, ["ocaml_boxroot.cmxa", "one.cmxa"])):
        made.run(compiler.ocamlopt, "-linkall", *libraries, *host, *inside, "host.ml", *flags)
        assert PASSED in made.run("./host", *plugins[n:])
    (user / "session.ml").write_text('#use "main.ml";;\n')
    archives = ["unix.cma", "threads.cma", "ocaml_boxroot.cma", "one.cma", "two.cma"]
    made.run(compiler.prefix / "bin/ocamlc", *libraries, "-a", "user.ml", "-o", "user.cma")
    assert PASSED in made.run("ocaml", "-noinit", *libraries, *archives, "user.cma", "session.ml")

# SPDX-License-Identifier: MIT
"""OCaml packages with Rust inside: two of them, from archives of their own, in one program."""

from __future__ import annotations

import shutil
import tarfile
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
MAIN_RULES = "(executable (name main) (modes exe byte) (libraries one two threads.posix))\n"


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


def test_rust_packages(compiler: Compiler) -> None:
    """One is optimised across crates, the other has the C library's checks: no code is shared but OCaml's."""
    shop = Shop(compiler)
    folder = shop.folder / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    prefix = folder / "prefix"
    path = shop.package() | {"CARGO_TARGET_DIR": str(shop.target), "DUNE_CACHE": "disabled"}
    path["OCAMLPATH"] += f":{prefix}/lib"
    for name, profile, features in (
        ("one", '[profile.release]\nlto = "fat"\npanic = "unwind"\n', ""),
        ("two", "[profile.release]\nopt-level = 0\ndebug-assertions = true\n", '"checked"'),
    ):
        with tarfile.open(archive(folder, name, profile, features)) as tar:
            tar.extractall(folder, filter="data")
        shop.run([dune(), "build", "-p", name, "@install"], folder / name, more=path)
        shop.run([dune(), "install", "-p", name, "--prefix", prefix], folder / name, more=path)
    user = folder / "user"
    user.mkdir()
    shutil.copy(COPIES / "user.ml", user)
    (user / "main.ml").write_text(MAIN)
    (user / "dune").write_text(MAIN_RULES)
    (user / "dune-project").write_text("(lang dune 3.8)\n")
    shop.run([dune(), "build", "--root", ".", "./main.exe", "./main.bc"], user, more=path)
    quiet = {"RUST_BACKTRACE": "0"}
    assert "packages: ok" in shop.run([user / "_build/default/main.exe"], user, more=quiet)
    stubs = {"CAML_LD_LIBRARY_PATH": f"{prefix}/lib/stublibs:{path['OCAMLPATH'].partition(':')[0]}/stublibs"}
    assert "packages: ok" in shop.run(["ocamlrun", user / "_build/default/main.bc"], user, more=quiet | stubs)

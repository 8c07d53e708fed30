# SPDX-License-Identifier: MIT
"""The crate itself: its tests in all builds, which paths are inline, its package, the messages of its build script."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import CARGO, CRATE, RUNTIME, Shop
from testing.run import ROOT

NAMES = re.compile(
    r"\bboxroot_v[0-9]+_((?:create|delete|modify|create_in|delete_in)(?:_slow)?)(?:__program_[A-Za-z0-9_]*)?\b"
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()
    ]
    metafunc.parametrize("compiler", params)


@pytest.fixture
def shop(compiler: Compiler) -> Shop:
    return Shop(compiler)


def test_crate_tests(shop: Shop) -> None:
    shop.cargo("test", "--features", RUNTIME)


@pytest.mark.everything
def test_crate_tests_of_the_checked_build(shop: Shop) -> None:
    shop.cargo("test", "--features", f"{RUNTIME},checked")


@pytest.mark.everything
def test_crate_tests_optimised(shop: Shop) -> None:
    shop.cargo("test", "--release", "--features", RUNTIME, "--test", "roots")


@pytest.mark.slow
def test_crate_tests_with_calls_in_place_of_inline_paths(shop: Shop) -> None:
    shop.cargo("test", "--release", "--features", f"{RUNTIME},dynamic-tls", "--test", "roots")


def _expected(target: str, features: str) -> set[str]:
    calls = {"create", "create_in", "delete", "delete_in", "modify"}
    if features != RUNTIME or target not in ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"):
        return calls
    return {"create_slow", "create_in_slow", "delete_slow", "modify_slow"}


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(RUNTIME, id="default"),
        pytest.param(f"{RUNTIME},dynamic-tls", id="dynamic-tls", marks=pytest.mark.slow),
        pytest.param(f"{RUNTIME},checked", id="checked", marks=pytest.mark.slow),
    ],
)
def test_what_is_inline(shop: Shop, features: str) -> None:
    """Creation, deletion and modification are inline where they can be, by the names in the compiled code."""
    said = subprocess.run(
        ["rustc", "-vV"], capture_output=True, text=True, check=True, env=os.environ | shop.settings
    ).stdout
    target = next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))
    folder = shop.folder / f"inline-{features.rpartition(',')[2]}"  # cargo writes nothing anew that has not changed
    shop.cargo(
        "rustc",
        "--release",
        "--features",
        features,
        "--example",
        "hot_paths",
        "--",
        "--emit",
        "asm,link",
        "-C",
        "codegen-units=1",
        target=folder,
    )
    newest = max((folder / "release/examples").glob("hot_paths-*.s"), key=lambda f: f.stat().st_mtime)
    assert set(NAMES.findall(newest.read_text())) == _expected(target, features)


@pytest.mark.slow
def test_package(shop: Shop) -> None:
    """It holds the C library's files, no links and no absolute paths; it is built and tested from its archive."""
    listed = shop.cargo("package", "--allow-dirty", "--list").split()
    ours = {
        str(f.relative_to(ROOT / "boxroot"))
        for part in ("src", "include")
        for f in (ROOT / "boxroot" / part).rglob("*.[ch]")
    }
    assert {name.removeprefix("vendor/") for name in listed if name.startswith("vendor/")} == ours
    shop.cargo("package", "--allow-dirty")  # builds what it packed
    version = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]["version"]
    packed = shop.target / f"package/ocaml-boxroot-sys-{version}"
    files = [f for f in packed.rglob("*") if "target" not in f.relative_to(packed).parts]
    assert not [f for f in files if f.is_symlink()]
    assert not [f for f in files if f.suffix in (".rs", ".toml", ".c", ".h") and str(ROOT) in f.read_text()]
    shop.cargo("test", "--features", RUNTIME, cwd=packed)


@pytest.fixture
def nowhere(shop: Shop) -> Path:
    """A folder without OCaml, to stand in PATH. What is compiled already need not be compiled again."""
    folder = shop.folder / "empty"
    folder.mkdir(exist_ok=True)
    shop.cargo("build", target=shop.folder / "lookup")
    return folder


def _old(shop: Shop) -> str:
    folder = shop.folder / "old"
    (folder / "caml").mkdir(parents=True, exist_ok=True)
    (folder / "caml/version.h").write_text("#define OCAML_VERSION 41302\n")
    return str(folder)


MESSAGES = {
    "no-ocaml": (
        "",
        "",
        [
            "cannot find OCaml",
            "OCAML_WHERE_PATH, a folder: not set",
            "OCAMLOPT, a command: not set",
            "no program ocamlopt in ",
            "OPAM_SWITCH_PREFIX, the opam switch: not set",
            "no program ocamlfind in ",
            "NOWHERE",
            "opam env",
        ],
    ),
    "no-ocamlopt": (
        "OCAMLOPT",
        "/nonexistent/ocamlopt",
        ["OCAMLOPT=/nonexistent/ocamlopt: no such file", "OCAMLOPT is set"],
    ),
    "old-ocaml": ("OCAML_WHERE_PATH", "OLD", ["holds OCaml 4.13.2; 4.14 or later is needed"]),
    "empty-switch": ("OPAM_SWITCH_PREFIX", "NOWHERE", ["NOWHERE/bin/ocamlopt of the opam switch: no such file"]),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_message(shop: Shop, nowhere: Path, message: str) -> None:
    """The build fails with these lines and no panic."""
    name, value, lines = MESSAGES[message]
    more = {"PATH": str(nowhere), "RUSTC": str(Path(CARGO).with_name("rustc"))}
    if name:
        more[name] = value.replace("NOWHERE", str(nowhere)).replace("OLD", _old(shop))
    without = () if name == "OCAMLOPT" else ("OCAMLOPT",)
    outcome = shop.try_run([CARGO, "build"], CRATE, shop.folder / "lookup", more, without)
    assert not outcome.passed
    assert "error: ocaml-boxroot-sys: " in outcome.text
    assert not re.search("panicked|RUST_BACKTRACE", outcome.text)
    for line in lines:
        assert line.replace("NOWHERE", str(nowhere)) in outcome.text


def test_builds_without_looking_for_ocaml(shop: Shop, nowhere: Path) -> None:
    """Without the bundled library nothing is looked for; with the folder alone, nothing needs to be in PATH."""
    target = shop.folder / "lookup"
    bare = shop.try_run([CARGO, "build", "--no-default-features"], CRATE, target, without=("OCAMLOPT",))
    assert bare.passed, bare.tail()
    path = {"PATH": shop.settings["PATH"].split(":", 1)[1], "OCAML_WHERE_PATH": str(shop.compiler.where)}
    told = shop.try_run([CARGO, "build"], CRATE, target, path, ("OCAMLOPT",))
    assert told.passed, told.tail()

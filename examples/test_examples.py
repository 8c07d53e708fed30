# SPDX-License-Identifier: MIT
"""The programs in C and C++, and over the raw crate; the others are in test_dune.py and test_rust_examples.py."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from testing import crate, matrix, steps, variants
from testing.compilers import KNOWN_TO_OUTHEAP, Compiler
from testing.crate import CARGO, Shop
from testing.programs import CC, CXX
from testing.run import BUILD, ROOT, run

HOME = ROOT / "examples"
LIBRARY = ROOT / "boxroot/src/all.c"
FLAGS = f"-O2 -Wall -Wextra -Werror -I{ROOT}/boxroot/include"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("compiler", matrix.compilers(brief=False), ids=lambda c: c.name)


@pytest.fixture
def place(compiler: Compiler, request: pytest.FixtureRequest) -> Path:
    """A folder with copies of an example's files."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")
    case = re.sub(r"\W+", "-", request.node.name)
    folder = BUILD / compiler.name / f"example-{case}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HOME / name, folder, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    return folder


def ocaml(compiler: Compiler, place: Path, *words: str | Path) -> None:
    steps.command([compiler.ocamlopt, "-g", "-cc", CC, "-ccopt", FLAGS, *words], place)


def passes(place: Path, program: str) -> None:
    outcome = run([f"./{program}"], place, place / "log", 120)
    assert outcome.passed, outcome.tail()


def test_demo(compiler: Compiler, place: Path) -> None:
    ocaml(compiler, place, LIBRARY, "demo_stubs.c", "demo.ml", "-cclib", "-lpthread", "-o", "demo")
    passes(place, "demo")


def test_c(compiler: Compiler, place: Path) -> None:
    ocaml(compiler, place, LIBRARY, "events_stubs.c", "events.ml", "-o", "events")
    passes(place, "events")


BOTH_RUNTIMES = pytest.mark.parametrize("variant", [False, True], ids=["stock", "variant"])


def with_regions(compiler: Compiler, place: Path, variant: bool, *modules: str) -> None:
    """Builds `program` of these modules and the library of regions."""
    if variant and compiler.version not in KNOWN_TO_OUTHEAP:
        pytest.skip("Outheap does not know this version")
    region = ROOT / "outheap/lib/region"
    for file in region.glob("*.[chm]*"):
        shutil.copy(file, place)
    include = ["-ccopt", f"-I {ROOT}/outheap/include -I {place}"]
    stubs = sorted(f.name for f in place.glob("*.c"))
    unix = [*compiler.libraries, "unix.cmxa"]
    linked = ["-I", variants.library(compiler, "release"), "-runtime-variant", "_outheap"] if variant else []
    all_modules = ["outheap_region.mli", "outheap_region.ml", *modules]
    steps.command([compiler.ocamlopt, "-g", *linked, *include, *unix, *stubs, *all_modules, "-o", "program"], place)


@BOTH_RUNTIMES
def test_regions(compiler: Compiler, place: Path, variant: bool) -> None:
    with_regions(compiler, place, variant, "dictionary.ml")
    outcome = run(["./program"], place, place / "log", 120)
    assert outcome.passed, outcome.tail()
    lines = outcome.text.splitlines()
    assert lines[:4] == [f"worker {i}: meaning 17 of edition 1" for i in range(4)]
    assert lines[4:8] == ["edition 2"] * 4
    assert lines[8:] == ["meaning 25000 of edition 2", "meaning 30000 of edition 2", "unknown"]


@BOTH_RUNTIMES
def test_coq_images(compiler: Compiler, place: Path, variant: bool) -> None:
    """With a stand-in for Coq."""
    for file in (place / "test").iterdir():
        shutil.copy(file, place)
    with_regions(compiler, place, variant, "objFile.ml", "vo_image.ml", "vo_image_test.ml")
    for images, settings in (("on", {}), ("off", {"COQ_IMAGES": "no"})):
        outcome = run(["./program", images], place, place / "log", 120, settings)
        assert outcome.passed, outcome.tail()


@BOTH_RUNTIMES
def test_hashcons(compiler: Compiler, place: Path, variant: bool) -> None:
    for file in (ROOT / "outheap/lib/hashcons").glob("*.[chm]*"):
        shutil.copy(file, place)
    with_regions(compiler, place, variant, "outheap_hashcons.mli", "outheap_hashcons.ml", "terms.ml")
    outcome = run(["./program"], place, place / "log", 120)
    assert outcome.passed, outcome.tail()
    assert outcome.text.splitlines()[1].startswith("the tenth derivative has ")


@BOTH_RUNTIMES
def test_linear(compiler: Compiler, place: Path, variant: bool) -> None:
    for file in (ROOT / "outheap/lib/linear").glob("*.[chm]*"):
        shutil.copy(file, place)
    library = compiler.in_order(place.glob("outheap_linear*.ml*"))
    with_regions(compiler, place, variant, *library, "sessions.ml")
    outcome = run(["./program"], place, place / "log", 120)
    assert outcome.passed, outcome.tail()
    assert outcome.text.startswith("500 sessions, ")


def test_cpp(compiler: Compiler, place: Path) -> None:
    include = [f"-I{ROOT}/boxroot/include", f"-I{compiler.where}"]
    steps.command([CXX, "-std=c++11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "cache_stubs.cpp", *include], place)
    ocaml(compiler, place, LIBRARY, "cache_stubs.o", "cache.ml", "-cclib", "-lstdc++", "-o", "cache")
    passes(place, "cache")


def cargo(compiler: Compiler, place: Path) -> Path:
    """Where the archives of the example's crate are."""
    manifest = place / "Cargo.toml"
    manifest.write_text(re.sub(r"\.\./\.\./rust", f"{ROOT}/rust", manifest.read_text()))
    shop = Shop(compiler)
    target = shop.folder / "example"
    built = shop.try_run([CARGO, "build", "--release"], place, target)
    if not built.passed:
        shop.run([CARGO, "--offline", "build", "--release"], place, target)
    return target / "release"


NEEDS_RUST = pytest.mark.skipif(bool(crate.missing()), reason=crate.missing() or "-")
RUST_NEEDS = ("-cclib", "-lpthread", "-cclib", "-ldl", "-cclib", "-lm")


@NEEDS_RUST
def test_rust(compiler: Compiler, place: Path) -> None:
    ocaml(compiler, place, "queue.ml", cargo(compiler, place) / "libqueue.a", *RUST_NEEDS, "-o", "queue")
    passes(place, "queue")

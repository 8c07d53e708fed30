# SPDX-License-Identifier: MIT
"""The safe layer: its tests with small minor heaps, under the debug runtime, and over the checked build."""

from __future__ import annotations

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import Shop
from testing.run import ROOT

RUST = ROOT / "rust"
SMALL = "s=4k"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    compilers = [(c, [pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()]
    metafunc.parametrize("compiler", [pytest.param(c, id=c.name, marks=marks) for c, marks in compilers])


@pytest.fixture
def shop(compiler: Compiler) -> Shop:
    return Shop(compiler)


def _test(shop: Shop, *words: str, **more: str) -> None:
    shop.cargo("test", "-p", "ocaml-boxroot", *words, cwd=RUST, more=more)


def test_safe_layer(shop: Shop) -> None:
    """Also what must not compile, and the examples of the documentation."""
    _test(shop, "-p", "ocaml-boxroot-derive")


@pytest.mark.slow
def test_safe_layer_with_a_small_minor_heap(shop: Shop) -> None:
    _test(shop, "--test", "all", OCAMLRUNPARAM=SMALL)


@pytest.mark.everything
def test_safe_layer_optimised(shop: Shop) -> None:
    _test(shop, "--release", "--test", "all", OCAMLRUNPARAM=SMALL)


@pytest.mark.everything
def test_safe_layer_under_the_debug_runtime_over_the_checked_build(shop: Shop) -> None:
    words = ["--features", "checked", "--test", "all"]
    _test(shop, *words, OCAMLRUNPARAM=f"{SMALL},V=1,v=0", OCAML_RUNTIME_VARIANT="d")


@pytest.mark.everything
def test_safe_layer_with_dynamic_thread_local_words(shop: Shop) -> None:
    target = shop.folder / "safe-dynamic"
    words = ["-p", "ocaml-boxroot", "--features", "dynamic-tls", "--test", "all", "--", "roots::", "runtime::"]
    shop.cargo("test", *words, cwd=RUST, target=target, more={"OCAMLRUNPARAM": SMALL})
    glue = sorted(target.glob("debug/build/ocaml-boxroot-*/out/*-all.o"))
    assert glue
    for file in glue:
        relocations = shop.run(["readelf", "-rW", str(file)], shop.folder)
        assert "GOTTPOFF" not in relocations, file


@pytest.mark.slow
def test_safe_layer_on_the_first_thread(shop: Shop) -> None:
    shop.cargo("test", "-p", "ocaml-boxroot-testing", cwd=RUST)


@pytest.mark.slow
def test_safe_layer_in_a_program_without_systhreads(shop: Shop) -> None:
    shop.cargo("test", "-p", "ocaml-boxroot-testing-alone", cwd=RUST)


def test_safe_layer_without_the_standard_library(shop: Shop) -> None:
    shop.cargo("check", "--no-default-features", cwd=RUST / "ocaml-boxroot")

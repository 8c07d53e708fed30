# SPDX-License-Identifier: MIT
"""The safe layer's tests with sanitizers in all C code: the C library, the glue, the tests' own.

The stable compiler cannot instrument Rust code. What it calls in libc is seen: each allocation, each copy by memcpy."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from testing import crate, flavours, matrix
from testing.compilers import Compiler, with_tsan
from testing.crate import Shop
from testing.run import ROOT

RUST = ROOT / "rust"
SUPPRESSIONS = Path(__file__).with_name("tsan.supp")
CC = shutil.which("gcc")
SKIPPED = ("memory_is_counted",)  # it measures what the process has
# ThreadSanitizer has room for a stack of so many frames, and for so many threads.
SKIPPED_BY_TSAN = (*SKIPPED, "deep_recursion", "more_domains_than_there_can_be")
# Not custom_ops: where the runtime raises out of an operation ThreadSanitizer loses its stack of calls, and crashes.
RACY = (
    *("roots", "runtime", "calls", "exceptions", "domains", "bigarrays", "scopes", "random", "finalisers"),
    *("boxed", "inline", "payload_races"),
)
ALIKE = ("ephemeral_random::", "wide_random::")  # names that end as one of them


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing() or ("" if CC else "no gcc")
    skip = [pytest.mark.skip(reason=why)] if why else []
    found = matrix.ends()
    if metafunc.function is test_thread_sanitizer:
        found = [c for c in found if c.major >= 5]
        if metafunc.config.getoption("everything"):  # else none is built
            found = [tsan for c in found if (tsan := with_tsan(c))]
    marks = [pytest.mark.everything, *skip]
    metafunc.parametrize(
        "compiler",
        [pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *marks]) for c in found],
    )


def run(compiler: Compiler, cflags: tuple[str, ...], libraries: tuple[str, ...], words: list[str], **more: str) -> str:
    """rustc links without the compiler's own libraries: the sanitizer's are named, and loaded first."""
    shop = Shop(compiler)
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    target = next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))
    name = target.replace("-", "_")
    paths = [
        subprocess.run([str(CC), f"-print-file-name=lib{library}.so"], capture_output=True, text=True).stdout.strip()
        for library in libraries
    ]
    linked = [*libraries, *(["unwind"] if compiler.is_tsan else [])]  # OCaml's runtime with ThreadSanitizer wants it
    settings = {
        f"CFLAGS_{name}": " ".join((*cflags, "-g")),
        f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": " ".join(f"-Clink-arg=-l{library}" for library in linked),
        f"CARGO_TARGET_{name.upper()}_RUNNER": " ".join(
            (*more.pop("runner", "").split(), f"env LD_PRELOAD={':'.join(paths)}")
        ),
        "CC": str(CC),
    }
    folder = shop.folder / f"sanitized-{libraries[0]}"
    start = ["test", "--target", target, "-p", "ocaml-boxroot", "--test", "all", "--"]
    text = shop.cargo(*start, *words, cwd=RUST, target=folder, more=settings | more)
    program = next(f for f in (folder / target / "debug/deps").glob("all-*") if not f.suffix)
    names = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True).stdout
    assert re.search(r"__(asan|tsan)_", names), "the glue is instrumented"
    return text


def test_address_sanitizer(compiler: Compiler) -> None:
    """OCaml leaves its heap behind, refuses sizes by itself, and has handlers for overflows of the stack."""
    options = "detect_leaks=0:allocator_may_return_null=1:verify_asan_link_order=0:handle_segv=0:use_sigaltstack=0"
    skip = [word for name in SKIPPED for word in ("--skip", name)]
    run(compiler, flavours.ASAN, ("asan", "ubsan"), skip, ASAN_OPTIONS=options)


def test_thread_sanitizer(compiler: Compiler) -> None:
    """Also OCaml's runtime and OCaml code are instrumented. The suppressions are explained in tsan.supp."""
    tests = [f"{name}::" for name in RACY]
    skip = [word for name in (*SKIPPED_BY_TSAN, *ALIKE) for word in ("--skip", name)]
    cflags = (*flavours.TSAN, "-Wno-tsan", "--param=tsan-distinguish-volatile=1")
    options = f"suppressions={SUPPRESSIONS}:allocator_may_return_null=1"
    runner = " ".join(flavours.fixed_addresses())
    run(compiler, cflags, ("tsan",), [*tests, *skip], TSAN_OPTIONS=options, runner=runner)

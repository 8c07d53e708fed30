# SPDX-License-Identifier: MIT
"""Outheap's runtime variant: its libraries, built for a compiler, and how programs are linked with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from testing import steps
from testing.compilers import Compiler
from testing.run import BUILD, ROOT

TOOL = ROOT / "outheap/tool/outheap-build"
ALL = ROOT / "bench/runner/suites/outheap/outheap-build"  # with the flavours that are for benchmarks
# What the runtime does in threads of its own, and compaction at the end of every cycle. (Programs do not see what the
# shell has in OUTHEAP.)
THREADS = "helper=on,memory=follow,memory.idle=20ms,debug.compact=1"
SUFFIX = {
    "release": "_outheap",
    "debug": "_outheapd",
    "bytecode": "_outheap",
    "bytecode-debug": "_outheapd",
    "sbrk": "_outheap_sbrk",  # release, over one area that grows at its end
    "check": "_outheap_check",
}


def folder_of(compiler: Compiler, flavour: str) -> Path:
    return BUILD / f"{compiler.name}+outheap" / f"library-{flavour}"


@cache
def library(compiler: Compiler, flavour: str) -> Path:
    """The folder of libasmrun_outheap.a, or of the like for another flavour."""
    folder = folder_of(compiler, flavour)
    files = [f for part in ("runtime", "include", "tool") for f in (ROOT / "outheap" / part).rglob("*") if f.is_file()]

    def build() -> None:
        words = [ALL if flavour == "order" else TOOL, "--ocaml", compiler.prefix, "--output", folder]
        words += ["--backend", "sbrk", "--flavours", "release"] if flavour == "sbrk" else ["--flavours", flavour]
        words += ["--self-test", "0"]
        steps.command(words, folder, compiler.settings)

    return steps.step(folder, files, [compiler.prefix], build)


def linked_with(compiler: Compiler, flavour: str = "release") -> Compiler:
    """The compiler that links programs with the variant."""
    return Compiler(compiler.prefix, str(folder_of(compiler, flavour)), flavour)

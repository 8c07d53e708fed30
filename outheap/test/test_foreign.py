# SPDX-License-Identifier: MIT
"""What operations make of pointers to C's memory: the table in docs/reference/foreign-pointers.md, a test for each
cell. The stock runtime says what is right for blocks that it allows."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, UNWANTED, Outcome, run

HOME = ROOT / "outheap"
SOURCES = HOME / "test/foreign"
LIMIT = 120
BLOCKS = ("data", "constants", "malloc", "mmap")  # with the header that Caml_out_of_heap_header makes
NAKED = ("unreadable", "white", "edge")
UNALIGNED = ("unaligned", "odd-bytes")
FAR = 0x10000  # an address where nothing is mapped
ABSTRACT = 251
FLAVOURS = ("release", "debug", "bytecode", "bytecode-debug")
STOCK_VARIANT = {"debug": ["-runtime-variant", "d"], "bytecode-debug": ["-runtime-variant", "d"]}

OPAQUE = {
    "= itself": "yes yes yes",
    "compare itself": "yes yes yes",
    "= its copy": "no no no",
    "compare its copy": "no no no",
    "within a block": "no no no",
    "less than an int": "no no no",
    "hash": "no no no",
    "Hashtbl": "no no no",
    "Marshal": "Invalid_argument",
    "Marshal, no sharing": "Invalid_argument",
    "Obj.tag": "1001 1001 1001",
    "Obj.reachable_words": "11",
    "Gc.finalise": "Invalid_argument",
    "Array.make": "yes yes no",
    "array literal": "yes yes no",
    "exception": "Foreign.Item(_)",
    "exception, library": "Foreign.Item(_)",
    "Weak": "yes",
    "Weak copies": "no",
    "Ephemeron": "alive",
    "lazy": "yes",
    "lazy = its copy": "no",
    "array": "yes",
    "parser": "yes",
    "tokens": "_ _ _",
}


@cache
def program(compiler: Compiler, flavour: str, variant: bool = True) -> Path:
    """The folder of the program, linked with the variant or with stock's runtime."""
    name = f"{compiler.name}+outheap" if variant else compiler.name
    folder = BUILD / name / f"foreign-{flavour}"
    library = variants.library(compiler, flavour) if variant else None
    files = [*SOURCES.iterdir(), HOME / "include/outheap.h"]

    def build() -> None:
        for file in SOURCES.iterdir():
            shutil.copy(file, folder)
        native = not flavour.startswith("bytecode")
        command = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        steps.command([compiler.prefix / "bin/ocamlyacc", "parser.mly"], folder)
        steps.command([compiler.ocamlc, "-c", "parser.mli"], folder)
        if library:
            linked = ["-I", library, "-runtime-variant", variants.SUFFIX[flavour]]
        else:
            linked = STOCK_VARIANT.get(flavour, [])
        include = ["-ccopt", f"-I {HOME}/include"]
        shutil.copy(SOURCES / f"results{5 if compiler.major >= 5 else 4}.ml", folder / "results_more.ml")
        sources = ["foreign_stubs.c", "parser.ml", "lazies.ml", "results_more.ml", "results.ml", "foreign.ml"]
        steps.command([*command, "-g", *linked, *include, *sources, "-o", "foreign"], folder)

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, files, words, build)


def outcome_of(folder: Path, kind: str, outheap: str = "", runparam: str = "v=0") -> Outcome:
    log = folder / f"logs/{kind}-{outheap}-{runparam}.log"
    settings = {"OUTHEAP": outheap, "OCAMLRUNPARAM": runparam}
    outcome = run(["./foreign", *kind.split()], folder, log, LIMIT, settings)
    assert outcome.passed, outcome.tail()
    return outcome


def answers(text: str) -> dict[str, str]:
    """The results by operation, and what the parser's trace says of its tokens."""
    lines = text.splitlines()
    found = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(("State", "[", "#")))
    tokens = [line.split("ITEM(", 1)[1].rstrip(")") for line in lines if line.startswith("State") and "ITEM(" in line]
    return found | {"tokens": " ".join(tokens)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    flavours = matrix.chosen_flavours(metafunc.config)
    everything = metafunc.config.getoption("everything")
    wanted = [f for f in FLAVOURS if f in flavours] if flavours else FLAVOURS if everything else ("release", "bytecode")
    compilers = matrix.known_to_outheap()
    if "flavour" in metafunc.fixturenames:
        is_slow = metafunc.function is test_blocks_of_c_are_blocks
        params = [
            pytest.param(c, f, id=f"{c.name}-{f}", marks=pytest.mark.slow if is_slow and f == "bytecode" else ())
            for c in compilers
            for f in wanted
        ]
        metafunc.parametrize(("compiler", "flavour"), params)
    elif "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", compilers, ids=lambda c: c.name)


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_of_c_are_blocks(compiler: Compiler, flavour: str, kind: str) -> None:
    """With OCaml 4.14 they are what stock makes of them too: opaque to most operations."""
    stock = outcome_of(program(compiler, flavour, variant=False), kind)
    ours = outcome_of(program(compiler, flavour), kind)
    assert answers(ours.text) == answers(stock.text)
    if compiler.major >= 5:
        assert answers(ours.text)["= its copy"] == "yes yes yes"


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_of_c_can_be_opaque(compiler: Compiler, flavour: str, kind: str) -> None:
    assert answers(outcome_of(program(compiler, flavour), kind, "opaque=1").text) == OPAQUE


@pytest.mark.parametrize("setting", ["", "opaque=1"])
@pytest.mark.parametrize("kind", NAKED)
def test_naked_pointers_are_opaque(compiler: Compiler, flavour: str, kind: str, setting: str) -> None:
    assert answers(outcome_of(program(compiler, flavour), kind, setting).text) == OPAQUE


@pytest.mark.parametrize("setting", ["", "opaque=1"])
@pytest.mark.parametrize("kind", [*BLOCKS, *NAKED, *UNALIGNED])
def test_a_lazy_value_that_is_the_pointer(compiler: Compiler, flavour: str, kind: str, setting: str) -> None:
    """Compiled code jumps by the tag that the runtime says; OCaml 4.14's reads it itself, which is stock's way."""
    native = not flavour.startswith("bytecode")
    if compiler.major < 5 and native and kind in (*NAKED, *UNALIGNED):
        pytest.skip("compiled code reads the word in front of the pointer")
    shown = "unaligned" if kind in UNALIGNED else "foreign"
    if kind in BLOCKS and not setting and compiler.major >= 5:
        shown = "0"
    text = outcome_of(program(compiler, flavour), f"lazies {kind}", setting).text
    assert text == f"tag: {shown}\nforced: yes\n"


@pytest.mark.parametrize("distance", [0, 4, 2, 6])
def test_results_of_callbacks(compiler: Compiler, flavour: str, distance: int) -> None:
    """A multiple of 4 may be anywhere. Any other foreign pointer is an exception as the result of a callback, with the
    variant as with the stock runtime: that is how the runtime marks one; since OCaml 5.3 a domain is a callback."""
    if distance % 4 != 0 and flavour.startswith("bytecode"):
        pytest.skip("the interpreter takes the arguments off its stack once more, as after an exception")
    text = outcome_of(program(compiler, flavour), f"results {distance}").text
    found = dict(line.split(": ") for line in text.splitlines())
    expected = dict.fromkeys(found, "the pointer")
    if distance % 4 != 0:
        expected |= {"caml_callback_exn": "taken for an exception", "caml_callback": "an exception"}
        if compiler.version >= "5.3":
            expected["a domain"] = "an exception"
    assert found == expected
    assert len(found) == (9 if compiler.major >= 5 else 6)


@pytest.mark.parametrize("setting", ["", "opaque=1"])
def test_memory_that_was_withdrawn_is_not_read(compiler: Compiler, flavour: str, setting: str) -> None:
    assert answers(outcome_of(program(compiler, flavour), "withdrawn", setting).text)["withdrawn"] == "yes"


@pytest.mark.parametrize("setting", ["", "opaque=1"])
def test_trace_of_bytecode(compiler: Compiler, setting: str) -> None:
    """The debug runtime prints accumulator and stack at each instruction."""
    text = outcome_of(program(compiler, "bytecode-debug"), "unreadable", setting, "t=2,v=0").text
    assert "array: yes" in text
    assert text.count("accu=") > 1000


def test_debugger_of_bytecode(compiler: Compiler) -> None:
    """A debugger asks for the header and a field of a foreign pointer."""
    folder = program(compiler, "bytecode")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        listener.settimeout(LIMIT)
        settings = {k: v for k, v in os.environ.items() if k not in UNWANTED}
        settings |= {"CAML_DEBUG_SOCKET": f"127.0.0.1:{listener.getsockname()[1]}", "OUTHEAP": "opaque=1"}
        with subprocess.Popen(["./foreign", "data"], cwd=folder, env=settings, stdout=subprocess.DEVNULL) as process:
            try:
                connection, _ = listener.accept()
                with connection, connection.makefile("rwb") as stream:
                    assert stream.read(8)[:4] == b"\xff" * 4  # the first connection; the number of the process
                    stream.write(struct.pack("=cQ", b"H", FAR) + struct.pack("=cQ", b"F", FAR) + bytes(4))
                    stream.flush()
                    (header,) = struct.unpack(">I", stream.read(4))
                    assert (header >> 10, header & 255) == (1, ABSTRACT)
                    assert struct.unpack("=bQ", stream.read(9)) == (0, 1)  # a field that is ()
                    stream.write(b"s")
                    stream.flush()
                    assert process.wait(LIMIT) == 0
            finally:
                process.kill()

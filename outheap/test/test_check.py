# SPDX-License-Identifier: MIT
"""The flavour that traps stale values, and the command outheap-check: each kind of fault is found, by its line; correct
code is not."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

TOOL = ROOT / "outheap/tool/outheap-check"
SOURCES = ROOT / "outheap/test/check"
sys.path.insert(0, str(TOOL.parent))

from checker import merge, parse  # noqa: E402

# Each fault of binding_stubs.c: the function that is at fault, what the report must say of it.
STALE, UNFILLED = "a stale value was read", "a field was followed that is not initialised"
FAULTS = {
    "argument": ("b_argument", STALE, "CAMLparam"),
    "listener": ("b_notify", STALE, "the variable listener"),
    "inside": ("b_inside", STALE, "String_val"),
    "unlocked": ("b_unlocked", STALE, "the release of the domain lock"),
    "refused": ("b_refused", "was refused an address (EFAULT)", "copy what the system call needs"),
    "store": ("call", STALE, "of the major heap"),
    "fresh": ("b_fresh", STALE, "CAMLlocal"),
    "return": ("", "without giving up its local roots", "CAMLreturn"),
    "results": ("b_results", STALE, "CAMLlocal"),
    "buffer": ("b_buffer", STALE, "memory of malloc"),
    "thread": ("call_handed", STALE, "the variable handed"),
    "custom": ("finalise_kept", STALE, "custom block needs a root"),
    "unfilled": ("b_unfilled", UNFILLED, "caml_initialize"),
    "old-function": ("b_call_old", STALE, "by compaction"),
    "old-text": ("b_read_old", STALE, "the variable old_text"),
    "domains": ("b_inside", STALE, "String_val"),
    "large-dead": ("b_read_large", STALE, "the variable large"),
    "large-alive": ("b_read_large", STALE, "moved to"),
    "large-new": ("b_fill_large", "a stale value was", "by compaction"),
    "twice": ("b_twice", "registered twice", "remove it"),
    "unknown": ("b_unknown", "that is not registered", "remove each root once"),
    "assigned": ("b_assigned", "that is not registered", "caml_modify_generational_global_root"),
}
NATIVE, BYTECODE = "check", "bytecode-check"


def supported() -> list[Compiler]:
    return [c for c in matrix.known_to_outheap(brief=True) if c.release >= (5, 4)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", supported(), ids=lambda c: c.name)


def programs(compiler: Compiler, flavour: str) -> Path:
    """The folder of both programs."""
    folder = BUILD / f"{compiler.name}+outheap" / f"{flavour}-programs"
    library = variants.library(compiler, flavour)

    def build() -> None:
        for file in SOURCES.iterdir():
            shutil.copy(file, folder)
        steps.command(["cc", "-g", "-O1", "-c", f"-I{compiler.where}", "binding_stubs.c"], folder, compiler.settings)
        words = [compiler.ocamlopt] if flavour == NATIVE else [compiler.ocamlc, "-custom"]
        kind = "cmxa" if flavour == NATIVE else "cma"
        for name in ("binding", "correct"):
            link = ["-I", library, "-runtime-variant", "_outheap_check", "-I", "+unix", "-I", "+threads"]
            files = [f"unix.{kind}", f"threads.{kind}", f"{name}.ml", "binding_stubs.o", "-o", name]
            steps.command([*words, "-g", *link, *files], folder, compiler.settings)

    return steps.step(folder, [*SOURCES.iterdir()], [(library / "built").read_text()], build)


def outheap_check(folder: Path, *words: object, **settings: str) -> Outcome:
    log = folder / f"logs/{'-'.join(str(w).strip('-/.').replace('/', '_') for w in words)[:120]}.log"
    return run([TOOL, *map(str, words)], folder, log, 300, settings)


@pytest.mark.parametrize("flavour", [NATIVE, BYTECODE])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(compiler: Compiler, flavour: str, fault: str, tmp_path: Path) -> None:
    """With the default settings, and any of three seeds."""
    function, what, words = FAULTS[fault]
    folder = programs(compiler, flavour)
    for seed in (1, 2, 3):
        report = tmp_path / f"report{seed}"
        settings = f"check.seed={seed},check.report={report}"
        run(["./binding", fault], folder, tmp_path / "log", 60, {"OUTHEAP": settings})
        assert report.exists(), f"seed {seed}: no report"
        faults, _ = parse(report.read_text())
        assert faults and what in faults[0].what, report.read_text()
        assert words in faults[0].text, report.read_text()
        if flavour == NATIVE and function:
            assert faults[0].line and function in faults[0].line.function, report.read_text()
            assert faults[0].line.place.startswith("binding"), report.read_text()


@pytest.mark.parametrize("fault", ["old-text", "twice", "refused"])
def test_no_fault_with_the_check_off(compiler: Compiler, fault: str, tmp_path: Path) -> None:
    folder = programs(compiler, NATIVE)
    settings = f"check=off,check.report={tmp_path / 'report'}"
    run(["./binding", fault], folder, tmp_path / "log", 60, {"OUTHEAP": settings})
    assert "outheap-check: a" not in (tmp_path / "log").read_text()
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("flavour", [NATIVE, BYTECODE])
def test_correct_code(compiler: Compiler, flavour: str) -> None:
    folder = programs(compiler, flavour)
    for words in (["./binding", "right"], ["./correct"]):
        outcome = outheap_check(folder, "--seeds", 2, *words)
        assert outcome.passed and "no stale value seen" in outcome.text, outcome.tail()


def test_small_ring(compiler: Compiler) -> None:
    """Minor heaps that begin again at the top, many times."""
    folder = programs(compiler, NATIVE)
    outcome = outheap_check(folder, "--settings", "check.ring=4M", "--every", 1, "./correct", "sizes")
    assert outcome.passed, outcome.tail()


def test_noalloc(compiler: Compiler) -> None:
    """A stub that allocates although it is declared [@@noalloc]: OCaml's code, or the stub's next call, is at fault."""
    outcome = outheap_check(programs(compiler, NATIVE), "./binding", "noalloc")
    assert not outcome.passed and "b_noalloc" in outcome.text, outcome.tail()


def test_json_and_exit_codes(compiler: Compiler, tmp_path: Path) -> None:
    folder = programs(compiler, NATIVE)
    outcome = outheap_check(folder, "--json", tmp_path / "found", "./binding", "buffer")
    assert outcome.code == 1, outcome.tail()
    found = json.loads((tmp_path / "found").read_text())
    assert found["seeds"] == 3 and len(found["faults"]) == 1, found
    fault = found["faults"][0]
    assert fault["what"] == STALE and fault["seeds"] == [1, 2, 3] and fault["line"]["function"] == "b_buffer"
    assert any("malloc" in holder for holder in fault["holders"]) and "boxroot_create" in fault["advice"]
    assert outheap_check(folder, "./binding", "no-such-fault").code == 3
    assert outheap_check(folder, "./no-such-program").code == 2
    assert outheap_check(folder, "/bin/true").code == 2
    assert outheap_check(folder).code == 2
    assert outheap_check(folder, "--timeout", 1, "--seeds", 1, "./binding", "right", 1000000).code == 3


def test_going_on(compiler: Compiler, tmp_path: Path) -> None:
    """With check.go=1 a program goes on after a fault, and comes to others."""
    folder = programs(compiler, NATIVE)
    outcome = outheap_check(folder, "--settings", "check.go=1", "--seeds", 1, "./binding", "twice", 5)
    assert outcome.code == 1 and "nothing noticed" in outcome.text, outcome.tail()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("check=move:0", "check is move"),
        ("check=move:18446744073709551615", "check is move"),
        ("check.ring=1T", "check.ring is"),
        ("check.ring=1", ""),
        ("check.report=/dev/full", ""),
        ("check.report=/no/such/folder", ""),
    ],
)
def test_settings_at_their_ends(compiler: Compiler, setting: str, said: str, tmp_path: Path) -> None:
    """Impossible values are refused with a message; no report is lost."""
    run(["./binding", "argument"], programs(compiler, NATIVE), tmp_path / "log", 60, {"OUTHEAP": setting})
    text = (tmp_path / "log").read_text()
    assert said in text and "outheap-check: a stale value" in text, text


def test_build(compiler: Compiler, tmp_path: Path) -> None:
    """A program that is built for it, and another variant, which says that it does not check."""
    for name in ("binding.ml", "binding_stubs.c"):
        shutil.copy(SOURCES / name, tmp_path)
    ocamlopt = f"{compiler.ocamlopt} -g -I +unix -I +threads unix.cmxa threads.cmxa"
    build = f"{ocamlopt} binding.ml binding_stubs.c -o binding"
    library = variants.library(compiler, NATIVE)
    words = ["--build", build, "--library", library, "./binding", "argument"]
    outcome = outheap_check(tmp_path, *words, **compiler.settings)
    assert outcome.code == 1 and "b_argument at binding_stubs.c" in outcome.text, outcome.tail()
    other = f"{ocamlopt} -I {variants.library(compiler, 'release')} -runtime-variant _outheap"
    words = [*other.split(), "binding.ml", "binding_stubs.c", "-o", "plain"]
    steps.command(words, tmp_path, compiler.settings)
    outcome = run(["./plain", "right", "1"], tmp_path, tmp_path / "log", 60, {"OUTHEAP": "check=move"})
    assert outcome.passed and "has to be linked with -runtime-variant _outheap_check" in outcome.text, outcome.tail()


REPORT = """outheap-check: a stale value was read: 0x21
    Hd_val at mlvalues.h:190  [p]
    f at stubs.c:18  [p]
    Main at main.ml:3  [OCaml]
  it was: string, tag 252, 1 words "a", dead: no root led to it; used at byte -8
  left at collection 15 (0 since), domain 0, by a minor collection: an allocation
      caml_alloc at alloc.c:44  [p]
  held by register rdi
  advice: keep it

outheap-check: the end, after 12 collections that were asked for, of 20
"""


def test_reports_are_read_and_merged() -> None:
    faults, collections = parse(REPORT + REPORT.replace("0x21", "0x55"))
    assert collections == 24 and len(faults) == 2
    assert faults[0].line and faults[0].line.function == "f" and faults[0].line.place == "stubs.c:18"
    assert [f.function for f in faults[0].forced] == ["caml_alloc"]
    assert faults[0].holders == ["register rdi"] and faults[0].advice == "keep it"
    known: dict = {}
    merge(known, faults, 1)
    merge(known, parse(REPORT)[0], 2)
    assert [fault.seeds for fault in known.values()] == [[1, 2]]
    assert parse("")[1] == -1

# SPDX-License-Identifier: MIT
"""Memory that follows the data (setting memory=follow): what is resident after a table was dropped, in programs that go
on and in idle ones; forks and unloading; programs that know their data, whose heap is compacted at the end of every
cycle, with and without the helper. The soft limit (setting limit), and the floor (memory.floor)."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import test_helper
import test_helper_basic
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.programs import words_of
from testing.run import BUILD, ROOT, run

CLOCK = [ROOT / "outheap/test/memory" / name for name in ("clock.ml", "clock_stubs.c")]
SOURCES = [ROOT / "outheap/test/memory" / name for name in ("follow.ml", "follow_stubs.c", "collapse.h", "limited.ml")]
ORDINARY = [ROOT / "outheap/test/memory" / name for name in ("ordinary.ml", "ordinary_stubs.c")]
LIBRARY = [ROOT / "outheap/lib/outheap" / name for name in ("outheap_stubs.c", "outheap.mli", "outheap.ml")]
# The programs drive the time. Pauses are as long as a busy machine makes them: here they do not decide.
STEP = "debug.clock=step"
FOLLOW = f"{STEP},memory=follow,memory.idle=500ms:10s,memory.pause=10s"
ALWAYS = "memory=follow,memory.idle=20ms,debug.compact=1"
BOTH = f"{ALWAYS},helper=on"
KINDS = ("work", "idle", "sparse", "running", "finalised", "threads", "forked", "domains", "later", "lent", "split")
KINDS += ("orphan", "ticking", "starved", "silences")
SLOW = ("work", "running", "later", "lent", "starved", "silences")
# Megabytes that a program may use, or how many it needs at least without a limit (-).
LIMITED = {
    "churn": (100, -105),
    "sizes": (100, -150),
    "blocks": (100, 0),
    "strings": (80, -95),
    "arrays": (80, -95),
    "arrays-of-c": (80, -200),
    "read": (80, -150),
    "grow": (100, 0),
    "phases": (80, 0),
    "bigarrays": (60, 0),
    "domains": (100, -105),
    "threads": (100, -105),
    "forks": (65, 0),
    "rootless": (100, -105),
    "full": (100, -105),
    "closed": (100, -105),
    "pressure": (100, 0),
}
# Programs without any setting, with the first version that they are for.
PROGRAMS = {
    "forked": "5.1",
    "parent": "5.1",
    "falls": "5.3",
    "cloned": "5.1",
    "cloned-in-peace": "5.1",
    "left": "5.4",
    "signals": "5.1",
    "roots": "5.1",
    "exits": "5.1",
    "domains": "5.1",
    "weak": "5.1",
    "exceptions": "5.1",
    "fibers": "5.1",
    "visits": "5.1",
    "questions": "5.3",
    "forks": "5.1",
    "wrapped": "5.3",
    "privileges": "5.1",
}
NO_COMPACTION = "5.2"  # versions before this one have none
NO_IDLE = "5.3"  # versions before this one do not collect idle programs
NO_HELPER = "5.4"


def program(compiler: Compiler, flavour: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap" / f"memory-{flavour}"
    library = variants.library(compiler, flavour)

    def build() -> None:
        for file in (*CLOCK, *SOURCES, *ORDINARY, *LIBRARY):
            shutil.copy(file, folder)
        linked = ["-I", library, "-runtime-variant", variants.SUFFIX[flavour], *compiler.libraries]
        parts = ["unix.cmxa", "threads.cmxa", *(file.name for file in CLOCK)]
        steps.command([compiler.ocamlopt, "-g", *linked, *parts, "follow.ml", "follow_stubs.c", "-o", "follow"], folder)
        names = [file.name for file in ORDINARY]
        steps.command([compiler.ocamlopt, "-g", *linked, *parts, *names, "-o", "ordinary"], folder)
        parts = ["unix.cmxa", "threads.cmxa", *(file.name for file in LIBRARY), "limited.ml"]
        include = ["-ccopt", f"-I{ROOT}/outheap/include"]
        steps.command([compiler.ocamlopt, "-g", *linked, *include, *parts, "-o", "limited"], folder)

    sources = [*CLOCK, *SOURCES, *ORDINARY, *LIBRARY, ROOT / "outheap/include/outheap.h"]
    return steps.step(folder, sources, [compiler.prefix, flavour, (library / "built").read_text()], build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if c.major >= 5 and f in ("release", "debug")]
    if "part" in metafunc.fixturenames:
        found = [
            (c, f, p)
            for c, f in pairs
            for p, words in words_of(test_helper.program(c, f) / "soak").items()
            if "limited" not in words and ("slow" not in words or metafunc.config.getoption("everything"))
        ]
        ids = [f"{c.name}-{f}-{p}" for c, f, p in found]
        metafunc.parametrize(("compiler", "flavour", "part"), found, ids=ids)
        return
    metafunc.parametrize(("compiler", "flavour"), pairs, ids=[f"{c.name}-{f}" for c, f in pairs])


@pytest.mark.parametrize("kind", KINDS)
def test_memory_follows(compiler: Compiler, flavour: str, kind: str) -> None:
    if compiler.version < NO_IDLE and kind != "work":
        pytest.skip("this version does not collect idle programs, or has no compaction")
    if flavour == "debug" and kind in SLOW:
        pytest.skip("the debug runtime is too slow for cycles by time")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": FOLLOW, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", kind, "45"], folder, folder / f"logs/{kind}.log", 120, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("ordinary", PROGRAMS)
def test_programs_that_know_nothing_of_it(compiler: Compiler, flavour: str, ordinary: str) -> None:
    """They behave as with the stock runtime."""
    if compiler.version < PROGRAMS[ordinary]:
        pytest.skip("the stock runtime of this version cannot do it")
    folder = program(compiler, flavour)
    log = folder / f"logs/ordinary-{ordinary}.log"
    outcome = run(["./ordinary", ordinary], folder, log, 240, {"OUTHEAP": STEP, "OCAMLRUNPARAM": "v=0,b"})
    assert outcome.passed, outcome.tail()


def test_mark_stack_follows(compiler: Compiler, flavour: str) -> None:
    """What a large heap's mark stack took does not stay when the heap has become small."""
    if compiler.version < NO_IDLE or flavour == "debug":
        pytest.skip("this version does not collect idle programs, or the debug runtime is too slow")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": FOLLOW, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", "graph", "15"], folder, folder / "logs/graph.log", 120, settings)
    assert outcome.passed, outcome.tail()


def test_reclaim_thread_ends_while_it_requests(compiler: Compiler, flavour: str) -> None:
    if compiler.version < NO_IDLE:
        pytest.skip("this version does not collect idle programs")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": FOLLOW, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", "stopped", "0"], folder, folder / "logs/stopped.log", 120, settings)
    assert outcome.passed, outcome.tail()


def test_child_of_clone_beside_the_helper(compiler: Compiler, flavour: str) -> None:
    """It has no helper to wait for when it ends."""
    if compiler.version < NO_HELPER:
        pytest.skip("no helper with this version")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"{STEP},helper=on,memory=stock", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./ordinary", "cloned-in-peace"], folder, folder / "logs/cloned-helper.log", 60, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize(
    ("variables", "percent"),
    [
        ({"OCAMLRUNPARAM": "v=0,b,O=1M"}, 1 << 20),
        ({"OCAMLRUNPARAM": "v=0,O=0x100,b"}, 256),
        ({"CAMLRUNPARAM": "v=0,b,O=1000000"}, 1000000),
        ({"OCAMLRUNPARAM": "v=0,b", "CAMLRUNPARAM": "O=7"}, 500),
    ],
    ids=["unit", "hexadecimal", "older-name", "one-of-two"],
)
def test_max_overhead_is_read(compiler: Compiler, flavour: str, variables: dict[str, str], percent: int) -> None:
    """As the runtime reads its parameters."""
    folder = program(compiler, flavour)
    outcome = run(["./follow", "overhead", str(percent)], folder, folder / "logs/overhead.log", 60, variables)
    assert outcome.passed, outcome.tail()


def test_memory_stays_without_it(compiler: Compiler, flavour: str) -> None:
    """The control."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"{STEP},memory=stock", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", "idle", "-70"], folder, folder / "logs/stock.log", 120, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("limited", LIMITED)
def test_limit_holds(compiler: Compiler, flavour: str, limited: str) -> None:
    """With 15 % above it (30 where there is no compaction), and the data are whole. The control: the same program needs
    more without a limit."""
    if compiler.version < NO_COMPACTION and limited == "sizes":
        pytest.skip("this version has no compaction")
    folder = program(compiler, flavour)
    limit, without = LIMITED[limited]
    settings = {"OUTHEAP": f"limit={limit}M,memory=stock", "OCAMLRUNPARAM": "v=0,b"}
    held = limit if compiler.version >= NO_COMPACTION else limit * 9 // 8
    outcome = run(["./limited", limited, str(held)], folder, folder / f"logs/limited-{limited}.log", 240, settings)
    assert outcome.passed, outcome.tail()
    paced = limited == "arrays-of-c" and compiler.release < (5, 5)  # which collect early for bigarrays
    if without != 0 and not paced:
        log = folder / f"logs/unlimited-{limited}.log"
        outcome = run(["./limited", limited, str(without)], folder, log, 240, settings | {"OUTHEAP": "memory=stock"})
        assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("setting", ["limit=100M", "limit=100M,memory=stock", "limit=100M,debug.compact=1", "warn=0"])
def test_free_memory_is_counted_once(compiler: Compiler, flavour: str, setting: str) -> None:
    """Also after a compaction, which gives it back; and so each cycle tells of pressure."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": setting, "OCAMLRUNPARAM": "v=0,b"}
    log = folder / f"logs/compacted-{setting[-9:]}.log"
    outcome = run(["./limited", "compacted", "0"], folder, log, 240, settings)
    assert outcome.passed, outcome.tail()


def test_limit_heeds_max_overhead(compiler: Compiler, flavour: str) -> None:
    """A program whose blocks must not move says O=1000000; then what has other sizes stays, above the limit."""
    if compiler.version < NO_COMPACTION:
        pytest.skip("this version has no compaction")
    folder = program(compiler, flavour)

    def compacts(name: str, parameters: str) -> bool:
        settings = {"OUTHEAP": "limit=100M,stats=exit", "OCAMLRUNPARAM": parameters}
        outcome = run(["./limited", "sizes", "0"], folder, folder / f"logs/{name}.log", 240, settings)
        assert outcome.passed, outcome.tail()
        return "limit.compacted 0\n" not in (folder / f"logs/{name}.log").read_text()

    assert not compacts("unmoved", "v=0,b,O=1000000")
    # The control. With the debug runtime of 5.3 no cycle may end in time for it, once in a while.
    assert any(compacts("moved", "v=0,b") for _ in range(4))


@pytest.mark.parametrize("limited", ["churn", "sizes", "domains", "forks"])
def test_limit_beside_helper_and_reclaim(compiler: Compiler, flavour: str, limited: str) -> None:
    if compiler.version < NO_HELPER:
        pytest.skip("no helper with this version")
    folder = program(compiler, flavour)
    limit = LIMITED[limited][0]
    settings = {"OUTHEAP": f"limit={limit}M,helper=on,memory=follow,memory.idle=20ms", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./limited", limited, "0"], folder, folder / f"logs/beside-{limited}.log", 240, settings)
    assert outcome.passed, outcome.tail()


def _memory_group() -> Path | None:
    """The folder of the control group that has the memory of this process, version 1 or 2."""
    top = Path("/sys/fs/cgroup")
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    memory = [name for name in groups if "memory" in name.split(",")]
    found = top / "memory" / groups[memory[0]][1:] if memory else top / groups.get("", "/")[1:]
    return found if found.is_dir() else None


def _remove(group: Path) -> None:
    """A process that has ended may be in its group for a moment more."""
    until = time.monotonic() + 10
    while True:
        try:
            return group.rmdir()
        except OSError as e:
            if e.errno != errno.EBUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


@contextmanager
def _group_with_limit(megabytes: int) -> Iterator[Path]:
    """A control group with a hard limit. Skips the test where there can be none."""
    parent = _memory_group()
    if parent is None:
        pytest.skip("no control groups")
    group = parent / f"outheap-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as e:
        pytest.skip(f"no control group can be made: {e.strerror}")
    try:
        limits = [f for name in ("memory.max", "memory.limit_in_bytes") if (f := group / name).exists()]
        if not limits:
            pytest.skip("memory is not limited in such groups")
        limits[0].write_text(str(megabytes << 20))
        yield group
    finally:
        _remove(group)


@pytest.mark.parametrize(("limited", "megabytes"), [("churn", 100), ("blocks", 60), ("arrays-of-c", 100)])
def test_limit_of_a_control_group(compiler: Compiler, flavour: str, limited: str, megabytes: int) -> None:
    """The kernel kills the program that needs more, and with `limit=cgroup` it does with less."""
    folder = program(compiler, flavour)

    def ends(setting: str) -> int:
        start = f"echo $$ > {group}/cgroup.procs && exec ./limited {limited} 0"
        settings = {"OUTHEAP": setting, "OCAMLRUNPARAM": "v=0,b"}
        log = folder / f"logs/group-{limited}-{setting.partition('=')[0]}.log"
        return run(["sh", "-c", start], folder, log, 240, settings).code

    with _group_with_limit(megabytes) as group:
        assert ends("limit=cgroup") == 0
        if "SwapTotal:              0 kB" in Path("/proc/meminfo").read_text():  # the control
            assert ends("memory=stock") == -signal.SIGKILL


def test_program_goes_on_beyond_its_limit(compiler: Compiler, flavour: str) -> None:
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": "limit=50M", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./limited", "beyond", "0"], folder, folder / "logs/beyond.log", 240, settings)
    assert outcome.passed, outcome.tail()
    assert (folder / "logs/beyond.log").read_text().count("more than limit=50M; the program goes on") == 1


@pytest.mark.slow
def test_limit_with_many_domains(compiler: Compiler, flavour: str) -> None:
    """27 of them, of which live data and minor heaps take two thirds of it: it holds, or a line says that it does
    not."""
    if flavour == "debug":
        pytest.skip("too slow")
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": "limit=230M,memory=stock", "OCAMLRUNPARAM": "v=0,b,s=64k"}
    outcome = run(["./limited", "crowd", "0"], folder, folder / "logs/crowd.log", 400, settings)
    assert outcome.passed, outcome.tail()
    text = (folder / "logs/crowd.log").read_text()
    most = int(text.partition("at most ")[2].split()[0])
    assert most <= 230 * 1.15 or text.count("more than limit=230M; the program goes on") == 1, text


def test_questions_about_memory(compiler: Compiler, flavour: str) -> None:
    folder = program(compiler, flavour)
    outcome = run(["./limited", "none", "0"], folder, folder / "logs/none.log", 60, {"OCAMLRUNPARAM": "v=0,b"})
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("floor", ["64M", "auto", "7%", "0"])
def test_floor(compiler: Compiler, flavour: str, floor: str) -> None:
    """Nothing is collected below it; without one, it is. A share is one of the limit here."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"limit=900M,memory.floor={floor}", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./limited", "floor", "0"], folder, folder / f"logs/floor-{floor}.log", 120, settings)
    assert outcome.passed == (floor != "0"), outcome.tail()


def test_forks_beside_the_reclaim_thread(compiler: Compiler, flavour: str) -> None:
    """Locks are taken in one order by a fork, and by the reclaim thread, which has the domain's."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"{STEP},{BOTH.replace('20ms', '5ms')}", "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./follow", "forking", "0"], folder, folder / "logs/forking.log", 120, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("setting", [ALWAYS, BOTH], ids=["alone", "with-helper"])
def test_domains_that_are_idle_in_turn(compiler: Compiler, flavour: str, setting: str) -> None:
    """The reclaim thread asks their backup threads for slices, and they come back at any moment."""
    folder = program(compiler, flavour)
    settings = {"OUTHEAP": f"{STEP},{setting},stats=exit", "OCAMLRUNPARAM": "v=0,b,s=32k"}
    log = folder / f"logs/blinking-{setting[-2:]}.log"
    outcome = run(["./follow", "blinking", "0"], folder, log, 240, settings)
    assert outcome.passed, outcome.tail()
    if compiler.version >= NO_IDLE:
        assert "memory.asked " in log.read_text() and "memory.asked 0\n" not in log.read_text()


def test_plugin_is_unloaded(compiler: Compiler, flavour: str) -> None:
    if flavour != "release" or compiler.version < "5.4":
        pytest.skip("the program is built in another flavour, or the runtime leaves threads")
    folder = test_helper.program(compiler, flavour)
    settings = {"OUTHEAP": BOTH, "OCAMLRUNPARAM": "b", "SOAK_CELLS": "400000"}
    outcome = run(["./soak_host", "./soak_plugin.so"], folder, folder / "logs/reclaim-plugin.log", 120, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("setting", [ALWAYS, BOTH], ids=["alone", "with-helper"])
def test_compaction_in_every_cycle(compiler: Compiler, flavour: str, part: str, setting: str) -> None:
    folder = test_helper.program(compiler, flavour)
    settings = {"OUTHEAP": setting, "OCAMLRUNPARAM": "v=0,b,s=32k"}
    command = ["./soak", part, "--seed", str(matrix.seed()), "--seconds", "0.6", "--no-weak"]
    outcome = run(command, folder, folder / f"logs/compact-{part}-{setting[-2:]}.log", 240, settings)
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("basic", test_helper_basic.PARTS)
def test_compaction_with_all_kinds_of_blocks(compiler: Compiler, flavour: str, basic: str) -> None:
    folder = test_helper_basic.program(compiler, flavour)
    settings = {"OUTHEAP": ALWAYS, "OCAMLRUNPARAM": "v=0,b"}
    outcome = run(["./program", basic], folder, folder / f"logs/compact-{basic}.log", 300, settings)
    assert outcome.passed, outcome.tail()

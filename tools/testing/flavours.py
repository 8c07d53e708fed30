# SPDX-License-Identifier: MIT
"""The flavours: how the libraries are compiled, and under which settings their tests run. The words mean the same for
both products."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OPTIMISED = ("-O2", "-g")
UNOPTIMISED = ("-O1", "-g")
ASAN = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
TSAN = ("-fsanitize=thread",)
COVERAGE = ("-O0", "-g", "--coverage", "-fprofile-update=atomic")


@dataclass(frozen=True)
class Flavour:
    name: str
    cflags: tuple[str, ...] = OPTIMISED  # of the library and the tests' C
    runparam: str = ""  # added to OCAMLRUNPARAM
    runtime: str = ""  # the variant of OCaml's runtime: d for debug
    library: str = "ours"  # rival: version 0.4.0; reference: OCaml's own roots
    scale: int = 30  # BOXROOT_TEST_SCALE: rounds in percent
    steps: int = 3000  # of the random tester, per domain
    model_only: bool = False
    ocaml5: bool = False  # the switch has no effect on OCaml 4
    compiler: str = ""  # clang, or one for another system or processor
    emulator: str = ""
    needs: tuple[str, ...] = ()  # further words for tools/need, beside compiler and emulator
    include: tuple[str, ...] = ()  # folders of headers, from the top of the repository, before the system's
    libraries: tuple[str, ...] = ("-lpthread",)
    programs: tuple[str, ...] = ()  # those that can be built; none: all
    without: tuple[str, ...] = ()  # tests of what the emulator, or the system, does not do: PROGRAM/TEST, or PROGRAM

    @property
    def lflags(self) -> tuple[str, ...]:
        wrap = ("-Wl,--wrap=_exit",) if self.measures_coverage else ()
        kept = (f for f in self.cflags if f.startswith(("-fsanitize=", "--target=")) or f in ("--coverage", "-static"))
        return (*kept, *wrap)

    @property
    def measures_coverage(self) -> bool:
        """Programs are linked with coverage.o (coverage.c)."""
        return "--coverage" in self.cflags

    @property
    def sanitizer(self) -> str:
        found = [f.removeprefix("-fsanitize=").split(",")[0] for f in self.cflags if f.startswith("-fsanitize=")]
        return found[0] if found else ""

    @property
    def runner(self) -> tuple[str, ...]:
        """ThreadSanitizer does not start where addresses are placed at random with much entropy."""
        if self.emulator:
            return (self.emulator,)
        return fixed_addresses() if self.sanitizer == "thread" else ()


@cache
def fixed_addresses() -> tuple[str, ...]:
    command = ("setarch", platform.machine(), "-R")
    works = shutil.which("setarch") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if works else ()


def _table(*flavours: Flavour) -> dict[str, Flavour]:
    return {f.name: f for f in flavours}


def _defines(prefix: str, *switches: str) -> tuple[str, ...]:
    return tuple(f"-D{prefix}_{s}" for s in switches)


def _boxroot(name: str, *switches: str, base: tuple[str, ...] = OPTIMISED, **rest: object) -> Flavour:
    return Flavour(name, base + _defines("BOXROOT", *switches), **rest)  # type: ignore[arg-type]


SLOW = {"scale": 20, "steps": 1000}
QUICK_NAMES = ("-DBXR_NAMES_STEP=0x10000000",)  # names of storages pass 2^32 soon
DEBUG_HEAP = {"runtime": "d", "runparam": "s=4k,V=1,v=0"}  # the heap is verified in each cycle

BOXROOT = _table(
    Flavour("release", scale=100, steps=6000),
    _boxroot("tiny", "POOL_CAPACITY=4", base=(*OPTIMISED, *QUICK_NAMES), runparam="s=4k"),
    _boxroot("checked", "DEBUG=1", scale=20),
    _boxroot(
        "checked-tiny",
        *("DEBUG=1", "QUARANTINE=8", "POOL_CAPACITY=4"),
        base=(*OPTIMISED, *QUICK_NAMES),
        **DEBUG_HEAP,
        **SLOW,
    ),
    Flavour("asan", UNOPTIMISED + ASAN, runparam="s=16k", **SLOW),
    Flavour("tsan", UNOPTIMISED + TSAN, runparam="s=32k", ocaml5=True, **SLOW),
    _boxroot("force-remote", "FORCE_REMOTE=1", runparam="s=32k"),
    _boxroot("stw", "STW_SCAN=1", runparam="s=32k", ocaml5=True),
    _boxroot("conservative", "CONSERVATIVE=1", runparam="s=16k", ocaml5=True),
    _boxroot(
        "conservative-checked",
        "CONSERVATIVE=1",
        "DEBUG=1",
        "QUARANTINE=8",
        "POOL_CAPACITY=4",
        **DEBUG_HEAP,
        scale=20,
        ocaml5=True,
    ),
    _boxroot("small-pools", "POOL_LOG_SIZE=12", "POOL_CAPACITY=64", runparam="s=8k"),
    _boxroot("no-pacing", "PACING=0", runparam="s=8k", ocaml5=True),
    _boxroot("thread-unsafe", "THREAD_UNSAFE=1", runparam="s=8k", model_only=True),
    Flavour("coverage", COVERAGE, **SLOW),
    _boxroot("coverage-tiny", "DEBUG=1", "QUARANTINE=8", "POOL_CAPACITY=4", base=COVERAGE, runparam="s=4k", **SLOW),
    _boxroot("coverage-conservative", "CONSERVATIVE=1", base=COVERAGE, runparam="s=4k", ocaml5=True, **SLOW),
    Flavour("rival", library="rival", scale=100),
    _boxroot("rival-debug", "DEBUG=1", library="rival"),
    Flavour("rival-asan", UNOPTIMISED + ("-fsanitize=address",), library="rival", **SLOW),
    Flavour("reference", library="reference", model_only=True),
    Flavour("reference-debug", library="reference", model_only=True, **DEBUG_HEAP),
)


def _outheap(name: str, *switches: str, base: tuple[str, ...] = OPTIMISED, **rest: object) -> Flavour:
    return Flavour(name, base + _defines("OH", *switches), **rest)  # type: ignore[arg-type]


_TINY = ("CHUNK_LOG=22", "PAGE_LOG=16", "POOL_LOG=12", "SPACE_MEMORY_SPLIT_MOST=(12*OH_PAGE)")
# Tests of what memory over sbrk does not do.
_SBRK = (
    # free memory goes back, except at the end of the area
    "block/trim",
    "block/ages",
    "outheap/statistics",
    "pace/free-pools",
    "pool/nearly-full",
    "pool/trim",
    "pool/trim-beside-others",
    "space_memory/hysteresis",
    "space_memory/huge",
    "space_memory/split",
    "space_memory/trim-beside-others",
    "space/strict",
    # a zone, chosen addresses, regions of the process map
    "map/huge-pages",
    "marked/inside",
    "marked/outgrown",
    "process/limits",
    "process/places",
    "refused/occupied",
    "refused/zone",
    "watch/usage",
    # a second thread
    "block/threads",
    "outheap/threads",
    "pool/threads",
    "process/forks",
    "space/threads",
    "table/race",
    "watch/at-intervals",
    "watch/on-a-descriptor",
    "watch/on-a-signal",
    "watch/quiet",
    "watch/stopped",
)
_WASM = (
    "--target=wasm32-wasi",
    *("-D_WASI_EMULATED_SIGNAL", "-D_WASI_EMULATED_GETPID", "-D_WASI_EMULATED_MMAN"),
)
OUTHEAP = _table(
    _outheap("release"),
    _outheap("checked", "DEBUG=1"),
    _outheap("asan", base=UNOPTIMISED + ASAN),
    _outheap("tsan", base=UNOPTIMISED + TSAN),
    _outheap("tiny", *_TINY, "DEBUG=1"),
    _outheap("tiny-asan", *_TINY, "DEBUG=1", base=UNOPTIMISED + ASAN),
    _outheap("tiny-tsan", *_TINY, base=UNOPTIMISED + TSAN),
    _outheap("bits39", "ADDRESS_BITS=39"),
    _outheap("bits57", "ADDRESS_BITS=57"),
    _outheap("order", "TAINT=0"),
    _outheap("clang", compiler="clang"),
    _outheap("musl", base=(*OPTIMISED, "-static"), compiler="musl-gcc"),
    _outheap(
        "aarch64",
        base=(*OPTIMISED, "-static"),
        compiler="aarch64-linux-gnu-gcc",
        emulator="qemu-aarch64",
        # limits on memory, terabytes of address space, huge pages, threads in a child
        without=(
            "marked/outgrown",
            "outheap/messages",
            "outheap/refused",
            "process/limits",
            "refused/memory",
            "space_range/limited",
            "map/huge-pages",
            "watch/on-a-signal",
        ),
    ),
    _outheap("sbrk", "SBRK=1", "DEBUG=1", without=_SBRK),
    _outheap(
        "wasm32",
        *("SBRK=1", "DEBUG=1", "ADDRESS_BITS=32", "CHUNK_LOG=22", "PAGE_LOG=18", "POOL_LOG=14", "PAGEMAP_ROOT_LOG=8"),
        base=(*OPTIMISED, *_WASM),
        compiler="clang",
        needs=("wasm-ld", "node", "-h", "wasi/api.h"),
        emulator=str(Path(__file__).resolve().parents[2] / "outheap/test/wasm/run"),
        include=("outheap/test/wasm",),
        libraries=(
            *("-lwasi-emulated-signal", "-lwasi-emulated-getpid", "-lwasi-emulated-mman"),
            *("-Wl,--max-memory=1073741824", "-Wl,-z,stack-size=1048576"),
        ),
        # the others are about processes, files of the system, signals, tracked regions
        programs=tuple(
            f"{name}_test"
            for name in (
                *("block", "extents", "marked", "minor", "pool", "ranges", "sbrk", "space", "space_memory", "table"),
                "version",
            )
        ),
        without=(
            *_SBRK,
            # memory of WebAssembly never goes back, and there is less of it than they use
            "space/model",
            "space_memory/epochs",
            # a child by fork
            "block/forks",
            "block/misuse",
            "pool/forks",
            "pool/misuse",
            "space_memory/failures",
            "space_memory/misuse",
            # a second thread
            "space_memory/held-by-trim",
            "table/at-once",
            "table/report-threads",
            # the place or size of what they use needs more than 32 bits
            "extents/balance",
            "extents/worst",
            "pool/pins",
            "ranges/bad",
            "ranges/declared",
            "table/between",
        ),
    ),
    _outheap("coverage", base=COVERAGE),
    _outheap("coverage-tiny", *_TINY, "DEBUG=1", base=COVERAGE),
)

# The runtime variant: how programs are linked with it.
VARIANT = ("release", "debug", "bytecode")

QUICK = ("release", "checked")
ALL_BOXROOT = ("release", "tiny", "checked", "checked-tiny", "asan", "tsan", "force-remote", "stw", "conservative")
STRESS_BOXROOT = (*ALL_BOXROOT, "conservative-checked", "small-pools", "no-pacing")
BRIEF_BOXROOT = ("release", "tiny", "checked", "conservative")  # what differs between versions of OCaml 5
ALL_OUTHEAP = tuple(n for n in OUTHEAP if not n.startswith("coverage"))


def environment(flavour: Flavour, tests: str) -> dict[str, str]:
    """Settings of the sanitizers for a program of this flavour; `tests`: the folder with the suppressions."""
    if flavour.sanitizer == "address":
        return {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    if flavour.sanitizer == "thread":
        options = "halt_on_error=1:report_thread_leaks=0:die_after_fork=0:second_deadlock_stack=1"
        suppressions = Path(tests) / "tsan.suppressions"
        return {"TSAN_OPTIONS": f"{options}:suppressions={suppressions}" if suppressions.exists() else options}
    return {}

# SPDX-License-Identifier: MIT
"""Background marking and sweeping (OUTHEAP=helper=on): programs that must not notice it, each of which knows what its
data should be. They say nothing of how it works, so they run without it, and with the stock runtime, as a control."""

from __future__ import annotations

import shutil
from functools import cache, partial
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler, with_tsan
from testing.programs import CC, words_of
from testing.run import BUILD, ROOT
from testing.stress import Stress, run_stress, share

HOME = ROOT / "outheap"
LIBRARY = ROOT / "boxroot"
STOCK, THREADS = "stock", "tsan"
SHORT = 0.6  # seconds for a part
SETTING = "helper=on"
OVERFLOWING = SETTING + ",debug.stack=1"  # after its first batch in a cycle the helper rests, and domains go on
SHORT_STACK = SETTING + ",debug.stack=4k"  # it rests now and then
WARNINGS = "+a-4-9-40..42-44-45-70"
MODULES = ("check", "data", "weak", "control", "process", "outside")
SOURCES = ("test/helper", "lib/region", "lib/hashcons", "include")
PLUGIN = "soak_plugin.so"
# ThreadSanitizer cannot follow a child of a process with threads, or do with little address space.
WITHOUT_THREADS = ("forks", "forks-of-threads")
TSAN = f"halt_on_error=1:second_deadlock_stack=1:suppressions={LIBRARY}/test/tsan.suppressions"


def _files() -> list[Path]:
    return [f for part in SOURCES for f in (HOME / part).rglob("*") if f.is_file()] + [
        f for part in ("src", "include") for f in (LIBRARY / part).rglob("*") if f.is_file()
    ]


def _of_variant(flavour: str) -> str:
    return "release" if flavour == THREADS else flavour


def _linked(compiler: Compiler, flavour: str, library: Path | None, pic: bool = False) -> list[str | Path]:
    if flavour == STOCK:
        return ["-runtime-variant", "_pic"] if pic else []
    suffix = "_outheap_pic" if pic else variants.SUFFIX[_of_variant(flavour)]
    return ["-I", library or variants.library(compiler, _of_variant(flavour)), "-runtime-variant", suffix]


def build(compiler: Compiler, flavour: str, folder: Path, library: Path | None = None) -> None:
    """The test program in `folder`; with another library than the variant's own, if one is given."""
    for part in SOURCES[:-1]:
        for file in (HOME / part).iterdir():
            if file.suffix in (".ml", ".mli", ".c", ".h"):
                shutil.copy(file, folder)
    stubs = [f.name for f in sorted(folder.glob("*.c")) if f.name not in ("soak_embed.c", "soak_host.c")]
    options = f"-std=gnu11 -O2 -Wall -Wextra -I . -I {HOME}/include -I {LIBRARY}/include"
    steps.commands([[compiler.ocamlopt, "-g", "-ccopt", options, "-c", stub] for stub in stubs], folder)
    steps.command(
        [CC, "-std=gnu11", "-O2", "-g", "-c", LIBRARY / "src/all.c", f"-I{LIBRARY}/include", f"-I{compiler.where}"]
        + ["-o", "boxroot_all.o"],
        folder,
    )
    objects = ["boxroot_all.o", *(f"{Path(stub).stem}.o" for stub in stubs)]
    libraries = [*compiler.libraries, "unix.cmxa", "threads.cmxa"]
    start = [compiler.ocamlopt, "-g", "-w", WARNINGS, *_linked(compiler, flavour, library), *libraries]
    modules = [f"{m}.{kind}" for m in ("outheap_region", "outheap_hashcons") for kind in ("mli", "ml")]
    modules += [f"soak_{m}.ml" for m in MODULES]
    steps.command([*start, *objects, *modules, "soak.ml", "-o", "soak"], folder)
    if flavour == THREADS:  # `ld -r` does not know the options that such a compiler passes it
        return
    common = ["soak_check.cmx", "soak_data.cmx", "soak_callbacks.ml"]
    steps.command([*start, *common, "-output-complete-obj", "-o", "embedded.o"], folder)
    steps.command(
        [CC, "-g", f"-I{compiler.where}", "soak_embed.c", "embedded.o", "-o", "soak_embed"]
        + compiler.native_c_libraries,
        folder,
    )


def _build_plugin(compiler: Compiler, flavour: str, folder: Path) -> None:
    """A shared object with OCaml and its runtime, and a program of C that loads it."""
    command = [CC, "-O2", "-g", "-fPIC", "-DPLUGIN", f"-I{compiler.where}", "-c", "soak_embed.c", "-o", "plugin_c.o"]
    steps.command(command, folder)
    linked = _linked(compiler, flavour, variants.library(compiler, "pic") if flavour != STOCK else None, pic=True)
    modules = ["soak_check.cmx", "soak_data.cmx", "soak_callbacks.cmx", "plugin_c.o"]
    start = [compiler.ocamlopt, "-g", *linked, *compiler.libraries, "unix.cmxa", "threads.cmxa"]
    steps.command([*start, *modules, "-output-complete-obj", "-o", PLUGIN], folder)
    steps.command([CC, "-g", "soak_host.c", "-ldl", "-o", "soak_host"], folder)


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    name = compiler.name if flavour == STOCK else f"{compiler.name}+outheap"
    library = None if flavour == STOCK else variants.library(compiler, _of_variant(flavour))
    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    if flavour == "release":
        words.append((variants.library(compiler, "pic") / "built").read_text())

    folder = BUILD / name / f"helper-{flavour}"

    def make() -> None:
        build(compiler, flavour, folder)
        if flavour in ("release", STOCK):
            _build_plugin(compiler, flavour, folder)

    return steps.step(folder, _files(), words, make)


def _cases(compiler: Compiler, flavour: str, seed: int, seconds: float, everything: bool) -> list[Case]:
    # The list is that of any compiler's program.
    listed = words_of(program(compiler, flavour) / "soak")
    stock = flavour == STOCK
    debug = flavour == "debug"
    minor = "s=32k"
    runparam = f"v=0,V=1,{minor}" if debug else f"b,{minor}"
    # Weak pointers of domains that end are a fault of the runtime's own (docs/internals/upstream.md).
    less = ["--no-weak"]
    commands: dict[str, tuple[list[str], str, str]] = {}
    for part, words in listed.items():
        if flavour == THREADS and (part in WITHOUT_THREADS or "limited" in words):
            continue
        command = ["./soak", part, "--seed", str(seed), "--seconds", f"{seconds:g}", *less]
        if "limited" in words:
            if not debug:  # verification needs memory that cannot be had
                limited = ["sh", "-c", 'ulimit -v 700000 && exec "$@"', "sh", *command]
                commands[part] = (limited, SETTING, f"d=4,{minor}")
            continue
        commands[part] = (command, OVERFLOWING if "short" in words else SETTING, runparam)
        if "one" not in words and "slow" not in words and (everything or not debug):
            commands[f"{part}-beside"] = ([*command, "--beside", "1"], SETTING, runparam)
        if everything and flavour not in (STOCK, THREADS):
            commands[f"{part}-off"] = (command, "helper=off", runparam)
            commands[f"{part}-auto"] = (command, "helper=auto", runparam)
            commands[f"{part}-short"] = (command, SHORT_STACK, runparam)
    if flavour != THREADS:
        commands["embed"] = (["./soak_embed"], SETTING, runparam)
    # Up to 5.3 a runtime that is shut down leaves threads (docs/internals/upstream.md).
    if flavour in ("release", STOCK) and compiler.version >= "5.4":
        commands["plugin"] = (["./soak_host", f"./{PLUGIN}"], SETTING, runparam)
    return [
        Case(
            "outheap",
            f"{compiler.name}-{flavour}",
            f"helper/{name}",
            command,
            seconds * 20 + 180,
            lambda: program(compiler, flavour),
            {"OCAMLRUNPARAM": params_, "TSAN_OPTIONS": TSAN} | ({} if stock else {"OUTHEAP": setting}),
            random="--seed" in command,
            slow="slow" in listed.get(name.split("-beside")[0], ()),
        )
        for name, (command, setting, params_) in commands.items()
    ]


def _pairs(config: pytest.Config) -> list[tuple[Compiler, str]]:
    pairs = [(c, f) for c, f in matrix.variant(config) if c.major >= 5 and f in ("release", "debug")]
    if config.getoption("everything"):
        ends = [c for c in matrix.ends() if c in matrix.known_to_outheap() and c.major >= 5]
        pairs += [(c, STOCK) for c in ends] + [(t, THREADS) for c in ends if (t := with_tsan(c))]
    return pairs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    if "stress" in metafunc.fixturenames:
        pairs = _pairs(config) if matrix.stressing(config) else []
        seconds = share(config, "helper", len(pairs))
        items = [
            Stress("outheap", f"{c.name}-{f}", seconds, matrix.seed() + 1000 * n, partial(_round, c, f))
            for n, (c, f) in enumerate(pairs)
        ]
        metafunc.parametrize("stress", [s.param() for s in items])
        return
    everything = config.getoption("everything")
    length = 4 * SHORT if config.getoption("full") else SHORT

    def listed() -> list[Case]:
        return [case for c, f in _pairs(config) for case in _cases(c, f, matrix.seed(), length, everything)]

    metafunc.parametrize("case", params("outheap", "helper", listed))


def _round(compiler: Compiler, flavour: str, seed: int) -> list[Case]:
    return _cases(compiler, flavour, seed, 10, False)


def test_helper(case: Case) -> None:
    check(case)


@pytest.mark.stress
def test_stress(stress: Stress) -> None:
    print(f"{stress.label}: {run_stress(stress)} runs")

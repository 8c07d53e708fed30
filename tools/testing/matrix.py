# SPDX-License-Identifier: MIT
"""What is run with what: compilers and flavours, from pytest's options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from testing import flavours as table
from testing.compilers import BRIEF, EVERY, KNOWN_TO_OUTHEAP, Compiler, NoCompiler, find, with_tsan
from testing.flavours import BOXROOT, OUTHEAP, Flavour

PREFIXES = "BOXROOT_TEST_PREFIXES"  # how the workers learn which compilers were found
SEED = "BOXROOT_TEST_SEED"


def choose(config: pytest.Config) -> None:
    """Finds the compilers, once for all workers."""
    chosen_flavours(config)
    choice = config.getoption("ocaml")
    if choice is None:
        choice = os.environ.get("OCAML", "")
    wanted: tuple[str, ...] = (choice,)
    if choice == "all" or (not choice and config.getoption("everything")):
        wanted = EVERY
    try:
        found = [str(find(version).prefix) for version in wanted]
    except NoCompiler as error:
        raise pytest.UsageError(str(error)) from None
    # `newest` is one of the others where a newer one cannot be had.
    os.environ[PREFIXES] = ":".join(dict.fromkeys(found))
    if config.getoption("everything"):
        for prefix in compilers():
            with_tsan(prefix)


def seed() -> int:
    return int(os.environ[SEED])


def compilers(brief: bool = True) -> list[Compiler]:
    found = [Compiler(Path(prefix)) for prefix in os.environ[PREFIXES].split(":")]
    return [c for c in found if brief or c.version not in BRIEF or len(found) == 1]


def ends(newest: tuple[int, ...] = (99,)) -> list[Compiler]:
    """One compiler of each generation: the newest, but none after this version."""
    found = [c for c in compilers(brief=False) if c.release <= newest]
    return list({c.major: c for c in reversed(found)}.values())[::-1]


def known_to_outheap(brief: bool = False) -> list[Compiler]:
    return [c for c in compilers(brief) if c.version in KNOWN_TO_OUTHEAP]


def stressing(config: pytest.Config) -> bool:
    return config.getoption("stress") > 0


def chosen_flavours(config: pytest.Config) -> list[str]:
    """Those of --flavours, which must exist."""
    names = config.getoption("flavours").replace(",", " ").split()
    everywhere = {*BOXROOT, *OUTHEAP, *table.VARIANT}
    for name in names:
        if name not in everywhere:
            raise pytest.UsageError(f"no flavour {name}; there are {', '.join(sorted(everywhere))}")
    return names


def _wanted(config: pytest.Config, known: Iterable[str], default: Iterable[str]) -> list[str]:
    return [name for name in chosen_flavours(config) or default if name in known]


def boxroot(config: pytest.Config) -> list[tuple[Compiler, Flavour]]:
    default: tuple[str, ...] = table.QUICK
    if config.getoption("everything"):
        default = table.ALL_BOXROOT
    if stressing(config):
        default = table.STRESS_BOXROOT
    pairs = []
    for compiler in compilers():
        brief = compiler.version in BRIEF and len(compilers()) > 1 and not stressing(config)
        for name in _wanted(config, BOXROOT, default):
            flavour = BOXROOT[name]
            if brief and name not in table.BRIEF_BOXROOT and not config.getoption("flavours"):
                continue
            if flavour.ocaml5 and compiler.major < 5:
                continue
            if flavour.runtime == "d" and compiler.faulty_debug_runtime:
                continue
            used = with_tsan(compiler) if flavour.sanitizer == "thread" else compiler
            if used is not None:
                pairs.append((used, flavour))
    return pairs


def outheap(config: pytest.Config) -> list[Flavour]:
    everything = config.getoption("everything") or stressing(config)
    return [OUTHEAP[name] for name in _wanted(config, OUTHEAP, table.ALL_OUTHEAP if everything else table.QUICK)]


def variant(config: pytest.Config) -> list[tuple[Compiler, str]]:
    default = table.VARIANT if config.getoption("everything") else ("release", "debug")
    pairs = [(c, name) for c in known_to_outheap(brief=True) for name in _wanted(config, table.VARIANT, default)]
    return [(c, name) for c, name in pairs if not (c.faulty_debug_runtime and name == "debug")]

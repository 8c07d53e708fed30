# SPDX-License-Identifier: MIT
"""Cases of Boxroot's programs: their settings, limits, and the runs of the random tester."""

from __future__ import annotations

import pytest

from testing import programs
from testing.cases import Case
from testing.compilers import Compiler
from testing.flavours import Flavour, environment

LIMIT, RANDOM_LIMIT = 240, 120
SCALE, STEPS = 30, 3000  # at most, of a run of one compiler


def settings_of(config: pytest.Config, compiler: Compiler, flavour: Flavour, name: str) -> dict[str, str]:
    most = 100 if config.getoption("everything") else SCALE
    scale = 100 if config.getoption("full") else min(flavour.scale, most)
    runparam = ["b", *([flavour.runparam] if flavour.runparam else [])]
    if name.startswith("embed/") and flavour.name.endswith("tiny"):
        runparam.append("c=1")
    settings = {
        "OCAMLRUNPARAM": ",".join(runparam),
        "BOXROOT_TEST_SCALE": str(scale),
        **environment(flavour, str(programs.TESTS)),
    }
    if flavour.runtime == "d" and compiler.faulty_debug_account:
        settings["BOXROOT_TEST_NO_COMPACTION"] = "1"
    return settings


def case_of(
    config: pytest.Config,
    compiler: Compiler,
    flavour: Flavour,
    name: str,
    command: list[str],
    random: bool = False,
    slow: bool = False,
) -> Case:
    return Case(
        "boxroot",
        f"{compiler.name}-{flavour.name}",
        name,
        [*flavour.runner, *command],
        RANDOM_LIMIT if random else LIMIT,
        lambda: programs.build(compiler, flavour),
        settings_of(config, compiler, flavour, name),
        random,
        slow,
    )


def program_cases(
    config: pytest.Config, compiler: Compiler, flavour: Flavour, found: list[tuple[str, str, list[str]]]
) -> list[Case]:
    """Of tests that the programs list."""
    return [
        case_of(config, compiler, flavour, f"{program}/{test}", [f"./{program}", test], slow="slow" in words)
        for program, test, words in found
    ]


def model_commands(compiler: Compiler, flavour: Flavour, seed: int, steps: int) -> dict[str, list[str]]:
    """The random tester's runs of a flavour."""
    always = ["--no-restart"] if flavour.library == "reference" else []

    def model(seed: int, steps: int, *rest: str) -> list[str]:
        return ["./model", "--seed", str(seed), "--steps", str(steps), *rest, *always]

    found = {"model/alone": model(seed, steps * 2)}
    if flavour.name == "thread-unsafe":
        return found
    if compiler.major < 5:
        return found | {"model/threads": model(seed + 1, steps, "--threads", "4")}
    always.append("--no-ephemerons")  # a fault of the runtime when domains end (boxroot/test/README.md)
    half = steps // 2  # domains wait for one another
    # The runtime of 5.1.0 crashes by itself when several domains have several threads (boxroot/test/README.md).
    threads = ["--threads", "4"] if compiler.version == "5.1.0" else ["--domains", "2", "--threads", "3"]
    return found | {
        "model/threads": model(seed + 1, half, *threads),
        "model/domains": model(seed + 2, half, "--domains", "3", "--lives", "3"),
        "model/idle-main": model(seed + 3, half, "--domains", "2", "--lives", "4", "--idle-main"),
    }


def model_cases(config: pytest.Config, compiler: Compiler, flavour: Flavour, seed: int) -> list[Case]:
    steps = flavour.steps if config.getoption("everything") else min(flavour.steps, STEPS)
    steps *= 5 if config.getoption("full") else 1
    commands = model_commands(compiler, flavour, seed, steps)
    return [case_of(config, compiler, flavour, name, command, random=True) for name, command in commands.items()]

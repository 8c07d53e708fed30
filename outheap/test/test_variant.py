# SPDX-License-Identifier: MIT
"""Programs linked with the runtime variant."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from testing import compilers, matrix, steps, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler
from testing.programs import words_of
from testing.run import BUILD, ROOT, Outcome, run

HOME = ROOT / "outheap"
SOURCES = HOME / "test/variant"
CLOCK = [HOME / "test/memory" / name for name in ("clock.ml", "clock_stubs.c")]
LIMIT = 600
STOCK = "stock"  # for the list of parts alone
SETTINGS = (
    "thp=off",
    "thp=always",
    "reserve=1G",
    "keep=0",
    "keep=0:0%",
    "thp=advise:0",
    "debug.report=100000",
    "memory=stock",
    "memory=follow,debug.compact=1",
)
# Minor heaps that adapt themselves: the part, where they begin, and other parts meanwhile.
ADAPTIVE = (
    ("adaptive-grows", "32k"),
    ("adaptive-set", "32k"),
    ("adaptive-tries", "1M"),
    ("memprof", "8k"),
    ("threads", "32k"),
    ("forks", "8k"),
)
ADAPTIVE5 = (
    ("adaptive-refused", "32k"),
    ("adaptive-idle", "128k"),
    ("adaptive-tries-in-domains", "1M"),
    ("sizes", "32k"),
    ("storm", "32k"),
)
# Memory that goes back by itself; and parts in which every cycle ends with a compaction.
FOLLOWING = ("following-idle", "following-finalisers", "following-overhead")
FOLLOWING_COMPACTING = ("following-idle", "following-finalisers", "following-forks")
COMPACTING = ("kinds", "memprof", "threads", "forks", "domains", "large-blocks")
WARNINGS = "+a-4-9-40-41-42-44-45-70"


def program(compiler: Compiler, flavour: str) -> Path:
    """The folder of the test program of a flavour."""
    folder = BUILD / f"{compiler.name}+outheap" / f"program-{flavour}"
    library = None if flavour == STOCK else variants.library(compiler, flavour)
    files = [f for part in ("test/variant", "lib/outheap", "include") for f in (HOME / part).rglob("*") if f.is_file()]
    files += CLOCK

    def build() -> None:
        for file in [
            *CLOCK,
            *SOURCES.glob("*.ml"),
            *SOURCES.glob("*.c"),
            *HOME.glob("lib/outheap/outheap*.ml*"),
            *HOME.glob("lib/outheap/outheap*.c"),
        ]:
            shutil.copy(file, folder)
        shutil.copy(SOURCES / f"domains{compiler.major}.ml", folder / "domains.ml")
        native = flavour != "bytecode"
        start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
        kind = "cmxa" if native else "cma"
        steps.command(
            [
                *start,
                "-g",
                "-w",
                WARNINGS,
                *(["-I", library, "-runtime-variant", variants.SUFFIX[flavour]] if library else []),
                *compiler.libraries,
                *(f"{name}.{kind}" for name in ("unix", "threads", "dynlink")),
                "-linkall",
                "-ccopt",
                f"-I {HOME}/include",
                "outheap_stubs.c",
                "variant_stubs.c",
                "clock_stubs.c",
                "clock.ml",
                "outheap.mli",
                "outheap.ml",
                "shared.ml",
                "work.ml",
                "adaptive.ml",
                "following.ml",
                "domains.ml",
                "variant.ml",
                "-o",
                "program",
            ],
            folder,
        )
        plugin = (
            [compiler.ocamlopt, "-shared", "plugin.ml", "-o", "plugin.cmxs"]
            if native
            else [compiler.ocamlc, "-c", "plugin.ml"]
        )
        steps.command(plugin, folder)

    words = [compiler.prefix, flavour, library, (library / "built").read_text() if library else ""]
    return steps.step(folder, files, words, build)


def _parts(compiler: Compiler, flavour: str) -> list[Case]:
    five = compiler.major >= 5
    like = next(c for c in matrix.known_to_outheap(brief=True) if c.major == compiler.major)
    listed = words_of(program(like, STOCK) / "program")
    parts = [*listed, *(["plugin"] if flavour != "bytecode" else [])]
    cases = []
    for part in parts:
        runparam = "v=0,V=1" if flavour == "debug" else "b"
        settings = {"VARIANT_PLUGIN": "plugin.cmo" if flavour == "bytecode" else "./plugin.cmxs"}
        if flavour == "debug" and part == "compaction":
            runparam = "v=0"  # verification of a heap of that size takes minutes
        if (
            flavour == "debug"
            and part in ("domains", "threads")
            and compiler.faulty_debug_account
            and compiler.major >= 5
        ):
            runparam, settings["OUTHEAP_TEST_NO_COMPACTION"] = "v=0", "1"
        cases.append((part, ["./program", part], settings | {"OCAMLRUNPARAM": runparam}))
    cases += [
        (
            part if part.startswith("adaptive") else f"adaptive, {part}",
            ["./program", part],
            {
                "OUTHEAP": f"minor=adaptive:8k-{'4M' if words == '1M' else '1M'}",
                "OCAMLRUNPARAM": f"v=0,s={words}",
            },
        )
        for part, words in (ADAPTIVE + ADAPTIVE5 if five else ADAPTIVE)
        # their deep recursion is more than the stack of bytecode
        if flavour != "bytecode" or part not in ("adaptive-refused", "adaptive-tries-in-domains")
    ]
    if five:
        quick = {"OUTHEAP": "debug.clock=step,memory=follow,memory.idle=200ms", "OCAMLRUNPARAM": "v=0"}
        cases += [(part, ["./program", part], quick) for part in FOLLOWING]
        more = quick | {"OUTHEAP": f"{quick['OUTHEAP']},debug.compact=1"}
        if not (flavour == "debug" and compiler.faulty_debug_account):
            cases += [(f"compacting, {part}", ["./program", part], more) for part in FOLLOWING_COMPACTING]
        if not (flavour == "debug" and compiler.faulty_debug_account):
            # V=1 verifies the heap before each compaction.
            every = {"OUTHEAP": "memory=follow,debug.compact=1", "OCAMLRUNPARAM": "v=0" if flavour == "debug" else "b"}
            cases += [(f"compacting, {part}", ["./program", part], every) for part in COMPACTING]
    if flavour == "release":
        some = ["./program", "kinds", "polymorphic", "compaction", "large-blocks", "large-survivors"]
        cases += [(f"with {setting}", some, {"OUTHEAP": setting}) for setting in SETTINGS]
        cases += [
            ("little address space", _limited(600_000, "kinds polymorphic large-blocks"), {"OCAMLRUNPARAM": "d=4"}),
            ("little address space, larger minor heaps", _limited(600_000, "minor-heaps"), {"OCAMLRUNPARAM": "d=4"}),
            *(
                [
                    # Neither the largest number of domains nor a size that is refused takes address space.
                    ("large minor heaps", _limited(1_000_000, "kinds"), {"OCAMLRUNPARAM": "s=32M"}),
                    ("a minor heap that cannot be had", _limited(700_000, "refused-minor-heap"), {}),
                ]
                if five
                else []
            ),
            ("hardly any address space", _limited(140_000, "kinds polymorphic"), {"OCAMLRUNPARAM": "d=4,s=32k"}),
            (
                "with runtime events",
                ["./program", "kinds", "large-blocks", "threads"],
                {"OCAML_RUNTIME_EVENTS_START": "1", "OCAML_RUNTIME_EVENTS_DIR": "."},
            ),
        ]
    group = f"{compiler.name}-{flavour}"
    return [
        Case(
            "outheap",
            group,
            f"variant/{name.replace(' ', '-')}",
            command,
            LIMIT,
            lambda: program(compiler, flavour),
            settings,
            slow=flavour == "debug" and "slow" in listed.get(name.removeprefix("adaptive, "), ()),
        )
        for name, command, settings in cases
    ]


def _limited(kilobytes: int, parts: str) -> list[str]:
    return ["sh", "-c", f"ulimit -v {kilobytes} && exec ./program {parts}"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        pairs = matrix.variant(metafunc.config)

        def listed() -> list[Case]:
            return [case for compiler, flavour in pairs for case in _parts(compiler, flavour)]

        metafunc.parametrize("case", params("outheap", "variant", listed))
    elif "compiler" in metafunc.fixturenames:
        wanted = {compiler for compiler, flavour in matrix.variant(metafunc.config) if flavour == "release"}
        metafunc.parametrize("compiler", [c for c in matrix.known_to_outheap() if c in wanted], ids=lambda c: c.name)


def test_variant(case: Case) -> None:
    check(case)


def test_statistics_at_exit(compiler: Compiler) -> None:
    _says(compiler, "stats=exit", "^outheap: .*pools")


def test_statistics_on_a_signal(compiler: Compiler) -> None:
    folder = program(compiler, "release")
    file = folder / "statistics"
    file.unlink(missing_ok=True)
    settings = {"OUTHEAP": f"stats=USR2,stats.to={file}", "VARIANT_STATISTICS": str(file)}
    outcome = run(["./program", "signals", "threads"], folder, folder / "logs/signals.log", LIMIT, settings)
    assert outcome.passed, outcome.tail()
    assert "outheap: statistics on a signal: process " in file.read_text()


def test_a_wrong_setting_is_reported(compiler: Compiler) -> None:
    _says(compiler, "nonsense=3,thp=sometimes", "outheap: .*(nonsense|thp)")


def _says(compiler: Compiler, settings: str, words: str) -> None:
    folder = program(compiler, "release")
    outcome = run(["./program", "kinds"], folder, folder / f"logs/{settings[:5]}.log", LIMIT, {"OUTHEAP": settings})
    assert outcome.passed, outcome.tail()
    assert re.search(words, outcome.text, re.MULTILINE), outcome.text


ASKS = """let () =
  let value name = Option.value (Outheap.setting name) ~default:"" in
  List.iter (fun name -> Printf.printf "%s " (value name)) [ "thp"; "keep"; "minor"; "limit"; "nothing" ]
"""
INSIDE = '#include <outheap.h>\nchar const outheap_defaults[] = "thp=off,limit=70%,minor=12,keep=0,keep=1M";\n'
REFUSED = "outheap: outheap_defaults: ignored: minor=12 "


def settings_inside(compiler: Compiler, library: Path | None, name: str, inside: str) -> Path:
    """The folder of a program that says which settings count."""
    folder = BUILD / f"{compiler.name}+outheap/{name}"
    ours = [HOME / "lib/outheap" / file for file in ("outheap.mli", "outheap.ml", "outheap_stubs.c")]
    files = {file.name: file.read_text() for file in ours} | {"inside.c": inside, "asks.ml": ASKS}

    def build() -> None:
        for file, text in files.items():
            (folder / file).write_text(text)
        variant = ["-I", library, "-runtime-variant", "_outheap"] if library else []
        steps.command([compiler.ocamlopt, *variant, "-ccopt", f"-I{HOME}/include", *files, "-o", "asks"], folder)

    return steps.step(folder, [HOME / "include/outheap.h"], [library, compiler.prefix, *files.values()], build)


def asked(folder: Path, settings: str, *command: str) -> Outcome:
    return run(command or ["./asks"], folder, folder / "log", LIMIT, {"OUTHEAP": settings})


def test_settings_inside_the_executable(compiler: Compiler) -> None:
    folder = settings_inside(compiler, variants.library(compiler, "release"), "inside", INSIDE)
    for settings, said in (("", "off 1M 12 70% "), ("thp=always,limit=cgroup", "always 1M 12 cgroup ")):
        outcome = asked(folder, settings)
        assert outcome.passed and outcome.text.startswith(REFUSED) and outcome.text.endswith(f"\n{said} "), outcome.text
    shown = asked(folder, "debug.settings=1,thp=always").text
    assert "outheap: thp=always (OUTHEAP)\n" in shown and "outheap: limit=70% (outheap_defaults)\n" in shown, shown
    assert "off" not in shown and not shown.endswith("70%  "), shown
    if os.geteuid() == 0:
        privileged = folder / "privileged"
        shutil.copy(folder / "asks", privileged)
        os.chown(privileged, 65534, 65534)
        privileged.chmod(0o4755)
        text = asked(folder, "thp=always", "./privileged").text
        assert text.count("OUTHEAP is ignored") == 1 and text.endswith("\noff 1M 12 70%  "), text


def test_settings_inside_say_nothing_to_the_stock_runtime(compiler: Compiler) -> None:
    outcome = asked(settings_inside(compiler, None, "inside-stock", INSIDE), "thp=always")
    assert outcome.passed and outcome.text.strip() == "", outcome.text


@pytest.mark.slow
def test_settings_inside_the_variant(compiler: Compiler) -> None:
    folder = BUILD / f"{compiler.name}+outheap/defaults"
    shutil.rmtree(folder, ignore_errors=True)
    sources = compilers.toolchain("--source", compiler.version)
    words = ["--ocaml", compiler.prefix, "--sources", sources, "--flavours", "release", "--self-test", "0"]
    words += ["--output", folder, "--defaults"]
    built = run([variants.TOOL, *words, "thp=off,keep=2M"], ROOT, folder / "build.log", LIMIT, compiler.settings)
    assert built.passed, built.tail()
    assert asked(settings_inside(compiler, folder, "inside-defaults", ""), "").text == "off 2M    "
    assert asked(settings_inside(compiler, folder, "inside-both", INSIDE), "").text.endswith("\noff 1M 12 70%  ")
    refused = run([variants.TOOL, *words, 'a"b'], ROOT, folder / "refused.log", LIMIT, compiler.settings)
    assert refused.code == 2 and 'a"b is no list of settings' in refused.text, refused.text


def test_plain_bytecode(compiler: Compiler) -> None:
    """A build of bytecode that knows nothing of the variant, with shared libraries of stubs; and the folder of the
    variant among those that are searched changes nothing for others."""
    folder = BUILD / f"{compiler.name}+outheap/plain"
    library = variants.library(compiler, "bytecode")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "plain.ml").write_text("let () = Thread.join (Thread.create print_endline (Unix.getcwd ()))")
    command = [compiler.ocamlc, *compiler.libraries, "unix.cma", "threads.cma", "plain.ml", "-o"]
    param = {"OCAMLPARAM": f"_,I={library},runtime-variant=_outheap"}
    # From OCaml 5.5 on the path of the interpreter is not found in the folders of -I.
    start = [] if compiler.version < "5.5" else ["-launch-method", f"sh {library}"]
    for name, more, settings in (("ours", start, param), ("stock", ["-I", library], {})):
        built = run([*command, name, *more], folder, folder / f"logs/build-{name}.log", LIMIT, settings)
        assert built.passed, built.tail()
        outcome = run([f"./{name}"], folder, folder / f"logs/{name}.log", LIMIT, {"OUTHEAP": "stats=exit"})
        assert outcome.passed, outcome.tail()
        assert str(folder) in outcome.text
        assert ("outheap: " in outcome.text) == (name == "ours")


def _refused(compiler: Compiler, sources: str, words: str) -> None:
    folder = BUILD / f"{compiler.name}+outheap"
    command = [variants.TOOL, "--ocaml", compiler.prefix, "--output", folder / "none", "--sources", sources]
    outcome = run(command, ROOT, folder / f"logs/refused-{Path(sources).name}.log", LIMIT, compiler.settings)
    assert not outcome.passed
    assert words in outcome.text


def test_sources_of_another_version_are_refused(compiler: Compiler) -> None:
    other = compilers.toolchain("--source", "4.14.1" if compiler.version == "5.3.0" else "5.3.0")
    _refused(compiler, other, "the sources of OCaml")


def test_no_sources_are_refused(compiler: Compiler) -> None:
    _refused(compiler, str(ROOT), "not the sources")

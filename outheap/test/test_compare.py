# SPDX-License-Identifier: MIT
"""The command outheap-compare: what it runs, what it prints, what it refuses."""

from __future__ import annotations

import html.parser
import os
import re
import shutil
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

TOOL = ROOT / "outheap/tool/outheap-compare"
PROGRAM = """
let () =
  let keep = Array.init 20 (fun i -> Bytes.make (4_000_000 + i) 'x') in
  for _ = 1 to 3 do ignore (Sys.opaque_identity (List.init 100_000 string_of_int)); Gc.full_major () done;
  ignore (Sys.opaque_identity keep);
  print_endline (String.concat " " (List.tl (Array.to_list Sys.argv)))
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", matrix.known_to_outheap(), ids=lambda c: c.name)


def compare(folder: Path, *words: object, **settings: str) -> Outcome:
    return run([TOOL, *map(str, words)], folder, folder / "logs/compare.log", 300, settings)


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def figures(text: str) -> dict[str, list[str]]:
    lines = [re.split(r"  +", line) for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 4}


def test_the_table(tmp_path: Path) -> None:
    """Counts that are known: the variant makes half as many collections; both get the arguments and the settings."""
    counts = 'echo "minor_collections: {}" >&2; echo "$OUTHEAP $1 $2" >>{}; echo the same'
    stock = script(tmp_path, "stock", counts.format(40, tmp_path / "runs"))
    variant = script(tmp_path, "variant", counts.format(20, tmp_path / "runs"))
    page = tmp_path / "page.html"
    words = ["--rounds", 3, "--outheap", "thp=off", "--html", page, "--stock", stock, "--variant", variant]
    outcome = compare(tmp_path, *words, "--", "one", "<two>")
    assert outcome.passed, outcome.tail()
    assert figures(outcome.text)["minor collections"][:4] == ["40", "20", "0.50", "0.50-0.50"]
    assert {"time", "user time"} <= figures(outcome.text).keys()
    runs = (tmp_path / "runs").read_text().splitlines()
    assert sorted(runs) == [" one <two>"] * 4 + ["thp=off one <two>"] * 4  # one more to warm up
    assert runs != sorted(runs), "the order changes"
    text = page.read_text()
    html.parser.HTMLParser().feed(text)
    assert "<svg" in text and "minor collections" in text and "&lt;two&gt;" in text
    assert not re.search(r"(src|href)=", text), "it needs nothing else"


def test_another_output_is_reported(tmp_path: Path) -> None:
    stock, variant = script(tmp_path, "stock", "echo 1"), script(tmp_path, "variant", "echo 2")
    outcome = compare(tmp_path, "--rounds", 3, "--stock", stock, "--variant", variant)
    assert outcome.code == 1 and "do not give the same output" in outcome.text


def test_what_varies_by_itself_is_not_reported(tmp_path: Path) -> None:
    both = script(tmp_path, "both", "echo $$")
    outcome = compare(tmp_path, "--rounds", 3, "--stock", both, "--variant", both)
    assert outcome.passed, outcome.text


@pytest.mark.parametrize(
    "words, code, message",
    [
        ([], 2, "no program"),
        (["./none"], 2, "there is no none"),
        (["--stock", "/bin/true"], 2, "go together"),
        (["--stock", "/bin/true", "--variant", "./none"], 2, "no executable"),
        (["--rounds", "1", "--stock", "/bin/true", "--variant", "/bin/true"], 2, "at least 3"),
        (["--stock", "/bin/true", "--variant", "/bin/false"], 1, "variant ended with exit code 1"),
        (["--timeout", "0.2", "--stock", "/bin/sleep", "--variant", "/bin/sleep", "60"], 1, "after 0.2 s"),
        (["/bin/true"], 2, "--build"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    outcome = compare(tmp_path, *words)
    assert outcome.code == code and message in outcome.text, outcome.text


def prepared(compiler: Compiler, name: str) -> Path:
    folder = BUILD / f"{compiler.name}+outheap/compare-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "prog.ml").write_text(PROGRAM)
    return folder


def test_a_program_is_built_both_ways(compiler: Compiler) -> None:
    folder, library = prepared(compiler, "build"), variants.library(compiler, "release")
    build = f"{compiler.ocamlopt} prog.ml -o prog"
    settings = f"stats=1,stats_to={folder}/statistics"
    words = ["--rounds", 3, "--library", library, "--outheap", settings, "--build", build]
    outcome = compare(folder, *words, "./prog", "a", "b")
    assert outcome.passed, outcome.tail()
    found = figures(outcome.text)
    assert {"time", "peak memory", "major collections"} <= found.keys(), outcome.text
    assert (folder / "statistics").read_text().count("outheap: pools ") == 4, "once for each run of the variant"
    left = run(["./prog"], folder, folder / "logs/prog.log", 60, {"OUTHEAP": "stats=1"})
    assert "outheap" not in left.text, "what is left behind is the stock program"


def test_dune_builds_in_folders_of_its_own(compiler: Compiler) -> None:
    cached = Path(os.environ.get("BOXROOT_CACHE") or Path.home() / ".cache/boxroot") / "dune/bin/dune"
    dune = shutil.which("dune") or (cached.exists() and cached)
    if not dune:
        pytest.skip("no dune here")
    folder, library = prepared(compiler, "dune"), variants.library(compiler, "release")
    (folder / "dune-project").write_text("(lang dune 3.0)\n")
    (folder / "dune").write_text("(executable (name prog))\n")
    words = ["--rounds", 3, "--library", library, "--outheap", f"stats=1,stats_to={folder}/statistics"]
    build = f"{dune} build --root . ./prog.exe"
    outcome = compare(folder, *words, "--build", build, "_build/default/prog.exe", "a", PATH=compiler.settings["PATH"])
    assert outcome.passed, outcome.tail()
    assert (folder / "statistics").read_text().count("outheap: pools ") == 4, "once for each run of the variant"


def test_bytecode_needs_no_build(compiler: Compiler) -> None:
    folder, library = prepared(compiler, "bytecode"), variants.library(compiler, "bytecode")
    steps.command([compiler.ocamlc, "prog.ml", "-o", "prog"], folder)
    settings = {name: value for name, value in compiler.settings.items() if name == "PATH"}
    outcome = compare(folder, "--rounds", 3, "--library", library, "./prog", "a", **settings)
    assert outcome.passed, outcome.tail()
    assert "major collections" in figures(outcome.text), outcome.text


def test_no_library_is_explained(tmp_path: Path) -> None:
    outcome = compare(tmp_path, "--library", tmp_path, "--build", "true", "./prog")
    assert outcome.code == 2 and "outheap-build" in outcome.text, outcome.text

# SPDX-License-Identifier: MIT
"""docs/using.md, line by line: the files and commands of each section, in a folder of its own.

A block ```LANGUAGE FILE is written to FILE. A block ```sh is run with `sh -eu`. A block ```text is the whole output of
the commands before it. A section without commands has nothing to test.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
SECTIONS = {s.split("\n", 1)[0]: BLOCK.findall(s) for s in (ROOT / "docs/using.md").read_text().split("\n## ")[1:]}
INSTALL = "Install with dune"


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Variables for the commands; dune and the packages as the first section installs them."""
    ask = '. tools/lib.sh; ocaml_prefix "$1"'
    done = subprocess.run(
        ["bash", "-c", ask, "tools/test", os.environ.get("OCAML", "")], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    assert done.returncode == 0, "no compiler"
    cached = Path(os.environ.get("BOXROOT_CACHE") or Path.home() / ".cache/boxroot") / "dune/bin/dune"
    dune = shutil.which("dune") or (cached.exists() and str(cached))
    if not dune:
        pytest.skip("no dune here; make test-all builds it")
    folder = tmp_path_factory.mktemp("using")
    drop = ("OCAMLLIB", "CAMLLIB", "OCAMLFIND_CONF", "OPAM_SWITCH_PREFIX", "CAML_LD_LIBRARY_PATH", "DUNE_BUILD_DIR")
    variables = {k: v for k, v in os.environ.items() if k not in drop} | {
        "PATH": f"{done.stdout.strip()}/bin:{Path(dune).parent}:{os.environ['PATH']}",
        "boxroot": str(folder / "clone"),
        "prefix": str(folder / "prefix"),
        "OCAMLPATH": str(folder / "prefix/lib"),
    }
    ignored = shutil.ignore_patterns("_build", "target", ".git", "results")
    shutil.copytree(ROOT, folder / "clone", symlinks=True, ignore=ignored)
    play(SECTIONS[INSTALL], folder, variables)
    return variables


def play(blocks, folder, variables):
    output = None
    for language, name, text in blocks:
        if name:
            (folder / name).write_text(text)
        elif language == "sh":
            done = subprocess.run(
                ["sh", "-euc", text],
                cwd=folder,
                env=variables,
                text=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=300,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
            output = done.stdout
        elif language == "text":
            assert output == text
        else:
            raise AssertionError(f"a block of {language} without a file name")


@pytest.mark.parametrize(
    "section", [s for s, blocks in SECTIONS.items() if any(b[0] == "sh" for b in blocks) and s != INSTALL]
)
def test_section(environment, section, tmp_path):
    play(SECTIONS[section], tmp_path, environment)

# SPDX-License-Identifier: MIT
"""Every implementation passes the functional test before it is measured. OCAML_PREFIX, or the default compiler."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from runner.compiler import ROOT, Compiler
from runner.suites.boxroot import functional
from runner.suites.boxroot.implementations import IMPLEMENTATIONS, Implementation


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    if prefix := os.environ.get("OCAML_PREFIX"):
        return Compiler(Path(prefix))
    done = subprocess.run([ROOT / "tools" / "toolchain", "--default"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no OCaml compiler")
    return Compiler(Path(done.stdout.strip()))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_rival(name, compiler):
    if "0.4.0" in name and not shutil.which("cargo"):
        pytest.skip("cargo is missing: 0.4.0 cannot be fetched")
    outcome = functional.check(IMPLEMENTATIONS[name], compiler, seeds=(1,))
    if outcome.passed is None:
        pytest.skip(outcome.text)
    assert outcome.passed, outcome.text


def test_a_rival_that_leaks_is_found(compiler):
    leaking = Implementation("leaking", "deletes nothing", "../tests/leaking")
    outcome = functional.check(leaking, compiler, seeds=(1,))
    assert outcome.passed is False and "is alive, but its cell has been deleted" in outcome.text

# SPDX-License-Identifier: MIT
"""Every implementation passes the functional test before it is measured. OCAML_PREFIX, or the default compiler."""

import subprocess

import pytest
from runner import fetch
from runner.suites.boxroot import build, functional
from runner.suites.boxroot.suite import SUITE, Implementation

IMPLEMENTATIONS, WORKLOADS = SUITE.implementations, SUITE.workloads


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_rival(name, compiler):
    outcome = functional.check(IMPLEMENTATIONS[name], compiler, seeds=(1,))
    if outcome.passed is None:
        pytest.skip(outcome.text)
    assert outcome.passed, outcome.text


LEAKING = Implementation("leaking", "deletes nothing", "../tests/leaking")


def test_a_rival_that_leaks_is_found(compiler):
    outcome = functional.check(LEAKING, compiler, seeds=(1,))
    assert outcome.passed is False and "is alive, but its cell has been deleted" in outcome.text


def closures(implementation, compiler):
    program = build.program(WORKLOADS["closures"], implementation, compiler)
    return subprocess.run([program, "30000"], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", dict.fromkeys(i for c in WORKLOADS["closures"].cases for i in c.implementations))
def test_closures(name, compiler):
    """The program checks each closure: that it computes what it should, and is alive as long as the table holds it."""
    if IMPLEMENTATIONS[name].ocaml5_only and not compiler.ocaml5:
        pytest.skip("OCaml 5 only")
    try:
        done = closures(IMPLEMENTATIONS[name], compiler)
    except fetch.FetchError as error:
        pytest.skip(str(error))
    assert done.returncode == 0, done.stderr
    names = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert names[:5] == ["add", "replace", "twenty full majors", "call each", "remove at random"]


def test_closures_of_a_rival_that_leaks(compiler):
    done = closures(LEAKING, compiler)
    assert done.returncode == 1 and "closures are alive that were removed" in done.stderr


def test_closures_of_what_keeps_nothing_alive(compiler):
    assert closures(IMPLEMENTATIONS["malloc"], compiler).returncode != 0

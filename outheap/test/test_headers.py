# SPDX-License-Identifier: MIT
"""outheap/tool/headers: each read of a header in the runtime is changed by the overlay, or listed with a reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testing import compilers, matrix
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

MORE = """
CAMLprim value caml_new_primitive(value v)
{
  /* Tag_val(comment) */
  if (Is_block(v) && Tag_val (Field(v, 0)) == String_tag) return Val_true;
  return Val_long(caml_array_length(v));
}
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    five = [c for c in matrix.known_to_outheap() if c.major >= 5]
    metafunc.parametrize("compiler", five, ids=lambda c: c.name)


def headers(*folders: Path) -> Outcome:
    log = BUILD / "outheap/headers" / ("-".join(f.name for f in folders) + ".log")
    return run([ROOT / "outheap/tool/headers", *folders], ROOT, log, 120)


def test_every_read_is_known(compiler: Compiler) -> None:
    outcome = headers(Path(compilers.toolchain("--source", compiler.version)))
    assert outcome.passed, outcome.tail()


@pytest.mark.parametrize("unit", ["hash", "io"])
def test_a_new_read_is_found(compiler: Compiler, unit: str) -> None:
    """In a unit that the overlay changes, and in one that it does not."""
    copy = BUILD / f"outheap/headers/{compiler.version}-{unit}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(Path(compilers.toolchain("--source", compiler.version)) / "runtime", copy / "runtime")
    with (copy / f"runtime/{unit}.c").open("a") as file:
        file.write(MORE)
    outcome = headers(copy)
    assert not outcome.passed
    lines = [line for line in outcome.text.splitlines() if "nobody says" in line]
    assert [line.split(": ", 2)[-1] for line in lines] == [
        f"{unit} caml_new_primitive Tag_val(Field(v,0))",
    ]


def test_the_list_names_what_exists(compiler: Compiler) -> None:
    outcome = headers()
    assert outcome.passed, outcome.tail()

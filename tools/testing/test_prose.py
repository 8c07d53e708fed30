# SPDX-License-Identifier: MIT
"""What tools/prose says of sentences in documents and in comments."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from testing.run import ROOT

BAD = """\
What it costs is small. What does it cost? Each root, of which there are many, has a list of its own.
`What is` code, and (what is) in the middle.
"""
FOUND = [("1", "What"), ("1", "of which"), ("1", "has a list of its own")]


@pytest.mark.lint
@pytest.mark.slow
@pytest.mark.parametrize("name, text", [("page.md", BAD), ("code.h", f"/* {BAD}*/\nint of_which; // of which\n"),
                                        ("code.mli", f"(** {BAD}*)\nval f : int (* of *)\n")],
                         ids=("page", "header", "interface"))  # fmt: skip
def test_sentences(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    done = subprocess.run([ROOT / "tools/prose", tmp_path / name], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("no textlint")
    assert done.returncode == 1
    assert [re.findall(rf"{name}:(\d+):\d+: (.*) =>", line)[0] for line in done.stdout.splitlines()] == FOUND

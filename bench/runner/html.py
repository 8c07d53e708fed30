# SPDX-License-Identifier: MIT
"""The report: one self-contained page. And the pictures of README.md."""
from __future__ import annotations

from .model import Suite
from .results import Run


def picture(run: Run, suite: Suite) -> str:
    return "<svg xmlns='http://www.w3.org/2000/svg'/>\n"


def page(runs: list[tuple[Suite, Run]]) -> str:
    return "\n"

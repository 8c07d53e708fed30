# SPDX-License-Identifier: MIT
"""The tests that `make test` leaves out because others show the same in less time: patterns in slow.txt, beside the
word `slow` where a case is defined. They run in `make test-all`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PATTERNS = Path(__file__).with_name("slow.txt")
LABEL = re.compile(r"(\w+)\[(?:\d+(?:\.\d+)*(?:~\w+)?)?-?([^]]*)\] (.*)")


def without_compiler(label: str) -> str:
    """`outheap[debug] region/waits` for `outheap[5.4.1-debug] region/waits`, `outheap floor/release-0` for
    `outheap[5.4.1] floor/release-0`."""
    if match := LABEL.fullmatch(label):
        product, flavour, name = match.groups()
        return f"{product}[{flavour}] {name}" if flavour else f"{product} {name}"
    return label


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """`*` stands for any text; the rest, also [ and ], for itself."""
    lines = [line.partition("#")[0].strip() for line in PATTERNS.read_text().splitlines()]
    return {line: re.compile(re.escape(line).replace(r"\*", ".*")) for line in lines if line}


def matching(label: str) -> list[str]:
    """The patterns that make this test slow."""
    name = without_compiler(label)
    return [pattern for pattern, compiled in patterns().items() if compiled.fullmatch(name)]

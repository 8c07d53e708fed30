#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Doxygen's filter: the comments in front of declarations become its own, with their text taken literally."""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^([ ]*)/\* (?!SPDX|---)(.*?)\*/$", re.M | re.S)
text = Path(sys.argv[1]).read_text()
text = re.sub(r"^/\* SPDX.*\n", "\n", text)
first = True


def literally(match: re.Match[str]) -> str:
    global first
    place, first = "@file\n" if first else "", False
    return f"{match[1]}/** {place}@verbatim {match[2].rstrip()} @endverbatim */"


sys.stdout.write(BLOCK.sub(literally, text))

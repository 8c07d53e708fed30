# SPDX-License-Identifier: MIT
"""A folder of the overlay, seen from outside: which units of the runtime it redirects, which names it defines anew
there, and the texts of the units after its substitutions."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import reader


class Refused(Exception):
    """Why sources do not fit."""


class Edit:
    """A line `FUNCTION: s/PATTERN/REPLACEMENT/` of UNIT.edits, for the definition of that function. FUNCTION may be
    several names with bars between: the function's in different versions. A question mark before it: there need not be
    such a text."""

    def __init__(self, unit: str, line: str) -> None:
        self.line, self.unit = line, unit
        function, substitution = line.split(": s", 1)
        self.optional, self.key = function.startswith("?"), function.lstrip("?")
        _, pattern, replacement, _ = re.split(r"(?<!\\)/", substitution)
        self.pattern = re.compile(pattern)
        self.replacement = re.sub(r"(?<!\\)&", r"\\g<0>", replacement).replace(r"\&", "&")

    def apply(self, text: str) -> tuple[str, int]:
        """The text after it, and how many lines it has changed: at most one place in each."""
        lines, places, there = text.split("\n"), 0, False
        for name in self.key.split("|"):
            for begin, end in reader.definitions(text, name):
                there = True
                for i in range(begin, end):
                    lines[i], n = self.pattern.subn(self.replacement, lines[i], count=1)
                    places += n
        if not there and not self.optional:
            raise Refused(f"rule edit: runtime/{self.unit}.c has no function {self.key.replace('|', ' or ')}")
        if places == 0 and not self.optional:
            raise Refused(f"rule edit: runtime/{self.unit}.c, {self.key}: there is no text for {self.line}")
        return "\n".join(lines), places


class Overlay:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self, name: str) -> list[str]:
        """The lines of a file, without comments; none if there is no such file."""
        file = self.folder / name
        text = file.read_text() if file.exists() else ""
        return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    @property
    def generation(self) -> int:
        return int(self.folder.name.removeprefix("ocaml"))

    @cached_property
    def plain(self) -> list[str]:
        """Units that are compiled after the prelude, and otherwise left as they are."""
        return [line.split()[0] for line in self.lines("units")]

    @cached_property
    def changed(self) -> list[str]:
        """Units with a file of the overlay that includes them."""
        files = sorted(self.folder.glob("*.c"))
        return [f.stem for f in files if f"#include <{f.stem}.c>" in f.read_text()]

    @property
    def units(self) -> list[str]:
        return sorted([*self.changed, *self.plain])

    def edits(self, unit: str) -> list[Edit]:
        return [Edit(unit, line) for line in self.lines(f"{unit}.edits")]

    @cached_property
    def everywhere(self) -> set[str]:
        """Macros of the runtime's headers that the prelude defines anew."""
        return set(re.findall(r"^#undef (\w+)", (self.folder / "prelude.h").read_text(), re.MULTILINE))

    def names(self, unit: str) -> set[str]:
        """Names that are defined anew where the unit is compiled."""
        file = self.folder / f"{unit}.c"
        before = file.read_text().split(f"#include <{unit}.c>")[0] if unit in self.changed else ""
        own = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", before, re.MULTILINE)
        return (self.everywhere if unit in self.units else set()) | {n for n in own if not n.startswith("_")}

    def edited(
        self, runtime: Path, unit: str, refused: list[Refused] | None = None
    ) -> tuple[str, dict[str, list[int]]]:
        """The unit's text after the substitutions, and for each function how many places each has changed. With a list
        for those that are refused, the others are made all the same; these count as -1."""
        text, places = (runtime / f"{unit}.c").read_text(errors="replace"), {}
        for edit in self.edits(unit):
            try:
                text, n = edit.apply(text)
            except Refused as fault:
                if refused is None:
                    raise
                refused.append(fault)
                n = -1
            places.setdefault(edit.key, []).append(n)
        return text, places

# SPDX-License-Identifier: MIT
"""A folder of the overlay, seen from outside: which units of the runtime it redirects, which names it defines anew
there, and the texts of the units after its substitutions. And the C sources of the runtime: which functions and macros
a text defines, and what it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

# --- C sources -------------------------------------------------------------------------------------------------------
#
# This knows the layout of the runtime's, not the language: the body of a function ends with a brace in the first
# column.


def bare(text: str, strings: bool = False) -> str:
    """Without comments and, unless `strings`, the contents of strings; lines stay lines."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if not found.startswith("/"):
            return found if strings else found[0] * 2
        return "\n" * found.count("\n")

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def functions(text: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each definition in a bare text. Macros are definitions. What is outside of any is named `?`."""
    macros = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:.*\\\n)*.*)$", re.MULTILINE)
    yield from macros.findall(text)
    rest = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    begin = 0
    for end in re.finditer(r"^\}.*$", rest, re.MULTILINE):
        part, begin = rest[begin : end.end()], end.end()
        opening = part.find("\n{")
        head = part if opening < 0 else part[:opening]
        names = re.findall(r"(\w+)[ \t\n]*\(", head.rsplit(";", 1)[-1] if opening >= 0 else head.split("{")[0])
        yield (names[-1] if names and names[-1] != "__attribute__" else "?"), part
    yield "?", rest[begin:]


def calls(text: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """(name, expression without blanks) of each use of one of these names with arguments."""
    if not names:
        return
    for match in re.finditer(r"\b(" + "|".join(sorted(names)) + r")[ \t\n\\]*\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield match.group(1), re.sub(r"[\s\\]+", "", text[match.start() : at])


def definitions(text: str, name: str) -> list[tuple[int, int]]:
    """The lines [from, to) of each definition of a function in a source text: there may be one for each
    configuration."""
    head = re.compile(rf"^([A-Za-z].*[ *])?{re.escape(name)}([ (]|$)")
    found, start, body = [], None, False
    for number, line in enumerate(text.split("\n")):
        if head.match(line):
            start = number
        if start is not None and not body:
            body = re.search(r"\{[ \t]*$", line) is not None
            if not body and re.search(r";[ \t]*$", line):
                start = None
        if start is not None and body and line.startswith("}"):
            found.append((start, number + 1))
            start, body = None, False
    return found


# --- the overlay -----------------------------------------------------------------------------------------------------


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
            for begin, end in definitions(text, name):
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
    """ocaml5-check adds to ocaml5, which is `below` it: the substitutions of that one come first, and the files of this
    one stand in front of its files of the same names, which they include."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        name, dash, _ = folder.name.partition("-")
        self.below = Overlay(folder.with_name(name)) if dash else None

    def lines(self, name: str) -> list[str]:
        """The lines of a file, without comments; none if there is no such file."""
        file = self.folder / name
        text = file.read_text() if file.exists() else ""
        return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    @property
    def generation(self) -> int:
        return int(self.folder.name.removeprefix("ocaml").split("-")[0])

    @property
    def folders(self) -> list[Path]:
        """From the top down."""
        return [self.folder, *(self.below.folders if self.below else [])]

    @property
    def files(self) -> list[Path]:
        """The C files that are compiled: of each name, the uppermost."""
        found = {file.name: file for folder in reversed(self.folders) for file in folder.glob("*.c")}
        return [found[name] for name in sorted(found)]

    @cached_property
    def plain(self) -> list[str]:
        """Units that are compiled after the prelude, and otherwise left as they are."""
        return [line.split()[0] for line in self.lines("units")]

    @cached_property
    def changed(self) -> list[str]:
        """Units with a file of the overlay that includes them."""
        wanted = (r"#include <{0}\.c>", r'#include "\.\./ocaml\d/{0}\.c"')
        files = sorted(self.folder.glob("*.c"))
        return [f.stem for f in files if any(re.search(w.format(f.stem), f.read_text()) for w in wanted)]

    @property
    def units(self) -> list[str]:
        return sorted([*self.changed, *self.plain])

    def edits(self, unit: str) -> list[Edit]:
        return [Edit(unit, line) for line in self.lines(f"{unit}.edits")]

    @cached_property
    def everywhere(self) -> set[str]:
        """Macros of the runtime's headers that the prelude defines anew."""
        if self.below:
            return set()
        return set(re.findall(r"^#undef (\w+)", (self.folder / "prelude.h").read_text(), re.MULTILINE))

    def names(self, unit: str) -> set[str]:
        """Names that are defined anew where the unit is compiled."""
        file = self.folder / f"{unit}.c"
        before = re.split(f"#include .*\\b{unit}\\.c", file.read_text())[0] if unit in self.changed else ""
        own = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", before, re.MULTILINE)
        return (self.everywhere if unit in self.units else set()) | {n for n in own if not n.startswith("_")}

    def edited(
        self, runtime: Path, unit: str, refused: list[Refused] | None = None
    ) -> tuple[str, dict[str, list[int]]]:
        """The unit's text after the substitutions, and for each function how many places each has changed. With a list
        for those that are refused, the others are made all the same; these count as -1."""
        text, places = (runtime / f"{unit}.c").read_text(errors="replace"), {}
        if self.below:
            text, _ = self.below.edited(runtime, unit)
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

# SPDX-License-Identifier: MIT
"""Reads C sources of OCaml's runtime: which functions and macros a text defines, and what it calls. It knows the layout
of the runtime's sources, not the language: the body of a function ends with a brace in the first column."""

from __future__ import annotations

import re
from collections.abc import Iterator


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

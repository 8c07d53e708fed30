# SPDX-License-Identifier: MIT
"""What a program that checks itself has said (runtime/overlay/ocaml5-check/trap_report.c), and what that comes to."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field

BEGIN = "outheap-check: "
END = re.compile(r"outheap-check: the end, after (\d+) collections")


@dataclass(frozen=True)
class Frame:
    function: str
    place: str  # FILE:LINE, or nothing
    object: str

    @property
    def is_runtime(self) -> bool:
        """Of OCaml's runtime, or of the C library: what the program's own code has called."""
        inline = ("Hd_val", "Tag_val", "Wosize_val", "Long_val", "mark", "major_collection_slice", "stw_", "compact_")
        return self.function.startswith(("caml_", "oh_", "__", *inline)) or self.object.startswith("libc.")


@dataclass
class Fault:
    """One report; the same fault may have been seen with several seeds."""

    what: str
    frames: list[Frame] = field(default_factory=list)
    value: str = ""  # what it was
    left: str = ""  # by which collection
    forced: list[Frame] = field(default_factory=list)  # from where that was asked for
    holders: list[str] = field(default_factory=list)
    advice: str = ""
    seeds: list[int] = field(default_factory=list)
    text: str = ""

    @property
    def line(self) -> Frame | None:
        """Where the program itself used it."""
        own = [frame for frame in self.frames if not frame.is_runtime]
        return (own or self.frames or [None])[0]

    @property
    def key(self) -> tuple[str, str]:
        """Of the same fault, whatever the seed: addresses differ."""
        where = self.line
        return re.sub(r": \(?(0x[0-9a-f]+|nil)\)?$", "", self.what), f"{where.function} {where.place}" if where else ""

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"what": self.key[0], "line": asdict(self.line) if self.line else None}


def _frame(text: str) -> Frame:
    match = re.fullmatch(r"(.*?)(?: at (\S+))?(?:  \[(.*)\])?", text.strip())
    function, place, where = match.groups() if match else (text.strip(), "", "")
    return Frame(function, "" if place in (None, "??:?", "??:0") else place, where or "")


def parse(text: str) -> tuple[list[Fault], int]:
    """The reports of a run, and how many collections were asked for; -1: it has not come to its end."""
    faults: list[Fault] = []
    collections, within_left = -1, False
    for line in text.splitlines():
        if end := END.match(line):
            collections = max(collections, 0) + int(end[1])
        elif line.startswith(BEGIN):
            faults.append(Fault(line.removeprefix(BEGIN)))
            within_left = False
        elif faults:
            fault, indent, words = faults[-1], len(line) - len(line.lstrip()), line.strip()
            if indent == 2:
                name, _, rest = words.partition(": ")
                within_left = words.startswith("left ")
                if words.startswith("it was: "):
                    fault.value = rest
                elif within_left:
                    fault.left = words
                elif words.startswith("held by "):
                    fault.holders.append(words.removeprefix("held by "))
                elif name == "advice":
                    fault.advice = rest
            elif words and within_left:
                fault.forced.append(_frame(words))
            elif words:
                fault.frames.append(_frame(words))
        if faults and not END.match(line):
            faults[-1].text += f"{line}\n"
    return faults, collections


def merge(known: dict[tuple[str, str], Fault], found: list[Fault], seed: int) -> None:
    """Adds the reports of a run: the same fault once."""
    for fault in found:
        first = known.setdefault(fault.key, fault)
        if seed not in first.seeds:
            first.seeds.append(seed)

# SPDX-License-Identifier: MIT
"""Every read of a block's header in OCaml's runtime.

The runtime may look in front of a pointer only where it knows that a block is there: the collector found it in its own
heap, the primitive made it, or its type says so. Each read is named by unit, function and expression, as in the text of
the unit after the substitutions of the overlay. It is right if the unit of the overlay defines the macro anew, or if
OVERLAY/headers names it with a reason. What reads a header is found, too: the macros and functions of the runtime's
headers that use one that does."""

from __future__ import annotations

from pathlib import Path

import reader
from overlay import Overlay, Refused

SEEDS = {"Hd_val", "Hp_val", "Hp_atomic_val", "Tag_val", "Hd_hp", "Hd_op", "Hd_bp", "Hp_op", "Hp_bp"}
REASONS = ("collector", "made", "typed", "guarded")  # the list says what they mean

Read = tuple[str, str, str]  # unit, function, expression


def readers(headers: list[Path]) -> set[str]:
    """The macros and functions of the runtime's headers that read a header of their argument."""
    known = set(SEEDS)
    definitions = [d for h in headers for d in reader.functions(reader.bare(h.read_text(errors="replace")))]
    while True:
        more = {name for name, text in definitions if name not in known and next(reader.calls(text, known), None)}
        more -= {"?"}
        if not more:
            return known
        known |= more


def reads(overlay: Overlay, sources: Path) -> set[Read]:
    runtime = sources / "runtime"
    headers = sorted((runtime / "caml").glob("*.h"))
    names = readers(headers)
    found = set()
    for file in [*sorted(runtime.glob("*.c")), *headers]:
        is_header = file.suffix == ".h"
        unit = file.name if is_header else file.stem
        if not is_header and unit in overlay.changed:
            text, _ = overlay.edited(runtime, unit, [])
        else:
            text = file.read_text(errors="replace")
        here = names if is_header else names - overlay.names(unit)
        for function, body in reader.functions(reader.bare(text)):
            if function in names and is_header:
                continue  # what it reads counts where it is used
            for name, expression in reader.calls(body, here):
                if function == name or expression == f"{name}(value)":  # a declaration
                    continue
                found.add((unit, function, expression))
    return found


def allowed(overlay: Overlay) -> dict[Read, str]:
    """The list: UNIT FUNCTION EXPRESSION REASON."""
    result = {}
    for line in overlay.lines("headers"):
        words = line.split("#")[0].split()
        if len(words) != 4 or words[3] not in REASONS:
            raise Refused(f"{overlay.folder.name}/headers: not UNIT FUNCTION EXPRESSION REASON: {line}")
        result[words[0], words[1], words[2]] = words[3]
    return result

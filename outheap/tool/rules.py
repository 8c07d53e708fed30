#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do these sources of OCaml's runtime keep the rules under which the overlay is right?

  rules.py check OVERLAY SOURCES --version V --digests FILE [--accept UNITS]
  rules.py record OVERLAY VERSION=SOURCES…     prints the file OVERLAY/rules for these versions, which were checked

`check` does what outheap-build does before it compiles: it prints the units that are none of those of a version that
was checked (FILE). Exit codes: 0, 3 (refused; says which rule and unit).

The overlay was checked against some versions. Their properties on which it depends are the lines of OVERLAY/rules, and
other sources may be used if they have, function by function, the properties of one of these versions:

  use     the names that the overlay defines anew in a unit: the expressions in which a function uses them, how often
  total   the same for all of the unit: how many uses of a name
  edit    how many places of a function the substitutions change
  memory  who in the runtime asks for memory of the heap, or gives it back
  text    the text of what the overlay replaces or relies on (OVERLAY/texts, and macros that it defines anew), without
          comments and blanks
  reads   every read of a block's header is changed or has a reason (OVERLAY/headers)"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter, defaultdict
from pathlib import Path

from overlay import Overlay, Refused, bare, calls, definitions, functions

MEMORY = {
    4: {"caml_alloc_for_heap", "caml_free_for_heap", "caml_page_table_add", "caml_page_table_remove"}
    | {"caml_page_table_initialize", "caml_page_table_lookup", "caml_stat_alloc_aligned_noexc", "caml_add_to_heap"},
    5: {"caml_mem_map", "caml_mem_unmap", "caml_mem_commit", "caml_mem_decommit"},
}
NONE = "-"

Key = tuple[str, str, str]  # rule, unit, function or name
Facts = dict[Key, str]


def signature(expressions: Counter[str]) -> str:
    return ";".join(f"{e}*{n}" for e, n in sorted(expressions.items())) or NONE


def uses(text: str, names: set[str]) -> dict[str, Counter[str]]:
    """For each function of a source text, the expressions in which it uses the names."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for function, body in functions(bare(text)):
        for name, expression in calls(body, names):
            if function != name and not expression.startswith(f"{name}(value)"):
                found[function][expression] += 1
    return found


def text_of(text: str, name: str) -> str:
    """All definitions of a function or macro, without comments and blanks."""
    lines = text.split("\n")
    parts = ["\n".join(lines[a:b]) for a, b in definitions(text, name)]
    parts = [bare(part, strings=True) for part in parts]
    if not parts:
        parts = [body for macro, body in functions(bare(text, strings=True)) if macro == name]
    return "".join("".join(parts).split())


def facts(overlay: Overlay, sources: Path, refused: list[Refused] | None = None) -> Facts:
    runtime, found = sources / "runtime", {}
    for unit in overlay.units:
        if not (runtime / f"{unit}.c").exists():
            raise Refused(f"rule use: there is no runtime/{unit}.c")
        text, places = overlay.edited(runtime, unit, refused)
        for function, counts in places.items():
            found["edit", unit, function] = ",".join(map(str, counts))
        totals: Counter[str] = Counter()
        for function, expressions in uses(text, overlay.names(unit)).items():
            found["use", unit, function] = signature(expressions)
            for expression, n in expressions.items():
                totals[expression.split("(")[0]] += n
        for name, n in totals.items():
            found["total", unit, name] = str(n)
    if overlay.below:
        return found
    for file in sorted(runtime.glob("*.c")):
        for function, expressions in uses(file.read_text(errors="replace"), MEMORY[overlay.generation]).items():
            found["memory", file.stem, function] = signature(expressions)
    headers = {f.name: f.read_text(errors="replace") for f in sorted((runtime / "caml").glob("*.h"))}
    for header, text in headers.items():
        for function, expressions in uses(text, overlay.everywhere).items():
            found["use", header, function] = signature(expressions)
    anew = set().union(*map(overlay.names, overlay.units))
    wanted = {(header, name) for header in headers for name in anew}
    wanted |= {(line.split()[0], line.split()[1]) for line in overlay.lines("texts")}
    for unit, name in sorted(wanted):
        file = runtime / f"{unit}.c"
        text = headers.get(unit) or (file.read_text(errors="replace") if file.exists() else "")
        if definition := text_of(text, name):
            found["text", unit, name] = hashlib.sha256(definition.encode()).hexdigest()[:16]
    return found


def recorded(overlay: Overlay) -> dict[Key, set[str]]:
    """RULE UNIT NAME PROPERTY VERSIONS: the properties of versions that were checked."""
    result: dict[Key, set[str]] = defaultdict(set)
    for line in overlay.lines("rules"):
        rule, unit, name, fact, _ = line.split()
        result[rule, unit, name].add(fact)
    return result


def meaning(key: Key, fact: str) -> str:
    rule, unit, name = key
    place = f"runtime/{'caml/' if unit.endswith('.h') else ''}{unit}{'' if unit.endswith('.h') else '.c'}"
    if rule == "text":
        return f"rule text: {place}: {name} is another text than any that was read"
    if rule == "edit":
        return f"rule edit: {place}, {name}: the substitutions change {fact} places"
    what = {"total": f"{fact} uses of {name}", "use": f"in {name}: {fact}", "memory": f"in {name}: {fact}"}[rule]
    return f"rule {rule}: {place}: {what.replace(';', ' ')}"


# --- reads of headers ------------------------------------------------------------------------------------------------
#
# The runtime may look in front of a pointer only where it knows that a block is there: the collector found it in its
# own heap, the primitive made it, or its type says so. Each read is named by unit, function and expression, as in the
# text of the unit after the substitutions of the overlay. It is right if the unit of the overlay defines the macro
# anew, or if OVERLAY/headers names it with a reason. What reads a header is found, too: the macros and functions of the
# runtime's headers that use one that does.

SEEDS = {"Hd_val", "Hp_val", "Hp_atomic_val", "Tag_val", "Hd_hp", "Hd_op", "Hd_bp", "Hp_op", "Hp_bp"}
REASONS = ("collector", "made", "typed", "guarded")  # the list says what they mean

Read = tuple[str, str, str]  # unit, function, expression


def readers(headers: list[Path]) -> set[str]:
    """The macros and functions of the runtime's headers that read a header of their argument."""
    known = set(SEEDS)
    definitions = [d for h in headers for d in functions(bare(h.read_text(errors="replace")))]
    while True:
        more = {name for name, text in definitions if name not in known and next(calls(text, known), None)}
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
        for function, body in functions(bare(text)):
            if function in names and is_header:
                continue  # what it reads counts where it is used
            for name, expression in calls(body, here):
                if function == name or expression == f"{name}(value)":  # a declaration
                    continue
                found.add((unit, function, expression))
    return found


def allowed_reads(overlay: Overlay) -> dict[Read, str]:
    """The list: UNIT FUNCTION EXPRESSION REASON."""
    result = {}
    for line in overlay.lines("headers"):
        words = line.split("#")[0].split()
        if len(words) != 4 or words[3] not in REASONS:
            raise Refused(f"{overlay.folder.name}/headers: not UNIT FUNCTION EXPRESSION REASON: {line}")
        result[words[0], words[1], words[2]] = words[3]
    return result


# --- verdicts --------------------------------------------------------------------------------------------------------


def faults(overlay: Overlay, sources: Path) -> list[str]:
    """Which rules these sources break."""
    refused: list[Refused] = []
    found, known = facts(overlay, sources, refused), recorded(overlay)
    result = [str(fault) for fault in refused]
    for key in sorted(found.keys() | known.keys()):
        fact, allowed = found.get(key, NONE), known.get(key, {NONE})
        if fact not in allowed and not (key[0] == "edit" and "-1" in fact):  # that was said
            expected = " or ".join(sorted(allowed)).replace(";", " ")
            more = "" if key[0] == "text" else f"; checked: {expected if allowed != {NONE} else 'none'}"
            result.append(meaning(key, "none" if fact == NONE else fact) + more)
    if overlay.generation >= 5 and not overlay.below:
        for unit, function, expression in sorted(reads(overlay, sources) - allowed_reads(overlay).keys()):
            result.append(f"rule reads: {unit}, {function}: nobody says why {expression} is right")
    return result


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:32]


def different(overlay: Overlay, sources: Path, version: str, digests: Path) -> tuple[bool, list[str]]:
    """Was this version checked? And the units that are none of it, or, if it was not, of any version."""
    lines = [line.split() for line in digests.read_text().splitlines()]
    was = any(line[0] == version for line in lines)
    known = {(unit, d) for v, unit, d in lines if v == version or not was}
    return was, [u for u in overlay.units if (u, digest(sources / f"runtime/{u}.c")) not in known]


class Rejected(Exception):
    """Sources are not for the overlay; what is to be said about it."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def differing_units(overlay: Overlay, sources: Path, version: str, digests: Path, accepted: str) -> list[str]:
    """The units that are none of a version that was checked. `accepted`: those that the user accepts, or `all`.
    Rejected: a rule is broken, or a unit of a checked version differs and is not accepted."""
    try:
        broken = faults(overlay, sources)
    except Refused as refused:
        broken = [str(refused)]
    if broken:
        rest = f"these sources of OCaml {version} break {len(broken)} rules of the overlay (tool/rules.py); "
        raise Rejected(*broken, rest + "docs/internals/porting.md says what to do about that")
    was, units = different(overlay, sources, version, digests)
    if was and accepted != "all" and set(units) - set(accepted.replace(",", " ").split()):
        raise Rejected(
            f"not the sources of OCaml {version} that were checked: they keep the rules, but differ in",
            " ".join(units),
            f"look at the differences, and accept them with: --accept '{' '.join(units)}'",
        )
    return units


def write_edited(overlay: Overlay, sources: Path, folder: Path) -> None:
    """Writes the texts of the units after the substitutions, where there are any."""
    layers = [overlay, *([overlay.below] if overlay.below else [])]
    for unit in {unit for layer in layers for unit in layer.changed}:
        if any(layer.edits(unit) for layer in layers):
            text, _ = overlay.edited(sources / "runtime", unit)
            (folder / f"{unit}.c").write_text(f'#line 1 "{sources}/runtime/{unit}.c"\n{text}')


def record_digests(overlay: Overlay, sources: Path, version: str, digests: Path) -> None:
    """These sources were checked."""
    lines = set(digests.read_text().splitlines()) if digests.exists() else set()
    lines -= {line for line in lines if line.startswith(tuple(f"{version} {unit} " for unit in overlay.units))}
    lines |= {f"{version} {unit} {digest(sources / f'runtime/{unit}.c')}" for unit in overlay.units}
    digests.write_text("\n".join(sorted(lines)) + "\n")


def check(options: argparse.Namespace) -> int:
    overlay, sources = Overlay(options.overlay), Path(options.sources[0])
    try:
        units = differing_units(overlay, sources, options.version, options.digests, options.accept)
    except Rejected as rejected:
        for line in rejected.lines:
            print(f"outheap-build: {line}", file=sys.stderr)
        return 3
    print(*units, sep="\n" if units else "")
    return 0


def record(options: argparse.Namespace) -> int:
    overlay = Overlay(options.overlay)
    by_version = dict(pair.split("=", 1) for pair in options.sources)
    found = {version: facts(overlay, Path(folder)) for version, folder in by_version.items()}
    print("# What the overlay depends on in the versions that were checked: RULE UNIT NAME PROPERTY VERSIONS.")
    print("# Written by `outheap/tool/rules.py record`, which says what the rules are.")
    for key in sorted(set().union(*found.values())):
        versions: dict[str, list[str]] = defaultdict(list)
        for version in found:
            versions[found[version].get(key, NONE)].append(version)
        for fact in sorted(versions):
            print(*key, fact, ",".join(versions[fact]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "record"))
    parser.add_argument("overlay", type=Path)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--version", default="")
    parser.add_argument("--digests", type=Path)
    parser.add_argument("--accept", default="")
    options = parser.parse_args()
    return check(options) if options.command == "check" else record(options)


if __name__ == "__main__":
    sys.exit(main())

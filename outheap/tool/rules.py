#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do these sources of OCaml's runtime keep the rules under which the overlay is right?

  rules.py check OVERLAY SOURCES --version V --digests FILE [--accept UNITS] [--edited FOLDER]
  rules.py record OVERLAY VERSION=SOURCES…     prints the file OVERLAY/rules for these versions, which were checked

`check` is a step of outheap-build. It writes the texts of the units after the substitutions to FOLDER, and prints the
units that are none of those of a version that was checked (FILE). Exit codes: 0, 3 (refused; says which rule and unit).

The overlay was checked against some versions. Their properties on which it depends are the lines of OVERLAY/rules, and
other sources may be used if they have, function by function, the properties of one of these versions:

  use     the names that the overlay defines anew in a unit: the expressions in which a function uses them, how often
  total   the same for all of the unit: how many uses of a name
  edit    how many places of a function the substitutions change
  memory  who in the runtime asks for memory of the heap, or gives it back
  text    the text of what the overlay replaces or relies on (OVERLAY/texts, and macros that it defines anew), without
          comments and blanks
  reads   every read of a block's header is changed or has a reason (OVERLAY/headers: reads.py)"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter, defaultdict
from pathlib import Path

import reader
import reads
from overlay import Overlay, Refused

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
    for function, body in reader.functions(reader.bare(text)):
        for name, expression in reader.calls(body, names):
            if function != name and not expression.startswith(f"{name}(value)"):
                found[function][expression] += 1
    return found


def text_of(text: str, name: str) -> str:
    """All definitions of a function or macro, without comments and blanks."""
    lines = text.split("\n")
    parts = ["\n".join(lines[a:b]) for a, b in reader.definitions(text, name)]
    parts = [reader.bare(part, strings=True) for part in parts]
    if not parts:
        parts = [body for macro, body in reader.functions(reader.bare(text, strings=True)) if macro == name]
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
    if overlay.generation >= 5:
        for unit, function, expression in sorted(reads.reads(overlay, sources) - reads.allowed(overlay).keys()):
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


def check(options: argparse.Namespace) -> int:
    overlay, sources = Overlay(options.overlay), options.sources[0]

    def say(words: str) -> None:
        print(f"outheap-build: {words}", file=sys.stderr)

    try:
        broken = faults(overlay, Path(sources))
    except Refused as refused:
        broken = [str(refused)]
    for fault in broken:
        say(fault)
    if broken:
        say(
            f"these sources of OCaml {options.version} break {len(broken)} rules of the overlay (tool/rules.py); "
            "docs/porting.md says what to do about that"
        )
        return 3
    was, units = different(overlay, Path(sources), options.version, options.digests)
    print(*units, sep="\n" if units else "")
    missing = set(units) - set(options.accept.replace(",", " ").split())
    if was and missing and options.accept != "all":
        say(f"not the sources of OCaml {options.version} that were checked: they keep the rules, but differ in")
        say(" ".join(units))
        say(f"look at the differences, and accept them with: --accept '{' '.join(units)}'")
        return 3
    if options.edited:
        for unit in overlay.changed:
            if overlay.edits(unit):
                text, _ = overlay.edited(Path(sources) / "runtime", unit)
                (options.edited / f"{unit}.c").write_text(f'#line 1 "{sources}/runtime/{unit}.c"\n{text}')
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
    parser.add_argument("--edited", type=Path)
    options = parser.parse_args()
    return check(options) if options.command == "check" else record(options)


if __name__ == "__main__":
    sys.exit(main())

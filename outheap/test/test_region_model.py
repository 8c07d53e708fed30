# SPDX-License-Identifier: MIT
"""The argument of docs/regions.md, "Why nothing is missed", as a model of which every state is visited.

One region R; an old block A; a block Y that is allocated young and promoted later; two registers (roots), a weak
pointer, and a handle of R. The program loads, stores, allocates, reads through the handle and the weak pointer, and
drops what it has, in any order, between any two steps of the collector, which marks a snapshot incrementally. Never may
R end while a pointer to it can be reached. Each rule of the argument is then left out in turn: the model must find a
program that loses the region. That R can end at all is checked as well."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.outheap

WHITE, GREY, BLACK = "white", "grey", "black"
ABSENT, YOUNG, OLD = "absent", "young", "old"


class State(NamedTuple):
    registers: tuple[str, str] = ("A", "")
    a: str = ""  # A's field
    y: str = ""  # Y's field
    generation: str = ABSENT  # Y's
    color_a: str = WHITE
    color_y: str = WHITE
    weak: str = ""
    marking: bool = False
    noted: bool = True  # R is made with its note set
    handle: bool = True
    alive: bool = True
    lost: bool = False  # a block that can be reached was freed


RULES = {
    "roots": "what registers hold when marking begins is noted",
    "blocks": "what the marker finds in a block is noted",
    "barrier": "a pointer that is overwritten while marking runs is noted",
    "get": "reading through the handle notes",
    "weak read": "reading a weak pointer while marking runs notes",
    "weak clean": "a weak pointer that leads to R is noted when weak pointers are cleaned",
    "minor": "there is no young block when marking begins (otherwise blocks are lost, too)",
    "handle": "a region with a handle does not end",
}


def field(s: State, block: str) -> str:
    return s.a if block == "A" else s.y


def reachable(s: State) -> set[str]:
    found, pending = set(), [r for r in s.registers if r]
    while pending:
        block = pending.pop()
        if block not in found:
            found.add(block)
            if block != "R" and field(s, block):
                pending.append(field(s, block))
    return found


def darkened(s: State, value: str, rules: frozenset[str], rule: str) -> State:
    if value == "R":
        return s._replace(noted=True) if rule in rules else s
    if value == "A" and s.color_a == WHITE:
        return s._replace(color_a=GREY)
    if value == "Y" and s.generation == OLD and s.color_y == WHITE:
        return s._replace(color_y=GREY)
    return s


def with_register(s: State, i: int, value: str) -> State:
    return s._replace(registers=(value, s.registers[1]) if i == 0 else (s.registers[0], value))


def program(s: State, rules: frozenset[str]) -> Iterator[tuple[str, State]]:
    for i in (0, 1):
        mine, other = s.registers[i], s.registers[1 - i]
        if mine:
            yield f"drop register {i}", with_register(s, i, "")
        if other and other != mine:
            yield f"copy to register {i}", with_register(s, i, other)
        if other in ("A", "Y") and field(s, other) != mine:
            yield f"load register {i} from {other}", with_register(s, i, field(s, other))
            t = s  # a young block has no barrier
            if s.marking and (other == "A" or s.generation == OLD):
                t = darkened(s, field(s, other), rules, "barrier")
            yield f"store register {i} to {other}", t._replace(**{other.lower(): mine})
        if s.generation == ABSENT:
            yield f"allocate Y in register {i}", with_register(s, i, "Y")._replace(generation=YOUNG, y=other)
        if s.handle and s.alive and mine != "R":
            t = s._replace(noted=True) if "get" in rules else s
            yield f"get to register {i}", with_register(t, i, "R")
        if s.weak and s.weak != mine:
            t = darkened(s, s.weak, rules, "weak read") if s.marking else s
            yield f"read weak to register {i}", with_register(t, i, s.weak)
        if mine in ("A", "R") and s.weak != mine:
            yield f"weak to register {i}", s._replace(weak=mine)
    if s.handle:
        yield "drop the handle", s._replace(handle=False)


def promoted(s: State, rules: frozenset[str]) -> State:
    """After a minor collection: a young block that can be reached is old, and black while marking runs."""
    if s.generation != YOUNG:
        return s
    if "Y" in reachable(s) or s.a == "Y":
        return s._replace(generation=OLD, color_y=BLACK if s.marking else WHITE)
    return s._replace(generation=ABSENT, y="")


def collector(s: State, rules: frozenset[str]) -> Iterator[tuple[str, State]]:
    if s.generation == YOUNG:
        yield "minor collection", promoted(s, rules)
    if not s.marking:
        t = (promoted(s, rules) if "minor" in rules else s)._replace(marking=True)
        for r in t.registers:
            t = darkened(t, r, rules, "roots")
        yield "begin to mark", t
        return
    for block, color in (("A", s.color_a), ("Y", s.color_y)):
        if color == GREY:
            t = s._replace(**{f"color_{block.lower()}": BLACK})
            yield f"mark {block}", darkened(t, field(s, block), rules, "blocks")
    if GREY not in (s.color_a, s.color_y):
        yield "end of cycle", ended(promoted(s, rules), rules)


def ended(s: State, rules: frozenset[str]) -> State:
    """All domains are stopped: weak pointers are cleaned, white blocks are freed, the region is judged."""
    if s.weak == "R" and "weak clean" in rules:
        s = s._replace(noted=True)
    if s.weak == "A" and s.color_a == WHITE:
        s = s._replace(weak="")
    if s.color_a == WHITE:
        s = s._replace(a="", lost=s.lost or "A" in reachable(s))
    if s.generation == OLD and s.color_y == WHITE:
        s = s._replace(generation=ABSENT, y="", lost=s.lost or "Y" in reachable(s))
    alive = s.alive and (s.noted or ("handle" in rules and s.handle))
    return s._replace(color_a=WHITE, color_y=WHITE, marking=False, noted=False, alive=alive)


def find(wanted: Callable[[State], bool], rules: frozenset[str]) -> list[str] | None:
    """The shortest way to such a state; None: there is none."""
    first = State()
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    queue = deque([first])
    while queue:
        s = queue.popleft()
        if wanted(s):
            steps = []
            while came := came_from[s]:
                s, step = came
                steps.append(step)
            return steps[::-1]
        for step, t in [*program(s, rules), *collector(s, rules)]:
            if t not in came_from:
                came_from[t] = (s, step)
                queue.append(t)
    return None


def is_lost(s: State) -> bool:
    return s.lost or (not s.alive and ("R" in reachable(s) or s.weak == "R" or s.handle))


def test_no_pointer_leads_to_a_region_that_has_ended():
    assert find(is_lost, frozenset(RULES)) is None


def test_a_region_that_is_not_used_ends():
    steps = find(lambda s: not s.alive, frozenset(RULES))
    assert steps is not None and steps.count("end of cycle") == 2  # it was made with its note set


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_needed(rule):
    steps = find(is_lost, frozenset(RULES) - {rule})
    assert steps is not None, f"nothing is lost without this rule: {RULES[rule]}"

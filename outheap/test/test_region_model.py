# SPDX-License-Identifier: MIT
"""The argument of docs/internals/proofs.md, "A region that is in use does not end", as a model of which every state is
visited.

One region R; an old block A; a block Y that is allocated young and promoted later; two registers (roots), a weak
pointer, and a handle of R. The program loads, stores, allocates, reads through the handle and the weak pointer, and
drops what it has, in any order, between any two steps of the collector, which marks a snapshot incrementally. Never may
R end while a pointer to it can be reached. Each rule of the argument is then left out in turn: the model must find a
program that loses the region. That R can end at all is checked as well.

All of it is done for R read-only, and tracked. Then the program also stores to it, what R refers to must not be freed
while it can be reached through R, and no cycle may end with a region that refers to what was freed: compaction and
verification look at all of its words.

And all of that is done for OCaml up to 5.4, where marking begins with the cycle, and for OCaml 5.5, where a cycle
begins by sweeping alone: blocks are born white then, nothing is darkened, R is made, got and written to, and only
later, after a minor collection, marking begins."""

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
    r: str = ""  # R's field, if it is tracked
    tracked: bool = False
    generation: str = ABSENT  # Y's
    color_a: str = WHITE
    color_y: str = WHITE
    weak: str = ""
    late: bool = True  # marking begins later than the cycle
    marking: bool = False
    reached: bool = True  # the reach bit of R, which is made with it set
    fresh: bool = True  # R was made in this cycle
    kept: bool = False  # R had a handle when the last cycle ended
    followed: bool = True  # what R refers to was darkened since marking began, or will be
    waits: bool = False  # will be: the marker comes to R's words later
    handle: bool = True
    alive: bool = True
    lost: bool = False  # a block that can be reached was freed


RULES = {
    "roots": "what registers hold when marking begins is reached",
    "blocks": "what the marker finds in a block is reached",
    "barrier": "what a pointer that is overwritten while marking runs leads to is reached",
    "get": "reading through the handle sets the reach bit",
    "weak read": "reading a weak pointer while marking runs sets the reach bit",
    "weak clean": "R is reached if a weak pointer leads to it when weak pointers are cleaned",
    "minor": "there is no young block when marking begins (otherwise blocks are lost, too)",
    "handle": "a region with a handle does not end",
}
TRACKED_RULES = {
    "follow": "what a tracked region refers to is darkened when marking first reaches the region",
    "slot barrier": "what a pointer in a tracked region that is overwritten while marking runs leads to is darkened",
    "waits": "a cycle does not end while a tracked region waits for the marker to come to its words",
    "root": "a tracked region with a handle is a root",
    "remembered": "a minor collection finds what a tracked region refers to",
    "weak unreached": "weak pointers to a tracked region that was not reached are cleared",
    "unreached bit": "a reach bit that is older than marking does not keep a tracked region that was not reached",
    "fresh": "a tracked region that was made since the cycle began is a root",
}
ONLY_LATE = {"unreached bit", "fresh"}  # where marking begins with the cycle, nothing is between the two
NOT_FOR_TRACKED = {"weak clean"}  # a tracked region that was not reached loses its weak pointers


def field(s: State, block: str) -> str:
    return {"A": s.a, "Y": s.y, "R": s.r}[block]


def reachable(s: State) -> set[str]:
    found, pending = set(), [r for r in s.registers if r]
    if s.handle and s.alive:
        pending.append("R")
    while pending:
        block = pending.pop()
        if block not in found:
            found.add(block)
            if field(s, block):
                pending.append(field(s, block))
    return found


def darkened(s: State, value: str, rules: frozenset[str], rule: str) -> State:
    if value == "R":
        return follow(s._replace(reached=True), rules) if rule in rules else s
    if value == "A" and s.color_a == WHITE:
        return s._replace(color_a=GREY)
    if value == "Y" and s.generation == OLD and s.color_y == WHITE:
        return s._replace(color_y=GREY)
    return s


def follow(s: State, rules: frozenset[str]) -> State:
    """R is reached for the first time since marking began."""
    if s.followed or not s.marking or "follow" not in rules:
        return s
    return s._replace(followed=True, waits=True)


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
        if other == "R" and s.tracked:
            if s.r:
                yield f"load register {i} from R", with_register(s, i, s.r)
            t = darkened(s, s.r, rules, "barrier") if s.marking and "slot barrier" in rules else s
            yield "clear R", t._replace(r="")
            if mine != "R":
                yield f"store register {i} to R", t._replace(r=mine)
        if s.generation == ABSENT:
            yield f"allocate Y in register {i}", with_register(s, i, "Y")._replace(generation=YOUNG, y=other)
        if s.handle and s.alive and mine != "R":
            t = darkened(s, "R", rules, "get")
            yield f"get to register {i}", with_register(t, i, "R")
        if s.weak and s.weak != mine:
            t = darkened(s, s.weak, rules, "weak read") if s.marking else s
            yield f"read weak to register {i}", with_register(t, i, s.weak)
        if mine in ("A", "R") and s.weak != mine:
            yield f"weak to register {i}", s._replace(weak=mine)
    if s.handle:
        yield "drop the handle", s._replace(handle=False)
    elif s.kept:  # the owner may say so when it likes (outheap_marker_keep)
        yield "keep R no more", s._replace(kept=False)


def promoted(s: State, rules: frozenset[str]) -> State:
    """After a minor collection: a young block that can be reached is old, and black while marking runs."""
    if s.generation != YOUNG:
        return s
    if s.r == "Y" and "remembered" not in rules:
        s = s._replace(r="", lost=s.lost or "R" in reachable(s))
    if "Y" in reachable(s) or "Y" in (s.a, s.r):
        return s._replace(generation=OLD, color_y=BLACK if s.marking else WHITE)
    return s._replace(generation=ABSENT, y="")


def collector(s: State, rules: frozenset[str]) -> Iterator[tuple[str, State]]:
    if s.generation == YOUNG:
        yield "minor collection", promoted(s, rules)
    if not s.marking:
        yield "begin to mark", begun(s, rules)
        return
    for block, color in (("A", s.color_a), ("Y", s.color_y)):
        if color == GREY:
            t = s._replace(**{f"color_{block.lower()}": BLACK})
            yield f"mark {block}", darkened(t, field(s, block), rules, "blocks")
    if s.waits:
        yield "mark R's words", darkened(s._replace(waits=False), s.r, rules, "blocks")
    if GREY not in (s.color_a, s.color_y) and not (s.waits and "waits" in rules):
        t = ended(promoted(s, rules), rules)
        yield "end of cycle", t if s.late else begun(t, rules)


def begun(s: State, rules: frozenset[str]) -> State:
    """All domains are stopped: a minor collection, then roots are darkened."""
    s = (promoted(s, rules) if "minor" in rules else s)._replace(marking=True, followed=not s.tracked)
    for r in s.registers:
        s = darkened(s, r, rules, "roots")
    if (s.kept and "root" in rules) or (s.fresh and "fresh" in rules):
        s = follow(s, rules)
    return s


def ended(s: State, rules: frozenset[str]) -> State:
    """All domains are stopped: weak pointers are cleaned, white blocks are freed, and the region lives on or ends."""
    if s.weak == "R" and not s.followed and "weak unreached" in rules:
        s = s._replace(weak="")
    if s.weak == "R" and "weak clean" in rules:
        s = s._replace(reached=True)
    if s.weak == "A" and s.color_a == WHITE:
        s = s._replace(weak="")
    if s.color_a == WHITE:
        s = s._replace(a="", lost=s.lost or "A" in reachable(s))
    if s.generation == OLD and s.color_y == WHITE:
        s = s._replace(generation=ABSENT, y="", lost=s.lost or "Y" in reachable(s))
    reached = s.reached and (s.followed or "unreached bit" not in rules)
    alive = s.alive and (reached or ("handle" in rules and s.handle))
    if s.tracked and alive and not s.followed and s.r in ("A", "Y"):
        s = s._replace(lost=True)  # it may have been freed
    s = s._replace(color_a=WHITE, color_y=WHITE, marking=False, reached=False, alive=alive, r=s.r if alive else "")
    return s._replace(waits=False, fresh=False, kept=s.handle)


def find(wanted: Callable[[State], bool], rules: frozenset[str], first: State) -> list[str] | None:
    """The shortest way to such a state; None: there is none."""
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


FIRST = {
    "read-only": State(),
    "read-only-to-5.4": State(late=False),
    "tracked": State(tracked=True),
    "tracked-to-5.4": State(tracked=True, late=False),
}
ALL = {kind: frozenset(RULES) | (frozenset(TRACKED_RULES) if s.tracked else set()) for kind, s in FIRST.items()}


def needed(kind: str) -> list[str]:
    """The rules without which something must be lost."""
    without = (NOT_FOR_TRACKED if FIRST[kind].tracked else set()) | (set() if FIRST[kind].late else ONLY_LATE)
    return sorted(ALL[kind] - without)


@pytest.mark.parametrize("kind", FIRST)
def test_no_pointer_leads_to_what_has_ended(kind):
    assert find(is_lost, ALL[kind], FIRST[kind]) is None


@pytest.mark.parametrize("kind", FIRST)
def test_a_region_that_is_not_used_ends(kind):
    steps = find(lambda s: not s.alive, ALL[kind], FIRST[kind])
    assert steps is not None and steps.count("end of cycle") == 2  # it was made with its reach bit set


@pytest.mark.parametrize("late", [True, False])
def test_a_ring_through_the_heap_and_a_weak_pointer_do_not_keep_a_tracked_region(late):
    first = State(registers=("", ""), a="R", r="A", weak="R", tracked=True, handle=False, late=late)
    steps = find(lambda s: not s.alive, ALL["tracked"], first)
    assert steps is not None and steps.count("end of cycle") == 2


@pytest.mark.parametrize(("kind", "rule"), [(kind, rule) for kind in FIRST for rule in needed(kind)])
def test_every_rule_is_needed(kind, rule):
    steps = find(is_lost, ALL[kind] - {rule}, FIRST[kind])
    assert steps is not None, f"nothing is lost without this rule: {(RULES | TRACKED_RULES)[rule]}"

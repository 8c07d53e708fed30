# SPDX-License-Identifier: MIT
"""Every state of one region, an old block and a young one, with the code that the runtime runs
(outheap/runtime/core/region.c, pointer.c, api.c): never may a region end, or lose what it refers to, while a pointer
leads there. docs/internals/proofs.md, "A region that is in use does not end", has the argument.

One region R; an old block A; a block Y that is allocated young and promoted later; two registers (roots), a weak
pointer, and a handle of R. The program loads, stores, allocates, reads through the handle and the weak pointer, and
drops what it has, in any order, between any two steps of the collector, which marks a snapshot incrementally. Heap,
program and collector are a model here; all that concerns R is done by the real code, one step at a time
(model/region_step.c).

R is read-only, or tracked. Marking begins with the cycle, as up to OCaml 5.4, or later, as in 5.5, where a cycle begins
by sweeping alone: blocks are born white then, nothing is darkened, R is made, got and written to, and only after a
minor collection marking begins.

Then each thing that the code's callers must do is left out in turn, and the code is broken in one place at a time:
each time some program must lose something, or a region that nobody uses must stay."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from testing import models

pytestmark = pytest.mark.outheap

PROGRAM = "region_step"
CHANGED = ("pointer.c", "api.c")  # by breakages, beside region.c, which the program includes

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
    late: bool = True  # marking begins later than the cycle
    marking: bool = False
    handle: bool = True
    alive: bool = True
    fault: str = ""
    # Of the code: struct oh_track, and R's reach bit, which is set when R is made.
    tracked: bool = False
    met: bool = True
    reached: bool = True
    kept: bool = False
    fresh: bool = True
    waits: bool = False
    listed: bool = False  # a marker can find that R waits
    slot: bool = False  # the bit of R's field
    r: str = ""  # R's field, if it is tracked


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
    "slot barrier": "what a pointer in a tracked region that is overwritten while marking runs leads to is darkened",
    "waits": "a cycle does not end while a tracked region waits for the marker to come to its words",
    "root": "tracked regions that are roots are reached when marking begins",
    "remembered": "a minor collection finds what a tracked region refers to",
    "weak unreached": "weak pointers to a tracked region that was not reached are cleared",
}
NOT_FOR_TRACKED = {"weak clean"}  # a tracked region that was not reached loses its weak pointers

# A file of the core, a text of it and what takes its place; the states that must notice.
BREAKAGES = {
    "reach-bit-is-not-set": (
        "region.h", "if ((b & by) == 0) oh_store_relaxed(bits,", "if (b == 8) oh_store_relaxed(bits,", "read-only",
    ),
    "marker-passes-over-regions": (
        "pointer.c", "if ((address & 1) == 0) oh_region_reach(address, by);", "(void)by;", "read-only",
    ),
    "meet-does-nothing": (
        "api.c", "if (oh_kind_is_region(oh_table_kind((uintptr_t)pointer))) oh", "if (pointer == NULL) oh",
        "read-only-to-5.4",
    ),
    "clear-does-nothing": (
        "api.c", "if ((oh_load_relaxed(bits) & OH_REGION_CELLS) == 0) oh", "if (*bits == 8) oh", "read-only",
    ),
    "owners-are-not-called": (
        "region.c", "o != NULL; o = o->next) o->cycle();", "o == NULL;) o->cycle();", "read-only",
    ),
    "what-is-met-is-not-followed": ("region.h", "  oh_track_reach(address);", "", "tracked"),
    "what-is-met-does-not-wait": ("region.c", "    add_to_waiting(t);\n    return;", "    return;", "tracked"),
    "words-are-not-darkened": ("region.c", "if (v != 0) darken_later(&ahead, v);", "(void)v;", "tracked"),
    "stores-are-not-noted": ("region.c", "  set(t->slots, i); /*", "  /*", "tracked"),
    "groups-are-not-noted": ("region.c", "if (!is_set(t->groups, i / BITS)) set", "if (i == 0) set", "tracked"),
    "young-values-are-forgotten": (
        "region.c", "return !oh_kind_is_foreign(k) && k != OH_KIND_VALUES", "return k == OH_KIND_MAJOR", "tracked",
    ),
    "regions-stay-reached": ("region.c", "oh_store_relaxed(&t->reached, false);", "(void)0;", "tracked"),
    "marking-does-not-begin": (
        "region.c", "void oh_region_mark(void) { oh_track_cycle(); }", "void oh_region_mark(void) {}", "tracked-to-5.4",
    ),
    "handles-are-no-roots": ("region.c", "(oh_load_relaxed(&t->kept) ||", "(", "tracked-to-5.4"),
    "new-regions-are-no-roots": ("region.c", "|| oh_load_relaxed(&t->fresh))", ")", "tracked"),
    "regions-stay-new": ("region.c", "oh_store_relaxed(&t->fresh, false);", "(void)0;", "tracked"),
    "older-reach-bits-count": ("api.c", "if (oh_track_is_unreached(begin)) return 0;", "", "tracked"),
    "unreached-is-not-told": (
        "region.c", "return t != NULL && !oh_load_relaxed(&t->reached);", "return false;", "tracked",
    ),
}  # fmt: skip


# --- the code ---


class Code:
    """Steps of the code, which says the same each time that it is asked."""

    def __init__(self, name: str = "sound") -> None:
        breakage = models.Breakage(*BREAKAGES[name][:3]) if name in BREAKAGES else None
        folder = models.build(PROGRAM, CHANGED, name, breakage)
        self.program = subprocess.Popen(
            [folder / PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.known: dict[str, list[int]] = {}

    def close(self) -> None:
        self.program.communicate()

    def ask(self, line: str) -> list[int]:
        if line not in self.known:
            assert self.program.stdin and self.program.stdout
            self.program.stdin.write(line)
            self.program.stdin.flush()
            self.known[line] = [int(word) for word in self.program.stdout.readline().split()]
            assert self.known[line], f"it has ended at {line}"
        return self.known[line]

    def step(self, s: State, name: str, argument: int = 0) -> tuple[State, int]:
        """The state after a step, and its result. The colours of what it darkens are changed, too."""
        before = (s.tracked, s.met, s.reached, s.kept, s.fresh, s.waits, s.listed, s.slot, word(s, s.r))
        line = " ".join([name, *(str(int(x)) for x in (argument, *before))]) + "\n"
        _, bits, reached, kept, fresh, waits, listed, slot, _, darkened, asked, result = self.ask(line)
        flags = (bits, reached, kept, fresh, waits, listed, slot)
        s = s._replace(**dict(zip(FLAGS, map(bool, flags), strict=True)))
        if asked and not s.marking:
            s = s._replace(fault="a region waits before marking has begun")
        for block, number in (("A", WORD["A"]), ("Y", WORD["Y"])):
            if darkened >> number & 1:
                s = grey(s, block)
        return s, result


FLAGS = ("met", "reached", "kept", "fresh", "waits", "listed", "slot")
WORD = {"": 0, "A": 1, "Y": 2, "young Y": 3, "R": 4}  # as region_step.c numbers them


def word(s: State, block: str) -> int:
    return WORD["young Y" if block == "Y" and s.generation == YOUNG else block]


# --- the model ---


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


def grey(s: State, block: str) -> State:
    if block == "A" and s.color_a == WHITE:
        return s._replace(color_a=GREY)
    if block == "Y" and s.generation == OLD and s.color_y == WHITE:
        return s._replace(color_y=GREY)
    return s


def with_register(s: State, i: int, value: str) -> State:
    return s._replace(registers=(value, s.registers[1]) if i == 0 else (s.registers[0], value))


class World:
    """What may happen, with this code and these rules."""

    def __init__(self, code: Code, rules: frozenset[str]) -> None:
        self.code, self.rules = code, rules

    def darkened(self, s: State, value: str, rule: str, root: int = 1) -> State:
        """The marker, or the deletion barrier, finds this pointer."""
        if value == "R":
            return self.code.step(s, "f", root)[0] if rule in self.rules else s
        return grey(s, value) if value else s

    def stored(self, s: State, value: str) -> State:
        """To R."""
        before = self.darkened(s, s.r, "barrier") if s.marking and "slot barrier" in self.rules else s
        return self.code.step(before, "s", word(s, value))[0]._replace(r=value)

    def program(self, s: State) -> Iterator[tuple[str, State]]:
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
                    t = self.darkened(s, field(s, other), "barrier")
                yield f"store register {i} to {other}", t._replace(**{other.lower(): mine})
            if other == "R" and s.tracked:
                if s.r:
                    yield f"load register {i} from R", with_register(s, i, s.r)
                yield "clear R", self.stored(s, "")
                if mine != "R":
                    yield f"store register {i} to R", self.stored(s, mine)
            if s.generation == ABSENT:
                yield f"allocate Y in register {i}", with_register(s, i, "Y")._replace(generation=YOUNG, y=other)
            if s.handle and s.alive and mine != "R":
                t = self.code.step(s, "g")[0] if "get" in self.rules else s
                yield f"get to register {i}", with_register(t, i, "R")
            if s.weak and s.weak != mine:
                t = self.darkened(s, s.weak, "weak read") if s.marking else s
                yield f"read weak to register {i}", with_register(t, i, s.weak)
            if mine in ("A", "R") and s.weak != mine:
                yield f"weak to register {i}", s._replace(weak=mine)
        if s.handle:
            yield "drop the handle", s._replace(handle=False)
        elif s.kept:  # the owner may say so when it likes (outheap_marker_keep)
            yield "keep R no more", self.code.step(s, "k", 0)[0]

    def promoted(self, s: State) -> State:
        """After a minor collection: a young block that can be reached is old, and black while marking runs."""
        if s.generation != YOUNG:
            return s
        if s.r == "Y" and "remembered" not in self.rules:
            s = s._replace(r="", fault="a word of a region is stale" if "R" in reachable(s) else s.fault)
        if "Y" in reachable(s) or "Y" in (s.a, s.r):
            return s._replace(generation=OLD, color_y=BLACK if s.marking else WHITE)
        return s._replace(generation=ABSENT, y="")

    def collector(self, s: State) -> Iterator[tuple[str, State]]:
        if s.generation == YOUNG:
            yield "minor collection", self.promoted(s)
        if not s.marking:
            yield "begin to mark", self.begun(s)
            return
        for block, color in (("A", s.color_a), ("Y", s.color_y)):
            if color == GREY:
                t = s._replace(**{f"color_{block.lower()}": BLACK})
                yield f"mark {block}", self.darkened(t, field(s, block), "blocks", root=0)
        if s.listed:
            yield "mark R's words", self.code.step(s, "w")[0]
        if GREY not in (s.color_a, s.color_y) and not (s.listed and "waits" in self.rules):
            t = self.ended(self.promoted(s))
            yield "end of cycle", t if s.late else self.begun(t)

    def begun(self, s: State) -> State:
        """All domains are stopped: a minor collection, then roots are darkened."""
        s = (self.promoted(s) if "minor" in self.rules else s)._replace(marking=True)
        s = self.code.step(s, "m")[0]
        for r in s.registers:
            s = self.darkened(s, r, "roots")
        return self.code.step(s, "r")[0] if "root" in self.rules else s

    def ended(self, s: State) -> State:
        """All domains are stopped: weak pointers are cleaned, white blocks are freed, and the region lives on or
        ends."""
        if s.weak == "R" and "weak unreached" in self.rules and self.code.step(s, "u")[1]:
            s = s._replace(weak="")
        if s.weak == "R":
            s = self.darkened(s, "R", "weak clean")
        if s.weak == "A" and s.color_a == WHITE:
            s = s._replace(weak="")
        if s.color_a == WHITE:
            s = s._replace(a="", fault="A is lost" if "A" in reachable(s) else s.fault)
        if s.generation == OLD and s.color_y == WHITE:
            fault = "Y is lost" if "Y" in reachable(s) else s.fault
            s = s._replace(generation=ABSENT, y="", fault=fault)
        marked = s.r and {"A": s.color_a, "Y": s.color_y if s.generation == OLD else WHITE}[s.r] == BLACK
        s = s._replace(color_a=WHITE, color_y=WHITE, marking=False, listed=False, waits=False)
        s, met = self.code.step(s, "c", s.handle)
        alive = s.alive and bool(met or ("handle" in self.rules and s.handle))
        if s.tracked and alive and s.r and not marked:  # compaction and verification look at all of its words
            s = s._replace(fault="a region refers to what was freed")
        return s._replace(alive=alive) if alive else s._replace(alive=False, r="", slot=False)

    def anything(self, s: State) -> Iterator[tuple[str, State]]:
        yield from self.program(s)
        yield from self.collector(s)


After = Callable[[State], Iterator[tuple[str, State]]]


def find(wanted: Callable[[State], bool], after: After, first: State) -> list[str] | None:
    """The shortest way to such a state; None: there is none. Which register has what makes no difference, and nothing
    can happen to a region that has ended."""
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
        for step, t in after(s) if s.alive else ():
            t = t._replace(registers=tuple(sorted(t.registers)))
            if t not in came_from:
                came_from[t] = (s, step)
                queue.append(t)
    return None


def is_wrong(s: State) -> bool:
    if s.fault or (not s.alive and ("R" in reachable(s) or s.weak == "R" or s.handle)):
        return True
    # what region.h says of slots: compaction finds a word by its bit
    return s.alive and s.tracked and s.r in ("A", "Y") and not s.slot


FIRST = {
    "read-only": State(),
    "read-only-to-5.4": State(late=False),
    "tracked": State(tracked=True),
    "tracked-to-5.4": State(tracked=True, late=False),
}
ALL = {kind: frozenset(RULES) | (frozenset(TRACKED_RULES) if s.tracked else set()) for kind, s in FIRST.items()}


def needed(kind: str) -> list[str]:
    """The rules without which something must be lost."""
    return sorted(ALL[kind] - (NOT_FOR_TRACKED if FIRST[kind].tracked else set()))


def loses(world: World, kind: str) -> bool:
    return find(is_wrong, world.anything, FIRST[kind]) is not None


def ends(after: After, first: State) -> bool:
    """After the second cycle: it was made with its reach bit set."""
    steps = find(lambda s: not s.alive, after, first)
    return steps is not None and steps.count("end of cycle") == 2


def ring_ends(world: World, late: bool) -> bool:
    """The collector does that alone."""
    first = State(registers=("", ""), a="R", r="A", slot=True, weak="R", tracked=True, handle=False, late=late)
    return ends(world.collector, first)


@pytest.fixture
def code(request: pytest.FixtureRequest) -> Iterator[Code]:
    it = Code(getattr(request, "param", "sound"))
    yield it
    it.close()


@pytest.mark.parametrize("kind", FIRST)
def test_no_pointer_leads_to_what_has_ended(kind: str, code: Code) -> None:
    assert not loses(World(code, ALL[kind]), kind)


@pytest.mark.parametrize("kind", FIRST)
def test_a_region_that_is_not_used_ends(kind: str, code: Code) -> None:
    assert ends(World(code, ALL[kind]).anything, FIRST[kind])


@pytest.mark.parametrize("late", [True, False])
def test_a_ring_through_the_heap_and_a_weak_pointer_do_not_keep_a_tracked_region(late: bool, code: Code) -> None:
    assert ring_ends(World(code, ALL["tracked"]), late)


@pytest.mark.parametrize(("kind", "rule"), [(kind, rule) for kind in FIRST for rule in needed(kind)])
def test_every_rule_is_needed(kind: str, rule: str, code: Code) -> None:
    text = (RULES | TRACKED_RULES)[rule]
    assert loses(World(code, ALL[kind] - {rule}), kind), f"nothing is lost without this rule: {text}"


@pytest.mark.parametrize(("code", "kind"), [(b, BREAKAGES[b][3]) for b in BREAKAGES], indirect=["code"])
def test_every_breakage_is_noticed(code: Code, kind: str) -> None:
    world, first = World(code, ALL[kind]), FIRST[kind]
    ring = not first.tracked or ring_ends(world, first.late)
    assert not ring or not ends(world.anything, first) or loses(world, kind)

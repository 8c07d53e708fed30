# SPDX-License-Identifier: MIT
"""Background marking and sweeping as a model of which every state is visited.

One helper, two domains (or one), and a heap of a few blocks: A, which a global variable holds; what it refers to; a
continuation K; an ephemeron E; a value F with a finaliser. The program loads, stores, resumes, reads weakly and drops
what it has, in any order, between any two steps of the collector. Domains mark, hand their marking stacks over to the
helper, take marking back, end, and change the phase while all domains are stopped, though the helper is not. In no
state may a cycle end with a reachable block that is not marked, a pointer to a freed block, or a helper that still
holds one; the number of markers must be what its equation says in every state; and from every state the collector alone
must be able to end the cycle. Then each rule is left out in turn, and the model must find a fault.

Small models beside it: pools that are handed over to be swept, memory that becomes heap while the helper's queue has an
address in it, the header of a lazy value, and the pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.outheap

NONE: frozenset[str] = frozenset()
MAIN, FINAL, EPHE, OVER = "main", "final", "ephe", "over"
OPEN, SCANNED, STALE, RECORDED, EMPTIED = "open", "scanned", "stale", "recorded", "emptied"  # a domain's ephemerons


class State(NamedTuple):
    a: str = "B"  # A's field; that of B, and what the fiber of K, or F, refers to
    b: str = "C"
    k: str = ""
    f: str = ""
    registers: tuple[str, str] = ("", "")
    white: frozenset[str] = frozenset("BC")
    stacks: tuple[frozenset[str], frozenset[str]] = (frozenset("A"), NONE)
    done: tuple[bool, bool] = (False, True)
    number: int = 1  # num_domains_to_mark
    counted: bool = False  # the helper is a part of it
    running: bool = True  # otherwise there is no helper, or it has backed off
    inbox: frozenset[str] = NONE
    local: frozenset[str] = NONE
    hand: str = ""  # the helper has taken this block from its stack
    deferred: bool = False  # the helper has met K
    finishing: bool = False  # the helper is between two steps of its end
    late: tuple[bool, bool] = (False, False)  # a domain was done before it handed over
    phase: str = MAIN
    checking: bool = False  # domains are stopped, and half of the condition of a new phase has been read
    rounds: tuple[str, str] = (EMPTIED, EMPTIED)
    owner: int = -1  # of E: a domain, 2 while it is an orphan, -1 if there is none
    key: str = ""
    data: str = ""
    cleaned: bool = True  # E was, in this cycle
    final: str = ""  # of F: "wait", "due", "called", or "" if there is no such block
    alive: tuple[bool, bool] = (True, True)
    leaving: bool = False  # domain 1 ends
    fault: str = ""


RULES = {
    "counted": "the helper is counted while it has entries",
    "counted first": "a domain hands its stack over while it is still counted itself",
    "lock": "the helper looks whether all is empty, and ceases to be counted, under the lock",
    "hand": "the helper is not done while it scans a block",
    "next round": "the helper begins another round of ephemerons before it ceases to be counted",
    "round first": "it does so before, and not after",
    "number first": "the number of markers is read before the rounds of ephemerons",
    "domain's round": "so does a domain before it is done",
    "assist": "a domain that takes entries from the helper is counted",
    "barrier": "what a pointer that is overwritten led to is marked",
    "defer": "the helper does not mark a continuation",
    "wait for deferred": "the helper is not done while a continuation waits for a domain",
    "resume": "a continuation is darkened before it is resumed",
    "weak read": "what is read from an ephemeron is marked",
    "first finalisers": "a domain marks what its finalisers shall get before the phase ends",
    "give back": "a helper that backs off gives back what it holds",
    "poll": "it does so, and is stopped for fork, at a poll, where it has no block in hand",
    "ending": "a domain that ends has no entries left",
    "orphans": "no phase ends while there are orphans",
    "adopted": "an ephemeron is cleaned, also if it is adopted while ephemerons are swept",
    "wait at end": "the end of the cycle waits while the helper is counted",
}
# The first states, and the rules that matter in each.
SCENARIOS: dict[str, tuple[State, tuple[str, ...]]] = {
    "graph": (
        State(stacks=(frozenset("A"), frozenset()), registers=("", "")),
        ("counted", "counted first", "lock", "hand", "barrier"),
    ),
    "roots": (
        State(
            stacks=(frozenset("A"), frozenset("C")), registers=("", "C"), white=frozenset("B"), done=(False, False),
            number=2,
        ),
        ("counted", "counted first", "lock", "barrier"),
    ),
    "continuation": (
        State(a="K", b="", k="B", white=frozenset("KB")),
        ("defer", "wait for deferred", "resume"),
    ),
    "ephemeron": (
        State(b="", rounds=(EMPTIED, OPEN), owner=1, key="B", data="C", cleaned=False),
        ("next round", "round first", "domain's round", "counted"),
    ),
    "ephemeron with a dead key": (
        State(a="", b="", rounds=(EMPTIED, OPEN), owner=1, key="B", data="C", cleaned=False),
        ("weak read",),
    ),
    "ephemeron and finaliser": (
        State(
            a="", b="", f="B", final="wait", white=frozenset("FBC"), rounds=(EMPTIED, OPEN), owner=1, key="B", data="C",
            cleaned=False,
        ),
        ("next round", "number first", "first finalisers"),
    ),
    "domain that ends": (
        State(a="", b="", rounds=(EMPTIED, OPEN), owner=1, key="B", data="C", cleaned=False, leaving=True),
        ("ending", "orphans", "adopted", "wait at end"),
    ),
    "finaliser": (
        State(a="", b="", f="C", final="wait", white=frozenset("FC")),
        ("first finalisers", "counted"),
    ),
    "back-off": (State(alive=(True, False)), ("give back", "poll", "assist")),
}  # fmt: skip
HAS_BACK_OFF, HAS_FORK = ("back-off",), ("back-off",)


def put(pair: tuple, d: int, x: Any) -> tuple:
    return (x, pair[1]) if d == 0 else (pair[0], x)


def field(s: State, block: str) -> str:
    return {"A": s.a, "B": s.b, "K": s.k, "F": s.f}.get(block, "")


def reachable(s: State) -> set[str]:
    found: set[str] = set()
    pending = ["A", *s.registers, "F" if s.final == "due" else ""]
    while pending:
        while pending:
            block = pending.pop()
            if block and block not in found:
                found.add(block)
                pending.append(field(s, block))
        if s.owner >= 0 and s.data and s.key in found and s.data not in found:
            pending.append(s.data)
    return found


def next_round(s: State) -> State:
    after = {SCANNED: STALE, RECORDED: OPEN}
    return s._replace(rounds=tuple(after.get(r, r) for r in s.rounds))


def darkened(s: State, d: int, block: str) -> State:
    """Domain d does it: it is counted again, and has the entry."""
    if block not in s.white:
        return s
    if s.done[d]:
        s = s._replace(done=put(s.done, d, False), number=s.number + 1)
    s = s._replace(white=s.white - {block})
    if block == "K":  # with its fiber, at once: the header says so meanwhile
        return darkened(s, d, s.k)
    return s._replace(stacks=put(s.stacks, d, s.stacks[d] | {block}))


def program(s: State, rules: frozenset[str]) -> Iterator[State]:
    if s.checking:
        return
    for d in (0, 1):
        if not s.alive[d] or (d == 1 and s.leaving):
            continue
        if d == 1 and s.owner >= 0:
            continue  # with ephemerons it does nothing but collect: half a million states less
        mine = s.registers[d]

        def holding(s: State, block: str, d: int = d) -> State:
            return s._replace(registers=put(s.registers, d, block))

        def overwritten(s: State, block: str, d: int = d) -> State:
            return darkened(s, d, block) if "barrier" in rules else s

        if mine:
            yield holding(s, "")
            if s.a != mine:
                yield overwritten(s, s.a)._replace(a=mine)
        if s.a and s.a != mine:
            yield holding(s, s.a)
        if s.a and not mine:
            yield overwritten(s, s.a)._replace(a="")
        if mine == "B" and s.b:
            yield holding(s, s.b)
            yield overwritten(s, s.b)._replace(b="")
        if mine == "K" and s.k:
            t = darkened(s, d, "K") if "resume" in rules else s
            yield holding(t, t.k)._replace(k="", fault=s.fault or ("torn fiber" if s.hand == "K" else ""))
        for block in (s.key, s.data) if s.owner >= 0 else ():
            if block and mine != block and not (s.phase == EPHE and s.key in s.white):
                yield holding(darkened(s, d, block) if "weak read" in rules else s, block)
        if d == 0 and s.final == "due":
            yield holding(s, "F")._replace(final="called")
        if mine == "F" and s.f:
            yield holding(s, s.f)


def nothing_held(s: State, rules: frozenset[str]) -> bool:
    held = s.inbox or s.local or ("hand" in rules and s.hand) or ("wait for deferred" in rules and s.deferred)
    return not held or (not s.running and "give back" not in rules and not s.inbox)


def helper(s: State, rules: frozenset[str], scenario: str) -> Iterator[State]:
    """These go on while domains are stopped."""
    if s.finishing:  # the second step of the end
        t = next_round(s) if "round first" not in rules else s._replace(counted=False, number=s.number - 1)
        yield t._replace(finishing=False)
    elif s.counted and nothing_held(s, rules):  # also by a domain, if the helper is away
        if "round first" not in rules:
            yield s._replace(finishing=True, counted=False, number=s.number - 1)
        elif "next round" in rules:
            yield next_round(s)._replace(finishing=True)
        else:
            yield s._replace(finishing=True)
    if not s.running:
        return
    if s.finishing and "lock" in rules:
        return
    if s.hand:
        t = s._replace(hand="")
        if (child := field(s, s.hand)) in s.white:
            if child == "K" and "defer" in rules:
                t = t._replace(deferred=True)
            else:
                t = t._replace(white=s.white - {child}, local=s.local | {child})
        yield t
    else:
        for block in s.local:
            yield s._replace(hand=block, local=s.local - {block})
    if s.inbox:
        yield s._replace(inbox=NONE, local=s.local | s.inbox)
    if scenario in HAS_BACK_OFF and (not s.hand or "poll" not in rules):
        t = s._replace(running=False, hand="")
        yield t._replace(inbox=s.inbox | s.local, local=NONE) if "give back" in rules else t


def domains(s: State, rules: frozenset[str], scenario: str) -> Iterator[State]:
    if s.checking:
        return
    locked = s.finishing and "lock" in rules
    for d in (0, 1):
        if not s.alive[d]:
            continue
        stack, done = s.stacks[d], s.done[d]
        if stack and s.running and not locked and (not done or s.late[d]):
            more = 0 if s.counted or "counted" not in rules else 1
            yield s._replace(
                inbox=s.inbox | stack, stacks=put(s.stacks, d, NONE), number=s.number + more,
                counted="counted" in rules, late=put(s.late, d, False),
            )  # fmt: skip
        if s.deferred and not locked:
            yield darkened(s._replace(deferred=False), d, "K")
        for block in stack:
            t = s._replace(stacks=put(s.stacks, d, stack - {block}))
            yield darkened(t, d, field(s, block))
        if not done and (not stack or "counted first" not in rules):
            t = next_round(s) if "domain's round" in rules else s
            yield t._replace(done=put(s.done, d, True), number=s.number - 1, late=put(s.late, d, bool(stack)))
        for block in s.inbox if not locked and scenario in (*HAS_BACK_OFF, "roots") else ():
            t = s._replace(inbox=s.inbox - {block}, stacks=put(s.stacks, d, stack | {block}))
            if done and "assist" in rules:
                t = t._replace(done=put(s.done, d, False), number=s.number + 1)
            yield t
        yield from ephemerons(s, d)
        if d == 0 and s.phase == FINAL and s.final == "wait":
            yield (darkened(s, 0, "F") if "first finalisers" in rules else s)._replace(final="due")
    if scenario in HAS_FORK and s.alive == (True, False) and (not s.hand or "poll" not in rules) and not s.finishing:
        yield s._replace(running=False, hand="", inbox=s.inbox | s.local, local=NONE)  # the child
        if not s.running:
            yield s._replace(running=True)
    if s.leaving and s.alive[1]:
        if s.owner == 1 and s.done[1]:
            t = s._replace(owner=2, rounds=put(s.rounds, 1, EMPTIED))
            yield darkened(next_round(t), 1, s.data) if s.rounds[1] != EMPTIED else t
        if s.owner != 1 and s.done[1] and (not s.stacks[1] or "ending" not in rules):
            yield s._replace(alive=(True, False), done=(s.done[0], True))
        if "ending" not in rules and s.owner != 1 and not s.done[1]:
            yield s._replace(alive=(True, False), done=(s.done[0], True), number=s.number - 1)


def ephemerons(s: State, d: int) -> Iterator[State]:
    if s.owner == 2 and d == 0:
        yield s._replace(owner=0)  # it is adopted, to be looked at when ephemerons are swept
    if s.owner != d:
        return
    if s.phase in (MAIN, FINAL):
        if s.rounds[d] == OPEN:
            t = s._replace(rounds=put(s.rounds, d, SCANNED))
            if s.key not in s.white:
                t = next_round(t._replace(rounds=put(s.rounds, d, EMPTIED)))
                t = darkened(t, d, s.data)
            yield t
        elif s.rounds[d] == STALE:
            yield s._replace(rounds=put(s.rounds, d, OPEN))
        elif s.rounds[d] == SCANNED and s.done[d]:
            yield s._replace(rounds=put(s.rounds, d, RECORDED))
    elif s.phase == EPHE and not s.cleaned:
        dead = s.key in s.white
        yield s._replace(cleaned=True, key="" if dead else s.key, data="" if dead else s.data)


def phases(s: State, rules: frozenset[str]) -> Iterator[State]:
    """All domains are stopped."""
    if s.phase in (MAIN, FINAL):
        no_markers = s.number == 0
        rounds = all(r in (RECORDED, EMPTIED) for r in s.rounds) and (s.phase == MAIN or s.final != "wait")
        rounds = rounds and (s.owner != 2 or "orphans" not in rules)
        first, second = (no_markers, rounds) if "number first" in rules else (rounds, no_markers)
        if not s.checking and first:
            yield s._replace(checking=True)
        elif s.checking:
            yield s._replace(checking=False, phase=(FINAL if s.phase == MAIN else EPHE) if second else s.phase)
    elif s.phase == EPHE and (s.owner != 2 or "orphans" not in rules):
        # In the stock runtime nobody cleans what is adopted by a domain that has cleaned its own.
        if (
            (s.cleaned or s.owner == 2 or "adopted" not in rules)
            and all(s.done)
            and not (s.counted and "wait at end" in rules)
        ):
            yield ended(s)


def ended(s: State) -> State:
    held = s.inbox or s.local or s.hand or s.deferred or any(s.stacks) or s.number != 0
    lost = s.white & reachable(s)
    dangling = s.owner >= 0 and (s.key in s.white or s.data in s.white)
    fault = "held" if held else "lost" if lost else "dangling" if dangling else ""
    return s._replace(phase=OVER, fault=s.fault or fault)


def is_wrong(s: State) -> bool:
    return bool(s.fault) or s.number != sum(not done for done in s.done) + s.counted


class Found(NamedTuple):
    states: int
    wrong: Any  # a state that must not be
    stuck: Any  # a state from which the collector cannot end the cycle


def visit(
    first: Any,
    program: Callable[[Any], Iterator[Any]],
    collector: Callable[[Any], Iterator[Any]],
    wrong: Callable[[Any], bool],
    over: Callable[[Any], bool],
) -> Found:
    before: dict[Any, list[Any]] = {first: []}  # the steps of the collector alone, backwards
    queue, ends = deque([first]), []
    while queue:
        s = queue.popleft()
        if wrong(s):
            return Found(len(before), s, None)
        if over(s):
            ends.append(s)
            continue
        for t in collector(s):
            if t in before:
                before[t].append(s)
            else:
                before[t] = [s]
                queue.append(t)
        for t in program(s):
            if t not in before:
                before[t] = []
                queue.append(t)
    reached = set(ends)
    while ends:
        for s in before[ends.pop()]:
            if s not in reached:
                reached.add(s)
                ends.append(s)
    return Found(len(before), None, next((s for s in before if s not in reached), None))


@cache
def cycle(scenario: str, without: str = "") -> Found:
    rules = frozenset(RULES) - {without}

    def collector(s: State) -> Iterator[State]:
        yield from helper(s, rules, scenario)
        yield from domains(s, rules, scenario)
        yield from phases(s, rules)

    first = SCENARIOS[scenario][0]
    return visit(first, lambda s: program(s, rules), collector, is_wrong, lambda s: s.phase == OVER)


class Sweeping(NamedTuple):
    """Two pools, of which the second has garbage with a finaliser in C."""

    places: tuple[str, str] = ("own", "own")  # own, queue, hand, out (swept, not collected), swept
    begun: bool = False  # the last barrier of the cycle's start is behind the domains
    done: bool = False  # sweeping_done; also: num_domains_to_sweep is 0
    running: bool = True
    over: bool = False
    fault: str = ""


SWEEPING_RULES = {
    "begun": "pools are handed over behind the last barrier of the cycle's start",
    "queue": "a domain has not swept while pools are queued",
    "hand": "nor while the helper has one in hand",
    "out": "nor while one is not collected: its free blocks are not in the domain's lists",
    "once": "a pool that the helper has in hand is taken by nobody else",
    "finalisers": "the owner runs finalisers of custom blocks: a pool with such garbage goes back",
    "poll": "the helper backs off, and is stopped for fork, between two pools",
    "joined": "the runtime shuts down when the helper has ended, between two pools",
    "drain": "what was handed over is its owner's and unswept then, so that finalisers of all blocks are called",
}


def swept_by(s: Sweeping, i: int, place: str) -> Sweeping:
    return s._replace(places=put(s.places, i, place), fault=s.fault or ("" if s.begun else "with the old colours"))


def sweep(s: Sweeping, rules: frozenset[str]) -> Iterator[Sweeping]:
    if not s.begun:
        yield s._replace(begun=True)
    for i, place in enumerate(s.places):
        if place == "own" and (s.begun or "begun" not in rules) and s.running:
            yield s._replace(places=put(s.places, i, "queue"))
        if s.running and place == "queue" and "hand" not in s.places:
            yield s._replace(places=put(s.places, i, "hand"))
        if s.running and place == "hand":
            if i == 0:
                yield swept_by(s, i, "out")
            elif "finalisers" in rules:
                yield s._replace(places=put(s.places, i, "own"))
            else:
                yield swept_by(s, i, "out")._replace(fault="a finaliser on the helper")
        if not s.begun:
            continue
        if place == "own" and not s.done:
            yield swept_by(s, i, "swept")
        if place == "out" and not s.done:
            yield s._replace(places=put(s.places, i, "swept"))
        if place == "queue" and not s.done:
            yield s._replace(places=put(s.places, i, "own"))
        if place == "hand" and "once" not in rules and not s.done:
            yield s._replace(fault="swept by two")
    if s.running and ("hand" not in s.places or "poll" not in rules):
        yield s._replace(running=False, places=tuple("own" if p == "queue" else p for p in s.places))
    waits = {"own"} | ({"queue", "hand", "out"} & rules)
    if s.begun and not s.done and not waits & set(s.places):
        yield s._replace(done=True)
    if s.begun and not s.done and ("hand" not in s.places or "joined" not in rules):  # shutdown
        places = tuple("own" if p in ("queue", "out") and "drain" in rules else p for p in s.places)
        fault = "" if {"queue", "hand", "out"}.isdisjoint(places) else "not finalised at shutdown"
        yield s._replace(over=True, running=False, places=places, fault=s.fault or fault)
    if s.done:
        yield s._replace(over=True, fault="" if s.places == ("swept", "swept") else "not swept in its cycle")


class Kind(NamedTuple):
    """An address in a minor heap, or in foreign memory, which becomes major heap."""

    held: bool = True  # a block that is not scanned yet refers to it
    queued: bool = False  # the helper has read it, and will ask later what kind of memory that is
    heap: bool = False
    over: bool = False
    fault: str = ""


def change(s: Kind, rules: frozenset[str]) -> Iterator[Kind]:
    if s.held and not s.queued:
        yield s._replace(queued=True)
    if s.held:
        yield s._replace(held=False)  # a minor collection, or the program
    if s.queued:
        yield s._replace(queued=False, fault="foreign bytes taken for a header" if s.heap else "")
    if not s.held and not s.heap and (not s.queued or "drain" not in rules):
        yield s._replace(heap=True)
    if s.heap and not s.queued:
        yield s._replace(over=True)


class Header(NamedTuple):
    """Of a lazy value that a domain begins to force while it is marked."""

    forcing: bool = False
    marked: bool = False
    seen: str = ""  # the header that the helper has read: "lazy", "forcing"
    over: bool = False
    fault: str = ""


def headers(s: Header, rules: frozenset[str]) -> Iterator[Header]:
    now = "forcing" if s.forcing else "lazy"
    if not s.forcing and not s.over:
        yield s._replace(forcing=True)  # by compare-and-swap, so a mark is not lost
    if not s.marked and not s.seen:
        yield s._replace(seen=now)
    if s.seen and s.seen != now and "swap" in rules:
        yield s._replace(seen="")  # it reads the header again
    elif s.seen:
        yield s._replace(seen="", marked=True, fault="forced twice" if s.seen != now else "")
    if s.marked:
        yield s._replace(over=True)


class Pace(NamedTuple):
    to_sweep: int = 4
    to_mark: int = 8
    swept: int = 0
    allocated: int = 0
    work: int = 0  # work_counter
    over: bool = False


AHEAD = 2  # a domain allocates no more than that before it has to work


def pace(s: Pace, rules: frozenset[str]) -> Iterator[Pace]:
    if s.allocated - s.work < AHEAD:
        yield s._replace(allocated=s.allocated + 1)
    elif s.to_sweep:
        yield s._replace(to_sweep=s.to_sweep - 1, swept=s.swept + 1, work=s.work + 1)
    elif s.to_mark:
        yield s._replace(to_mark=s.to_mark - 1, work=s.work + 1)
    if s.to_mark:  # the helper
        credit = 0 if s.to_sweep and "credit" in rules else 1
        yield s._replace(to_mark=s.to_mark - 1, work=s.work + credit)
    if not s.to_sweep and not s.to_mark:
        yield s._replace(over=True)


def grows(s: Pace) -> bool:
    """Blocks were allocated, though there was more to sweep, that had no swept place to go to."""
    return s.to_sweep > 0 and s.allocated > s.swept + AHEAD


SMALL: dict[str, tuple[Any, Callable, Callable, frozenset[str]]] = {
    "sweeping": (Sweeping(), sweep, lambda s: bool(s.fault), frozenset(SWEEPING_RULES)),
    "kind of memory": (Kind(), change, lambda s: bool(s.fault), frozenset({"drain"})),
    "header": (Header(), headers, lambda s: bool(s.fault), frozenset({"swap"})),
    "pace": (Pace(), pace, grows, frozenset({"credit"})),
}


def small(name: str, without: str = "") -> Found:
    first, steps, wrong, rules = SMALL[name]
    left = rules - {without}
    return visit(first, lambda s: iter(()), lambda s: steps(s, left), wrong, lambda s: s.over)


def without(table: dict[str, Iterable[str]]) -> list[object]:
    pairs = [(name, rule) for name, rules in table.items() for rule in sorted(rules)]
    return [pytest.param(*pair, id="-without-".join(pair).replace(" ", "-")) for pair in pairs]


def named(text: str) -> str:
    return text.replace(" ", "-")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_nothing_is_lost_and_the_cycle_can_end(scenario):
    found = cycle(scenario)
    assert found.wrong is None
    assert found.stuck is None
    assert found.states > 1000


@pytest.mark.parametrize(("scenario", "rule"), without({name: rules for name, (_, rules) in SCENARIOS.items()}))
def test_every_rule_is_needed(scenario, rule):
    found = cycle(scenario, rule)
    assert found.wrong or found.stuck, f"nothing is wrong without this rule: {RULES[rule]}"


def test_every_rule_is_tried():
    assert {rule for _, rules in SCENARIOS.values() for rule in rules} == set(RULES)


@pytest.mark.parametrize("name", SMALL, ids=named)
def test_nothing_is_wrong_beside_marking(name):
    found = small(name)
    assert found.wrong is None
    assert found.stuck is None


@pytest.mark.parametrize(("name", "rule"), without({name: rules for name, (*_, rules) in SMALL.items()}))
def test_every_rule_beside_marking_is_needed(name, rule):
    found = small(name, rule)
    assert found.wrong or found.stuck

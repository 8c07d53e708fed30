# SPDX-License-Identifier: MIT
"""OCaml sources made by program: static constants for the marking benchmark, and a large parser for the compiler to
compile. The same arguments give the same text everywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

CHUNK = 4096  # constants in one array: keeps the compiler's time linear


def static_constants(count: int) -> Iterator[str]:
    """`Constants.all`: blocks of three words in the program's static data, no two alike."""
    yield "(* Generated. *)\n"
    chunks = range(0, count, CHUNK)
    for n, start in enumerate(chunks):
        yield f"let c{n} = [|\n"
        for i in range(start, min(count, start + CHUNK)):
            yield f"({2 * i}, {2 * i + 1});\n"
        yield "|]\n"
    yield "let all = Array.concat [" + "; ".join(f"c{n}" for n in range(len(chunks))) + "]\n"


HASHCONS = {
    "weak": "Hashcons_rivals.Over_weak",
    "buckets": "Hashcons_rivals.Over_buckets",
    "cells": "Outheap_hashcons",
}


def hashcons(folder: Path) -> None:
    """A module for each implementation, from the text of hashcons_steps.ml, which has the name of one."""
    text = (folder / "hashcons_steps.ml").read_text()
    for kind, implementation in HASHCONS.items():
        (folder / f"hashcons_{kind}.ml").write_text(text.replace("Outheap_hashcons", implementation))


TOKENS, NODES, NONTERMINALS = 160, 120, 60


def parser(states: int, seed: int = 1) -> Iterator[str]:
    """The automaton of a parser, one function for each state as parser generators write them, with a random grammar;
    then functions that simplify its trees by nested patterns. About 45 lines for each state."""
    rng = random.Random(seed)
    carries = [rng.choice(["", " of int", " of string", " of string * int"]) for _ in range(TOKENS)]
    arity = [rng.randrange(1, 6) for _ in range(NODES)]
    yield "(* Generated. *)\n"
    yield "type token = " + " | ".join(f"T{t}{c}" for t, c in enumerate(carries)) + "\n"
    yield (
        "type tree = Int of int | String of string | Absent | "
        + " | ".join(f"N{n} of " + " * ".join(["tree"] * a) for n, a in enumerate(arity))
        + "\n"
    )
    yield "type stack = Bottom | Cell of stack * int * tree * position\nand position = { line : int; column : int }\n"
    yield "type lexer = { next : unit -> token; mutable position : position; mutable trace : (int * token) list }\n"
    yield "exception Syntax_error of int * token * position\n"

    rules = [(rng.randrange(NONTERMINALS), rng.randrange(NODES)) for _ in range(states)]
    gotos: list[list[tuple[int, int]]] = [[] for _ in range(NONTERMINALS)]
    for goto in gotos:
        goto += [(s, rng.randrange(states)) for s in sorted(rng.sample(range(states), min(states, 12)))]
    yield "let rec start lexer = state_0 lexer Bottom (lexer.next ())\n"
    for s in range(states):
        yield f"and state_{s} lexer stack token =\n  lexer.trace <- ({s}, token) :: lexer.trace;\n  match token with\n"
        for t in sorted(rng.sample(range(TOKENS), 22)):
            pattern, leaf = {
                "": ("", "Absent"),
                " of int": (" i", "Int i"),
                " of string": (" s", "String s"),
                " of string * int": (
                    " (s, i)",
                    f"N{s % NODES} ({', '.join((['String s', 'Int i'] * 3)[: arity[s % NODES]])})",
                ),
            }[carries[t]]
            if rng.random() < 0.6:
                guard = f" when lexer.position.column > {rng.randrange(80)}" if rng.random() < 0.2 else ""
                yield f"  | T{t}{pattern}{guard} ->\n    let stack = Cell (stack, {s}, {leaf}, lexer.position) in\n"
                yield f"    state_{rng.randrange(states)} lexer stack (lexer.next ())\n"
            else:
                yield f"  | T{t}{' _' if pattern else ''} -> reduce_{rng.randrange(states)} lexer stack token\n"
        yield f"  | _ -> raise (Syntax_error ({s}, token, lexer.position))\n"
        nonterminal, node = rules[s]
        cells = "stack"
        for i in range(arity[node]):
            cells = f"Cell ({cells}, {'state' if i == 0 else '_'}, x{i}, {'position' if i == 0 else '_'})"
        yield f"and reduce_{s} lexer stack token =\n  match stack with\n  | {cells} ->\n"
        fields = ", ".join(f"x{i}" for i in range(arity[node]))
        yield f"    goto_{nonterminal} lexer (Cell (stack, state, N{node} ({fields}), position)) state token\n"
        yield f"  | _ -> raise (Syntax_error ({s}, token, lexer.position))\n"
    for n, goto in enumerate(gotos):
        yield f"and goto_{n} lexer stack state token =\n  match state with\n"
        for s, target in goto:
            yield f"  | {s} -> state_{target} lexer stack token\n"
        yield "  | n -> raise (Syntax_error (n, token, lexer.position))\n"

    def pattern(depth: int, names: list[str]) -> str:
        if depth == 0 or rng.random() < 0.3:
            names.append(f"x{len(names)}")
            return names[-1]
        n = rng.randrange(NODES)
        return f"N{n} ({', '.join(pattern(depth - 1, names) for _ in range(arity[n]))})"

    def expression(depth: int, names: list[str]) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(names)
        n = rng.randrange(NODES)
        return f"N{n} ({', '.join(expression(depth - 1, names) for _ in range(arity[n]))})"

    for f in range(states // 60):
        yield f"let rec simplify_{f} tree =\n  match tree with\n"
        for n in range(NODES):
            for _ in range(2):
                names: list[str] = []
                arguments = ", ".join(pattern(1, names) for _ in range(arity[n]))
                yield (
                    f"  | N{n} ({arguments}) when check_{f} {names[0]} ->\n    simplify_{f} ({expression(2, names)})\n"
                    if names
                    else ""
                )
        yield "  | tree -> tree\n"
        yield (
            f"and check_{f} = function Int n -> n > {f} | String s -> String.length s > {f} | Absent -> true "
            f"| N{f % NODES} _ -> false | tree -> tree != simplify_{f} tree\n"
        )


def write(path: Path, text: Iterator[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w") as file:
        file.writelines(text)
    return partial.rename(path)

# SPDX-License-Identifier: MIT
"""Owned data: containers in cells outside the heap, with the variant and with the stock runtime."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from testing import matrix, steps, variants
from testing.cases import Case, check, params
from testing.compilers import Compiler, with_tsan
from testing.programs import words_of
from testing.run import BUILD, ROOT, run

HOME = ROOT / "outheap"
STOCK, STOCK_BYTECODE, SANITIZED, THREADS = "stock", "bytecode-stock", "asan", "tsan"
SANITIZERS = "-fsanitize=address,undefined"
# Fork, and faults on purpose, are left out of what is instrumented. ThreadSanitizer's own record of calls goes wrong
# (OCaml 5.5.2) where functions that a list calls raise exceptions (`lists`), where handlers of signals do, and where
# the stack ends.
WITHOUT = {
    SANITIZED: ("poisoned", "memory", "privileged"),
    THREADS: (
        "poisoned",
        "memory",
        "privileged",
        "forks",
        "interrupts",
        "lists",
        "stopped",
        "signals",
        "rights",
        "depths",
    ),
}
MODULES = (
    "domains",
    "checks",
    "chains",
    "maps",
    "tables",
    "contracts",
    "types",
    "shared",
    "endings",
    "stopped",
    "sharded",
    "threads",
    "images",
    "saving",
    "signals",
    "depths",
    "edges",
    "rights",
    "compacted",
    "operations",
    "unions",
    "settings",
    "test",
)

# Lines without which something that is promised does not hold: some part must notice. File, text, what takes its
# place, parts.
MUTATIONS = {
    "consumed-owners-work": (
        "linear_owner.c",
        "if (*busy_of(owner) != from || *version_of(owner) != version) return",
        "if (*busy_of(owner) != from) return",
        ("owners",),
    ),
    "borrows-do-not-count": ("linear_owner.c", "busy, busy + 2);", "busy, busy);", ("owners",)),
    "rights-are-made-late": (
        "outheap_linear__owner.ml",
        'external done_ : owner -> right -> right = "outheap_linear_ml_done" [@@noalloc]',
        "let[@inline] done_ o (_ : right) : right =\n  consume o;\n  right_of o",
        ("rights",),
    ),
    "exceptions-leave-it-busy": (
        "outheap_linear__owner.ml",
        "let failed o e =\n  kept o;",
        "let failed o e =",
        ("lists",),
    ),
    "anything-is-plain": ("linear_contents.c", "Hd_val(v));", "Hd_val(v)) || true;", ("contents",)),
    "regions-are-constants": ("linear_contents.c", "return is_held((uintptr_t)v);", "return true;", ("contents",)),
    "regions-are-not-held": ("outheap_linear__contents.ml", "(v :: before))", "before)", ("held",)),
    "cells-are-constants": (
        "region_runtime.c",
        "if (outheap_region_marker_has_cells(block)) return false;",
        "",
        ("contents", "cells"),
    ),
    "slots-keep-values": ("outheap_linear__contents.ml", "(n land (size - 1)) nothing;", "0 nothing;", ("rooted",)),
    "forgotten-are-not-freed": ("outheap_linear__owner.ml", "  Gc.finalise free owner;\n", "", ("forgotten",)),
    "forgotten-owners-stay-valid": (
        "outheap_linear__owner.ml",
        "finish free ~consumed:true owner",
        "finish free ~consumed:false owner",
        ("endings",),
    ),
    "what-is-in-use-is-freed": (
        "outheap_linear__owner.ml",
        "if begin_change owner owner.version = 0 then",
        "if begin_change owner owner.version >= 0 then",
        ("endings",),
    ),
    "exceptions-stop-freeing": (
        "outheap_linear__owner.ml",
        "      finish free ~consumed o;\n",
        "      kept o;\n",
        ("stopped",),
    ),
    "changes-begin-without-room": (
        "outheap_linear__owner.ml",
        "    room ();\n    finish C.free_all",
        "    finish C.free_all",
        ("stopped",),
    ),
    "stale-slots-are-read": (
        "outheap_linear__contents.ml",
        "if v == nothing then raise Raw.Moved else",
        "",
        ("endings",),
    ),
    "owners-are-compared": (
        "outheap_linear__owner.ml",
        "owner_with (mark ()) free in",
        "owner_with (Obj.repr 0) free in",
        ("endings",),
    ),
    "elements-are-counted-before": (
        "outheap_linear__image.ml",
        "let save () =\n    let elements = List.fold_left (fun n o -> n + o.size) 0 tables in",
        "let elements = List.fold_left (fun n o -> n + o.size) 0 tables in\n  let save () =",
        ("saved-meanwhile",),
    ),
    "memory-is-not-paced": ("linear_pool.c", "if (made != 0) outheap", "if (false) outheap", ("forgotten",)),
    "tables-are-not-paced": ("linear_buckets.c", "if (made != 0) outheap", "if (false) outheap", ("not-cells",)),
    "the-current-page-stays": (
        "linear_pool.c",
        "current->used == 0 && outheap_linear_page_can_purge()",
        "false",
        ("not-cells",),
    ),
    "freeing-wants-stack": (
        "outheap_linear__table.ml",
        "let[@inline] free_cell d c",
        "let[@inline never] free_cell d c",
        ("depths",),
    ),
    "freeing-handles-signals": (
        "outheap_linear__contents.ml",
        "then Long.free (Obj.obj s) else",
        "then (Sys.opaque_identity Long.free) (Obj.obj s) else",
        ("signals",),
    ),
    "full-pages-stay-full": ("linear_pool.c", "if (g->list == OUTHEAP_LINEAR_FULL) {", "if (false) {", ("large",)),
    "tokens-work-twice": (
        "linear_cells.c",
        "why == DONE ? OUTHEAP_LINEAR_LIVE : taken_by(token)",
        "taken_by(token)",
        ("cells",),
    ),
    "cells-are-taken-twice": (
        "linear_cells.c",
        "change(state, OUTHEAP_LINEAR_LIVE, taken_by(token))",
        "change(state, OUTHEAP_LINEAR_LIVE, OUTHEAP_LINEAR_LIVE)",
        ("cells",),
    ),
    "takings-are-not-counted": ("linear_pool.c", "before % OUTHEAP_LINEAR_TAKINGS", "before % 1", ("tokens",)),
    "takings-are-not-undone": ("outheap_linear__cells.ml", "        Raw.untake token;\n", "", ("tokens",)),
    "any-type-is-ordinary": (
        "outheap_linear__cells.ml",
        "if not (Raw.is_ordinary T.example) then",
        "if false then",
        ("cells",),
    ),
    "exceptions-are-ordinary": ("linear_cells.c", "Tag_val(f) == Object_tag", "false", ("cells",)),
    "cells-change-constructor": ("linear_cells.c", "why = OTHER_SHAPE;", "why = DONE;", ("cells",)),
    "red-roots": ("outheap_linear__map.ml", "          paint root black\n", "          ()\n", ("maps", "orders")),
    "no-balance-after-removal": (
        "outheap_linear__map.ml",
        "if o.flag then right_is_short o c else c",
        "c",
        ("maps", "orders"),
    ),
    "trees-lean": (
        "outheap_linear__tree.ml",
        "if side = left then balance_left c b' else balance_right c b'",
        "(set c side b'; c)",
        ("unions",),
    ),
    "unions-want-stack": ("outheap_linear__map.ml", "room_for (length r + length r');", "", ("depths",)),
    "any-image-is-a-map": (
        "outheap_linear__image.ml",
        "if not (is_map (Obj.repr i)) then",
        "if false then",
        ("images",),
    ),
    "the-rest-is-dropped": ("outheap_linear__map.ml", "o.root <- join_two o o.root r;", "", ("unions",)),
    "fields-are-not-copied": ("outheap_linear__cells.ml", "{ fields = copy v;", "{ fields = v;", ("cells",)),
    "texts-are-not-copied": ("outheap_linear__contents.ml", "Raw.text_copy (Obj.obj s)", "(Obj.obj s)", ("texts",)),
    "use-does-not-count": ("outheap_linear__table.ml", "          touch o c;\n", "", ("tables",)),
    "locks-do-not-lock": (
        "linear_mutex.c",
        "int why = pthread_mutex_trylock(&l->mutex);",
        "int why = 0;",
        ("sharing",),
    ),
    "locks-stay-after-exceptions": (
        "outheap_linear__shards.ml",
        "| exception e ->\n      lock_give s.lock;",
        "| exception e ->",
        ("sharded",),
    ),
    "closing-ends-at-a-closed-part": (
        "outheap_linear__shards.ml",
        "| exception Raw.Moved -> open_before",
        "",
        ("sharded",),
    ),
    "evicted-is-not-called": (
        "outheap_linear__shards.ml",
        "    evicted a z\n",
        "    ignore (evicted, a, z)\n",
        ("sharded",),
    ),
    "evicted-is-lost-by-signals": (
        "outheap_linear__table.ml",
        "            f a z;\n            ()\n",
        "            f a z\n",
        ("signals",),
    ),
    "each-part-has-the-whole-bound": (
        "outheap_linear__shards.ml",
        "else (most / n) + if i < most mod n then 1 else 0 in",
        "else most in",
        ("sharded",),
    ),
    "images-lose-chains": (
        "outheap_linear__image.ml",
        "add_chain (Buckets.next c)\n",
        "ignore add_chain\n",
        ("images",),
    ),
    "other-hashes-are-mapped": (
        "outheap_linear__image.ml",
        "if hash = hash_of_key key then",
        "if true then",
        ("damaged",),
    ),
    "any-image-is-a-table": (
        "outheap_linear__image.ml",
        "if not (is_table (Obj.repr i)) then",
        "if false then",
        ("damaged",),
    ),
    "poison-leaves-texts": ("linear_pool.c", "Abstract_tag)", "String_tag)", ("poisoned",)),
    "parts-are-saved-without-locks": (
        "outheap_linear__shards.ml",
        "      lock_take (Array.unsafe_get locks i);\n      taken := i + 1",
        "      if i < 0 then taken := i + 1",
        ("saved-meanwhile",),
    ),
    "saving-waits-for-itself": (
        "outheap_linear__shards.ml",
        "if Array.exists lock_is_ours locks then raise Raw.Borrowed;",
        "",
        ("saved-meanwhile",),
    ),
    "cells-do-not-move": (
        "linear_pool.c",
        "bool leaves = g->list == OUTHEAP_LINEAR_ASIDE;",
        "bool leaves = false;",
        ("compacted",),
    ),
    "borrowed-cells-move": (
        "linear_owner.c",
        "if (*busy_of(owner) != free) return Val_long(-1);",
        "if (false) return Val_long(-1);",
        ("compacted",),
    ),
    "neighbours-keep-their-pointers": ("linear_move.c", "if (!bound) continue;", "continue;", ("compacted",)),
    "queues-end-where-they-did": ("linear_move.c", "if (o->last == before) o->last = *place;", "", ("compacted",)),
    "tables-stay-large": ("outheap_linear__table.ml", "          shrink d.b o.size least 4;\n", "", ("compacted",)),
    "poison-is-no-value": (
        "linear_pool.c",
        "char *p = outheap_linear_page_map(); /* where",
        "char *p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* where",
        ("poisoned",),
    ),
    "tables-begin-large": ("outheap_linear__buckets.ml", "max least (2 * i) else", "segment else", ("not-cells",)),
    "buckets-are-not-divided": ("linear_buckets.c", "== Long_val(n) ?", "== -1 ?", ("tables",)),
}


def _files() -> list[Path]:
    parts = ("test/linear", "lib/linear", "lib/region", "include")
    files = [f for part in parts for f in (HOME / part).rglob("*") if f.is_file()]
    return [*files, HOME / "test/memory/collapse.h"]


def _c(compiler: Compiler, flavour: str, folder: Path) -> list[str]:
    """Compiles what is in C; the objects."""
    kind = SANITIZERS if flavour == SANITIZED else "-O2"
    sources = sorted(folder.glob("*.c"))
    commands = []
    for source in sources:
        of_library = "linear" in source.name and source.name != "linear_test_stubs.c"
        faults = "-include linear_faults.h" if of_library else ""
        options = f"-std=gnu11 -Wall -Wextra {kind} {faults} -I . -I {HOME}/include"
        commands.append([compiler.ocamlopt, "-g", "-ccopt", options, "-c", source.name])
    steps.commands(commands, folder)
    return [f"{source.stem}.o" for source in sources]


def _link(compiler: Compiler, flavour: str, folder: Path, parts: list[str]) -> None:
    native = not flavour.startswith("bytecode")
    start = [compiler.ocamlopt] if native else [compiler.ocamlc, "-custom"]
    of_variant = "release" if flavour in (THREADS, SANITIZED) else flavour
    linked = []
    if flavour not in (STOCK, STOCK_BYTECODE):
        linked = ["-I", variants.library(compiler, of_variant), "-runtime-variant", variants.SUFFIX[of_variant]]
    # As in dune's development profile nothing of one unit is inlined in another: what is promised of signals, and of
    # the end of the stack, must hold there, too.
    opaque = ["-opaque"] if flavour == STOCK else []
    sanitized = ["-ccopt", SANITIZERS] if flavour == SANITIZED else []
    extension = "cmxa" if native else "cma"
    libraries = [*compiler.libraries, "-I", "+threads", f"unix.{extension}", f"threads.{extension}"]
    steps.command([*start, "-g", *opaque, *linked, *sanitized, *libraries, *parts, "-o", "linear"], folder)


def _modules(compiler: Compiler, folder: Path) -> list[str]:
    return [*compiler.in_order(folder.glob("outheap_*.ml*")), *(f"linear_{m}.ml" for m in MODULES)]


@cache
def program(compiler: Compiler, flavour: str) -> Path:
    """The folder of the test program; `stock`: linked with the runtime of the compiler."""
    name = compiler.name if flavour in (STOCK, STOCK_BYTECODE) else f"{compiler.name}+outheap"
    folder = BUILD / name / f"linear-{flavour}"
    of_variant = "release" if flavour in (THREADS, SANITIZED) else flavour
    library = None if flavour in (STOCK, STOCK_BYTECODE) else variants.library(compiler, of_variant)

    def build() -> None:
        for file in _files():
            shutil.copy(file, folder)
        shutil.copy(folder / f"linear_domains{compiler.major}.ml", folder / "linear_domains.ml")
        _link(compiler, flavour, folder, [*_c(compiler, flavour, folder), *_modules(compiler, folder)])

    words = [compiler.prefix, flavour, (library / "built").read_text() if library else ""]
    return steps.step(folder, _files(), words, build)


def _cases(compiler: Compiler, flavour: str, listed: dict[str, list[str]], everything: bool) -> list[Case]:
    also_long = everything and flavour in ("release", STOCK)
    parts = [
        p for p, words in listed.items() if p not in WITHOUT.get(flavour, ()) and ("long" not in words or also_long)
    ]
    settings = {"OCAMLRUNPARAM": "v=0,V=1" if "debug" in flavour else "b", "SEED": str(matrix.seed())}
    if flavour == SANITIZED:  # OCaml has a handler of its own, and keeps what it allocates
        # Also, what is freed is kept for a while: little of it, as some tests look at the memory that a process has.
        settings["ASAN_OPTIONS"] = "detect_leaks=0:handle_segv=0:quarantine_size_mb=16"
    if flavour == THREADS:
        settings["TSAN_OPTIONS"] = "halt_on_error=1:die_after_fork=0:second_deadlock_stack=1"
    if flavour.startswith("bytecode"):  # signals are handled everywhere there
        parts.remove("interrupts")
        if (5, 0) <= compiler.release < (5, 4):  # finalisers come late in bytecode
            parts.remove("forgotten")
    commands = {part: (["./linear", part], settings) for part in parts}
    if flavour == "release":
        small = {**settings, "OCAMLRUNPARAM": "s=4k"}
        commands["small-minor-heaps"] = (["./linear", "lists", "maps", "rooted", "domains"], small)
        if compiler.major >= 5:
            threads = {**settings, "OUTHEAP": variants.THREADS, "OCAMLRUNPARAM": "s=32k"}
            # What is forgotten comes first: up to OCaml 5.3 the work of full collections that a program has asked for
            # counts as done before its time, and then nothing is collected for long.
            commands["with-threads"] = (["./linear", "forgotten", "lists", "maps", "rooted", "domains"], threads)
    if flavour in ("release", STOCK):
        little = ["sh", "-c", "ulimit -v 1000000 && exec ./linear little"]
        commands["little-address-space"] = (little, {"OCAMLRUNPARAM": "d=4" if compiler.major >= 5 else "b"})
        commands["small-files"] = (["sh", "-c", "trap '' XFSZ; ulimit -f 64 && exec ./linear limited"], {})
    return [
        Case(
            "outheap",
            f"{compiler.name}-{flavour}",
            f"linear/{name}",
            command,
            600,
            lambda: program(compiler, flavour),
            environment,
            slow="slow" in listed.get(name, ()),
            timing="timing" in listed.get(name, ()),
        )
        for name, (command, environment) in commands.items()
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutation" in metafunc.fixturenames:
        compilers = [c for c in matrix.ends() if c in matrix.known_to_outheap() and c.major >= 5]
        pairs = [pytest.param(c, m, id=f"{c.name} linear/without/{m}") for c in compilers for m in MUTATIONS]
        metafunc.parametrize("compiler, mutation", pairs)
        return
    if "case" not in metafunc.fixturenames:
        return
    everything = metafunc.config.getoption("everything")
    chosen = matrix.chosen_flavours(metafunc.config)
    ends = [c for c in matrix.ends() if c in matrix.known_to_outheap()]
    pairs = [(c, f) for c, f in matrix.variant(metafunc.config) if chosen or c in ends or f != "bytecode"]
    if not chosen:
        pairs += [(c, f) for c in ends for f in (STOCK, STOCK_BYTECODE)]
        pairs += [(c, SANITIZED) for c in ends if everything]
        pairs += [(t, THREADS) for c in ends if everything and c.major >= 5 and (t := with_tsan(c))]

    def listed() -> list[Case]:
        parts = words_of(program(matrix.known_to_outheap()[0], STOCK) / "linear") if pairs else {}
        return [case for compiler, flavour in pairs for case in _cases(compiler, flavour, parts, everything)]

    metafunc.parametrize("case", params("outheap", "linear", listed))


def test_linear(case: Case) -> None:
    check(case)


def test_every_mutation_applies() -> None:
    sources = {f.name: f.read_text() for f in _files()}
    for mutation, (name, text, *_) in MUTATIONS.items():
        assert sources[name].count(text) == 1, mutation


@pytest.mark.everything
def test_mutation(compiler: Compiler, mutation: str, tmp_path: Path) -> None:
    name, text, other, parts = MUTATIONS[mutation]
    folder = tmp_path / "mutated"
    shutil.copytree(program(compiler, "release"), folder)
    source = (folder / name).read_text()
    assert source.count(text) == 1
    (folder / name).write_text(source.replace(text, other))
    _link(compiler, "release", folder, [*_c(compiler, "release", folder), *_modules(compiler, folder)])
    settings = {"SEED": "1", "OCAMLRUNPARAM": "s=4k"}
    assert any(not run(["./linear", p], folder, folder / f"{p}.log", 120, settings).passed for p in parts)

# SPDX-License-Identifier: MIT
"""The table of workloads. To add one, add its file in workloads/ (or its way of being built in programs.py) and an
entry here."""

from __future__ import annotations

from ...model import Case, Workload
from . import execute
from .runtimes import (
    ADAPTIVE,
    BASE,
    BUCKETS,
    BY_CALLS,
    CELLS,
    CELLS_ALONE,
    CLANG,
    COUNTING,
    ENCODED,
    FIXED,
    FLOOR,
    HELPED,
    HELPED_60,
    HELPED_SMALL,
    LAVISH,
    LINEAR,
    LINEAR_ON_STOCK,
    LMDB,
    MARSHALLED,
    MUTABLE,
    NO_NAKED,
    NO_TABLE,
    OURS,
    PAUSES,
    PRELOADED,
    REDIS,
    REGIONS,
    RIVALS,
    SHIFTED,
    TABLE,
    WIDE_STACK,
    YOUNG_SIZES,
)

COQ_FILES = ("FSets/FMapAVL", "Reals/RiemannInt", "Reals/Ratan")  # for hash-consing
MINOR = (BASE, OURS, ADAPTIVE, *FIXED)
YOUNG = (BASE, OURS, ADAPTIVE, PAUSES, *YOUNG_SIZES)
OWNED = (LINEAR, LINEAR_ON_STOCK, MUTABLE)
CACHES = (BASE, OURS, NO_TABLE, ENCODED, LMDB, REDIS, LINEAR_ON_STOCK, LINEAR)
UNTIMED = (
    WIDE_STACK,
    BY_CALLS,
    HELPED,
    HELPED_60,
    HELPED_SMALL,
    FLOOR,
    LAVISH,
    COUNTING,
    REGIONS,
    MARSHALLED,
    CELLS,
    CELLS_ALONE,
    BUCKETS,
    *OWNED,
    ENCODED,
    LMDB,
    REDIS,
    NO_TABLE,
    ADAPTIVE,
    PAUSES,
    *FIXED,
    CLANG,
    *SHIFTED,
)
TIMED = tuple(r for r in RIVALS if r not in UNTIMED)
QUICK_TIMED = tuple(r for r in TIMED if r not in ("table-order", "outheap-always", "no-naked-thp", *PRELOADED))
MAIN = (BASE, NO_NAKED, TABLE, OURS)
MARKED = (BASE, WIDE_STACK, NO_NAKED, TABLE, OURS)
QUICK, FULL, BOTH = ("quick",), ("full",), ("quick", "full")


def marking(
    label: str,
    size: int,
    order: str = "random",
    shapes: str = "regular",
    immediates: int = 600,
    statics: int = 70,
    rivals: tuple[str, ...] = MAIN,
    modes: tuple[str, ...] = FULL,
    repeats: int = 3,
    count: bool = False,
    once: bool = False,
) -> Case:
    seconds = size / 800 * ((4 + 1.5 * repeats) if order == "random" else (1.5 + 0.4 * repeats))
    arguments = (
        str(size),
        order,
        shapes,
        str(immediates),
        str(statics),
        "1" if count else str(repeats),
        *(("count",) if count else ()),
    )
    return Case(
        label,
        arguments,
        (COUNTING,) if count else rivals,
        modes,
        seconds=seconds,
        timeout=60 + 20 * seconds,
        once=once or count,
        gigabytes=1.4 * size / 1000,
    )


# Shares are those of fields that do not link a chain, in thousandths.
MARKING = (
    dict(label="0.8 GB, random", size=800, rivals=(WIDE_STACK, *QUICK_TIMED), modes=QUICK),
    dict(label="0.8 GB, sequential", size=800, order="sequential", modes=QUICK),
    dict(label="0.8 GB, random", size=800, rivals=(WIDE_STACK, *TIMED)),
    dict(label="0.8 GB, sequential", size=800, order="sequential", rivals=TIMED, repeats=5),
    dict(label="0.8 GB, random, irregular blocks", size=800, shapes="irregular"),
    dict(label="0.8 GB, random, no static blocks", size=800, statics=0),
    dict(label="0.8 GB, random, 27 % static blocks", size=800, immediates=300, statics=360),
    dict(label="0.8 GB, random, 22 % immediates", size=800, immediates=300),
    dict(label="0.8 GB, sequential, no static blocks", size=800, order="sequential", statics=0, repeats=5),
    dict(label="3 GB, random", size=3000, rivals=MARKED),
    dict(label="11 GB, random", size=11000, rivals=(BASE, WIDE_STACK, OURS), repeats=1, once=True),
)

YOUNG_STEPS = (
    ("values stored into old blocks", ("stores", "200")),
    ("bursts of small lists", ("bursts", "120")),
    ("a cache of the most recently used", ("cache", "40")),
)

STRUCTURES = (
    ("a list of pairs", "pairs"),
    ("lists that grow in turn", "lists"),
    ("syntax trees", "trees"),
    ("a balanced tree", "map"),
    ("a hash table", "table"),
    ("arrays of floats", "floats"),
    ("arrays of boxed floats", "boxed"),
    ("lazies, half of them forced", "lazies"),
    ("weak arrays", "weak"),
)

TURNOVER = (
    ("0.1 to 1 MB, 100 MB in all", ("100", "1000", "100", "10000")),
    ("0.1 to 4 MB, 400 MB in all", ("100", "4000", "400", "2500")),
    ("0.1 to 16 MB, 200 MB in all", ("100", "16000", "200", "600")),
)

# What regions give: the step and entries of the map, seconds, with what.
REGION_STEPS = (
    ("a map of 1 M entries", ("full-major", "1000000"), 6, (BASE, OURS, REGIONS)),
    ("copies of 1 M entries, 20 M cells", ("copying", "1000000"), 20, (BASE, OURS, REGIONS)),
    ("a map of 1 M entries as a file", ("loading", "1000000"), 8, (BASE, OURS, REGIONS)),
    ("eight workers read a map", ("workers", "1000000"), 15, (BASE, MARSHALLED, OURS, REGIONS)),
    ("a map of 1 M entries, evicted", ("evicted", "1000000"), 7, (BASE, REGIONS)),
    ("another domain waits for a copy", ("waits", "1000000"), 9, (BASE, OURS, REGIONS)),
    ("an array of 1 M cells that change", ("changing", "1000000"), 4, (BASE, OURS, REGIONS)),
    ("many small regions", ("many",), 5, (BASE, OURS, REGIONS)),
    ("1 M copies that are dropped", ("dropping", "1000000"), 40, (BASE, OURS, REGIONS)),
)

THEORY_STEPS = (
    ("loaded", ("theories",), 8),
    ("copied", ("merging",), 9),
)

# Programs that hash-cons; `arguments`: the step, and its size.
HASHCONS_STEPS = (
    ("quicksort in the λ-calculus", ("quicksort", "40"), 5, BOTH),
    ("pigeon-hole diagrams", ("pigeons", "9"), 4, BOTH),
    ("300,000 terms that come and go", ("turnover", "300000"), 15, BOTH),
    ("terms of Coq's finite sets", ("theories", "theories/MSets"), 5, BOTH),
    ("terms of Coq's numbers", ("theories", "theories/Numbers"), 24, FULL),
)

# Equal hashes: the step, and how many.
CROWDED_STEPS = tuple(
    (f"{size:,} with equal hashes, {what}", (step, str(size)))
    for step, what in (("groups", "one table"), ("tables", "a table for each"))
    for size in (1, 10, 100, 2000)
)

# Owned data: the step, its size, and seconds.
LINEAR_STEPS = (
    ("a map of 1 M numbers", ("numbers", "1000000"), 5, BOTH),
    ("a map of 4 M numbers", ("numbers", "4000000"), 25, FULL),
    ("a map from 1 M numbers to strings", ("texts", "1000000"), 6, BOTH),
    ("a list of 1 M numbers", ("lists", "1000000"), 2, BOTH),
    ("quicksort of a list of 1 M numbers", ("quicksort", "1000000"), 4, BOTH),
    ("a cache of 1 M strings", ("cache", "1000000"), 8, BOTH),
    ("a cache of 10 M strings", ("cache", "10000000"), 90, FULL),
)

# Cache servers: entries, requests of each kind, requests a second and for how many seconds; seconds, memory. Three
# rounds of 2 M entries with all rivals take some 20 minutes.
CACHE_STEPS = (
    ("100,000 entries", ("measure", "100000", "200000", "20000", "5"), 15, 2, QUICK),
    ("2 M entries", ("measure", "2000000", "200000", "20000", "15"), 50, 2, FULL),
    ("10 M entries", ("measure", "10000000", "2000000", "20000", "60"), 280, 8, FULL),
)

# Programs with an idle processor, and without: the program, how many others count, and seconds.
HELPER_RIVALS = (BASE, OURS, HELPED, HELPED_60, HELPED_SMALL)
HELPER_STEPS = (
    ("a graph of 300,000 nodes", "graph", 3, BOTH),
    ("a hash table of 500,000 strings", "table", 3, BOTH),
    ("a map of 1 M entries", "map", 3, BOTH),
    ("a window of 1 M references", "window", 3, FULL),
    ("lists of 1 M numbers", "lists", 3, FULL),
    ("a heap of 1 GB", "major", 15, FULL),
    ("two domains, a table each", "domains", 3, FULL),
)

# Data that are dropped: what the program does then, and seconds.
FOLLOW = (
    ("all dropped, then work for 10 s", "work", 12),
    ("all dropped, then idle for 6 s", "idle", 8),
    ("2 % survive, then work for 10 s", "running", 12),
    ("2 % survive, then idle for 6 s", "sparse", 8),
    ("20 phases that grow and shrink", "phases", 40),
    ("built, dropped and collected 20 times", "rebuild", 25),
)

WORKLOADS = {
    w.name: w
    for w in [
        Workload(
            "marking",
            "one major collection of a heap of small blocks that stays as it is (processor time)",
            tuple(marking(**m) for m in MARKING),
            main=(BASE, TABLE, OURS),
            measure=execute.printed,
            hidden=("building", "mappings"),
            context=("in huge pages",),
        ),
        Workload(
            "structures",
            "one major collection of a structure that stays as it is (processor time)",
            tuple(
                Case(f"0.3 GB, {label}", (kind, "300", "4"), MAIN, mode, seconds=4)
                for mode in (QUICK, FULL)
                for label, kind in (STRUCTURES if mode == FULL else STRUCTURES[:3])
            ),
            main=(BASE, TABLE, OURS),
            measure=execute.printed,
            hidden=("building", "mappings"),
            context=("in huge pages",),
        ),
        Workload(
            "marking, words",
            "what the marker looks at in one such collection (instrumented runtime)",
            tuple(marking(**m, count=True) for m in MARKING if m["size"] < 1000),
            program="marking",
            measure=execute.printed,
        ),
        Workload(
            "marking, layout",
            "the same, with the runtime's code at other places in memory, and compiled by clang",
            tuple(
                marking(**m, rivals=(BASE, TABLE, CLANG, *SHIFTED), modes=FULL)
                for m in (
                    dict(label="0.2 GB, random", size=200),
                    dict(label="0.2 GB, sequential", size=200, order="sequential"),
                )
            ),
            program="marking",
            ours=TABLE,
            beside=(CLANG, *SHIFTED),
            main=(BASE, TABLE, CLANG, *SHIFTED),
            measure=execute.printed,
            hidden=("building", "mappings", "in huge pages"),
        ),
        Workload(
            "access",
            "random reads of memory in small and in huge pages, in C: what the machine offers",
            (Case("0.8 GB", ("800",), (BASE,), seconds=12, gigabytes=1.0),),
            measure=execute.printed,
        ),
        Workload(
            "compaction",
            "a heap of two kinds of blocks, one freed, compacted, all freed, compacted; "
            "built again, half of each freed at random, compacted",
            (
                Case("0.5 GB", ("500",), QUICK_TIMED, QUICK, seconds=3),
                Case("0.5 GB", ("500",), TIMED, FULL, seconds=3),
                Case("2 GB", ("2000",), MAIN, FULL, seconds=12, timeout=300, gigabytes=3),
            ),
            measure=execute.over_time,
            context=("huge: ",),
        ),
        Workload(
            "turnover",
            "large arrays that come and go, a random one replaced each time (processor time)",
            tuple(
                Case(
                    label,
                    arguments,
                    (BASE, *PRELOADED, TABLE, OURS) if mode == QUICK else (*MAIN, "stock-thp", *PRELOADED),
                    mode,
                    seconds=3,
                )
                for mode in (QUICK, FULL)
                for label, arguments in TURNOVER
            ),
            measure=execute.printed,
        ),
        Workload(
            "follow",
            "memory of a program whose data are dropped, without a call (resident memory, processor time)",
            tuple(
                Case(label, (kind,), (BASE, BY_CALLS, OURS), mode, seconds=seconds)
                for mode in (QUICK, FULL)
                for label, kind, seconds in FOLLOW
                if mode == FULL or kind in ("work", "idle")
            ),
            measure=execute.printed,
        ),
        Workload(
            "survivors",
            "large blocks of which a tenth survives, without compaction (processor time, resident memory)",
            tuple(
                Case(f"600 MB, blocks of {label}", (kilobytes, "600"), (BASE, TABLE, OURS), mode, seconds=2)
                for mode in (QUICK, FULL)
                for label, kilobytes in (("1 MB", "1024"), ("200 KB", "200"))
            ),
            measure=execute.printed,
        ),
        Workload(
            "polymorphic",
            "operations that read headers, on small values in static data or in the heap (processor time)",
            tuple(
                Case(label, (where, "400"), (BASE, NO_NAKED, OURS), seconds=4)
                for label, where in (("static data", "static"), ("heap", "heap"))
            ),
            measure=execute.printed,
        ),
        Workload(
            "regions",
            "data outside the heap: in the heap, beside the same in a region",
            tuple(
                Case(
                    label,
                    arguments,
                    rivals,
                    FULL,
                    seconds=seconds,
                    timeout=300,
                    gigabytes=4,
                    ocaml5_only=arguments[0] in ("waits", "changing", "many", "dropping"),
                )
                for label, arguments, seconds, rivals in REGION_STEPS
            ),
            ours=REGIONS,
            beside=(OURS, MARSHALLED),
            main=(BASE, REGIONS),
            measure=execute.printed_by_workers,
        ),
        Workload(
            "theories",
            "the data of Coq's 583 compiled files: read by Marshal, or from images; copied, with equal blocks merged",
            tuple(
                Case(label, arguments, (BASE, OURS, REGIONS), FULL, seconds=seconds, timeout=300, gigabytes=2)
                for label, arguments, seconds in THEORY_STEPS
            ),
            ours=REGIONS,
            beside=(OURS, MARSHALLED),
            main=(BASE, REGIONS),
            program="regions",
            measure=execute.printed,
        ),
        Workload(
            "dictionary",
            "a server of the WordNet database with eight forked workers, under redis-benchmark",
            (
                Case(
                    "16 connections", ("200000", "16"), (BASE, MARSHALLED, OURS, REGIONS), FULL, seconds=25, timeout=300
                ),
            ),
            ours=REGIONS,
            beside=(OURS, MARSHALLED),
            main=(BASE, REGIONS),
            measure=execute.printed_by_workers,
            needs="redis-benchmark",
        ),
        Workload(
            "coq images",
            "toplevels of Coq that load its real numbers, from .vo files or from images beside them",
            tuple(
                Case(label, (count, "Reals", gc), (BASE, OURS, REGIONS), FULL, seconds=seconds, timeout=120)
                for label, count, gc, seconds in (
                    ("one", "1", execute.COQ_GC, 1),
                    ("eight at once", "8", execute.COQ_GC, 3),
                    ("eight at once, minor heaps of 256k words", "8", "s=256k,o=120", 3),
                )
            ),
            ours=REGIONS,
            beside=(OURS, MARSHALLED),
            main=(BASE, REGIONS),
            program="coq-images",
            measure=execute.toplevels,
        ),
        Workload(
            "hashcons",
            "hash-consing: over Weak.Make and weak arrays in the heap, and in cells outside of it",
            tuple(
                Case(label, arguments, (BASE, BUCKETS, OURS, CELLS), modes, seconds=seconds, gigabytes=1)
                for label, arguments, seconds, modes in HASHCONS_STEPS
            ),
            ours=CELLS,
            beside=(BUCKETS, OURS),
            main=(BASE, CELLS),
            measure=execute.printed,
        ),
        Workload(
            "crowded",
            "hash-consing of values with equal hashes: over Weak.Make and weak arrays in the heap, and in cells",
            tuple(
                Case(label, arguments, (BASE, BUCKETS, OURS, CELLS), BOTH, seconds=3)
                for label, arguments in CROWDED_STEPS
            ),
            ours=CELLS,
            beside=(BUCKETS, OURS),
            main=(BASE, CELLS),
            program="hashcons",
            measure=execute.printed,
            hidden=("peak resident",),
        ),
        Workload(
            "linear",
            "owned maps and lists in cells outside the heap, and those of the library in the heap",
            tuple(
                Case(
                    label,
                    arguments,
                    tuple(
                        r
                        for r in (BASE, MUTABLE, OURS, LINEAR_ON_STOCK, LINEAR)
                        if r != MUTABLE or arguments[0] in ("numbers", "texts")
                    ),
                    modes,
                    seconds=seconds,
                    gigabytes=2,
                )
                for label, arguments, seconds, modes in LINEAR_STEPS
            ),
            ours=LINEAR,
            beside=(MUTABLE, OURS, LINEAR_ON_STOCK),
            main=(BASE, LINEAR),
            measure=execute.printed,
        ),
        Workload(
            "cache",
            "a server of Redis' protocol, under redis-benchmark and at a fixed rate; half of the requests write",
            tuple(
                Case(label, arguments, CACHES, modes, seconds=seconds, timeout=900, gigabytes=gigabytes)
                for label, arguments, seconds, gigabytes, modes in CACHE_STEPS
            ),
            ours=LINEAR,
            beside=(OURS, NO_TABLE, ENCODED, LMDB, REDIS, LINEAR_ON_STOCK),
            main=(BASE, LINEAR),
            measure=execute.printed,
            hidden=("server and client apart",),
            context=("the client was late",),
            needs="redis-benchmark",
        ),
        Workload(
            "helper",
            "programs that collect while another processor is idle, or busy (wall clock)",
            tuple(
                Case(
                    ("busy: " if busy else "") + label,
                    (kind, str(busy)),
                    HELPER_RIVALS,
                    modes,
                    seconds=(1 + busy) * seconds,
                    timeout=300,
                    gigabytes=2,
                    ocaml5_only=True,
                )
                for busy, names in ((0, None), (1, ("graph", "table", "map", "window")))
                for label, kind, seconds, modes in HELPER_STEPS
                if not busy or kind in names
            ),
            ours=HELPED,
            beside=(OURS, HELPED_60, HELPED_SMALL),
            main=(BASE, OURS, HELPED, HELPED_60, HELPED_SMALL),
            measure=execute.printed,
        ),
        Workload(
            "helper lanes",
            "what the domain and the helper do in a part of these programs, while they are watched",
            tuple(
                Case(
                    label,
                    (kind, "0", "lanes"),
                    (BASE, OURS, HELPED),
                    modes,
                    seconds=seconds,
                    timeout=300,
                    gigabytes=2,
                    ocaml5_only=True,
                    once=True,
                )
                for label, kind, seconds, modes in HELPER_STEPS
                if kind not in ("major", "domains")
            ),
            program="helper",
            ours=HELPED,
            beside=(OURS,),
            main=(BASE, OURS, HELPED),
            measure=execute.lanes,
            context=("the helper",),
        ),
        Workload(
            "ocamlopt with a helper",
            "the compiler itself, on a generated parser, without the assembler, with an idle processor (wall clock)",
            (
                Case("26,000 lines", ("400",), HELPER_RIVALS, QUICK, seconds=2.5, ocaml5_only=True),
                Case("66,000 lines", ("1000",), HELPER_RIVALS, FULL, seconds=6, ocaml5_only=True),
            ),
            program="ocamlopt",
            ours=HELPED,
            beside=(OURS, HELPED_60, HELPED_SMALL),
            main=(BASE, OURS, HELPED, HELPED_60, HELPED_SMALL),
            measure=execute.compile_parser,
        ),
        *(
            Workload(
                f"{program} with a floor",
                "the same, with memory of the machine spent instead of time",
                tuple(Case(label, (word,), (BASE, LAVISH, OURS, FLOOR), FULL, seconds=5) for label, word in cases),
                program=program,
                ours=FLOOR,
                beside=(OURS,),
                main=(BASE, LAVISH, OURS, FLOOR),
                measure=measure,
                hidden=("wall",),
            )
            for program, measure, cases in (
                ("ocamlopt", execute.compile_parser, (("26,000 lines", "400"), ("66,000 lines", "1000"))),
                ("coq", execute.compile_theory, (("FMapAVL.v", "FSets/FMapAVL"), ("Byte.v", "Strings/Byte"))),
            )
        ),
        Workload(
            "system calls",
            "compaction, under strace",
            (
                Case("0.5 GB", ("500",), (BASE, OURS), QUICK, seconds=6, once=True),
                Case("0.5 GB", ("500",), TIMED, FULL, seconds=6, once=True),
            ),
            program="compaction",
            measure=execute.system_calls,
            needs="strace",
        ),
        Workload(
            "coq hash-consing",
            "coqc on files of its library, with Coq's tables of weak arrays, and with values in cells outside the heap",
            tuple(
                Case(f"{f.rsplit('/', 1)[-1]}.v", (f,), (BASE, OURS, CELLS_ALONE, CELLS), FULL, seconds=8, timeout=300)
                for f in COQ_FILES
            ),
            ours=CELLS,
            beside=(OURS, CELLS_ALONE),
            main=(BASE, CELLS),
            program="coq-hashcons",
            measure=execute.compile_theory,
            hidden=("wall",),
        ),
        Workload(
            "ocamlopt",
            "the compiler itself, on a generated parser, without the assembler",
            (
                Case("26,000 lines", ("400",), QUICK_TIMED, QUICK, seconds=2.5),
                Case("26,000 lines", ("400",), TIMED, FULL, seconds=2.5),
                Case("66,000 lines", ("1000",), (*TIMED, BY_CALLS), FULL, seconds=6),
            ),
            measure=execute.compile_parser,
            hidden=("wall",),
        ),
        Workload(
            "coq",
            "coqc on files of its own library",
            (
                Case("FMapAVL.v", ("FSets/FMapAVL",), MAIN, QUICK, seconds=6),
                *(
                    Case(f"{f.rsplit('/', 1)[-1]}.v", (f,), (*TIMED, BY_CALLS), FULL, seconds=5)
                    for f in ("FSets/FMapAVL", "FSets/FMapFullAVL", "MSets/MSetRBT", "Strings/Byte")
                ),
            ),
            measure=execute.compile_theory,
            hidden=("wall",),
        ),
        Workload(
            "redblack",
            "maps as red-black trees, with minor heaps of several sizes",
            (
                Case("100,000 keys", ("100000", "4"), (BASE, OURS, ADAPTIVE, FIXED[0], FIXED[-1]), QUICK, seconds=1),
                Case("100,000 keys", ("100000", "8"), MINOR, FULL, seconds=2),
                Case("1,000,000 keys", ("1000000", "2"), MINOR, FULL, seconds=4),
            ),
            beside=(ADAPTIVE, *FIXED),
            main=MINOR,
            measure=execute.process,
            hidden=("wall",),
        ),
        Workload(
            "young",
            "programs whose best minor heap is a large or a small one, or one with short pauses",
            (
                *(
                    Case(label, arguments, (BASE, OURS, ADAPTIVE, YOUNG_SIZES[1], YOUNG_SIZES[-1]), QUICK, seconds=1)
                    for label, arguments in YOUNG_STEPS[:2]
                ),
                *(Case(label, arguments, YOUNG, FULL, seconds=3) for label, arguments in YOUNG_STEPS),
            ),
            beside=(ADAPTIVE, PAUSES, *YOUNG_SIZES),
            main=YOUNG,
            measure=execute.printed,
        ),
        Workload(
            "ocamlopt, minor heaps",
            "the same, with minor heaps of several sizes",
            (Case("26,000 lines", ("400",), MINOR, FULL, seconds=2.5),),
            program="ocamlopt",
            beside=(ADAPTIVE, *FIXED),
            main=MINOR,
            measure=execute.compile_parser,
            hidden=("wall",),
        ),
        Workload(
            "coq, minor heaps",
            "the same, with minor heaps of several sizes",
            (Case("FMapAVL.v", ("FSets/FMapAVL",), MINOR, FULL, seconds=6),),
            program="coq",
            beside=(ADAPTIVE, *FIXED),
            main=MINOR,
            measure=execute.compile_theory,
            hidden=("wall",),
        ),
        *(
            Workload(
                f"{program}, words",
                "what the marker looks at from start to end (instrumented runtime)",
                (Case(label, (program, argument), (COUNTING,), seconds=seconds, once=True),),
                program=program,
                measure=execute.counted,
            )
            for program, label, argument, seconds in (
                ("ocamlopt", "26,000 lines", "400", 4),
                ("coq", "FMapAVL.v", "FSets/FMapAVL", 9),
            )
        ),
    ]
}

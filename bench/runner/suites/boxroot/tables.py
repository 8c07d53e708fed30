# SPDX-License-Identifier: MIT
"""The tables of the suite: implementations and workloads. To add one, add its files and one entry here."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Case, Workload
from . import callgrind

OURS, RIVAL = "boxroot", "boxroot-0.4.0"


@dataclass(frozen=True)
class Implementation:
    """One way to hold OCaml values. `library` names where its boxroot.h and C sources come from (see build.py), and
    `adaptors` the folder of rivals/ that presents it to OCaml."""

    name: str
    note: str
    library: str | None = None
    adaptors: str = "foreign"
    flags: tuple[str, ...] = ()
    ocaml5_only: bool = False
    one_thread: bool = False  # for one thread on one domain
    rootless: bool = False  # a floor: keeps nothing alive


IMPLEMENTATIONS = {
    i.name: i
    for i in [
        Implementation(OURS, "this library", "ours"),
        Implementation(RIVAL, "the published crate ocaml-boxroot-sys 0.4.0", "published"),
        Implementation(
            "boxroot_stw",
            "this library, roots scanned while the world is stopped",
            "ours",
            flags=("-DBOXROOT_STW_SCAN=1",),
            ocaml5_only=True,
        ),
        Implementation(
            "thread_unsafe",
            "this library without tests of who calls",
            "ours",
            flags=("-DBOXROOT_THREAD_UNSAFE=1",),
            one_thread=True,
        ),
        Implementation(
            "force_remote",
            "this library, every deletion as if it were remote",
            "ours",
            flags=("-DBOXROOT_FORCE_REMOTE=1",),
        ),
        Implementation("generational", "malloc and a generational global root", "generational"),
        Implementation("global", "malloc and a global root", "global"),
        Implementation("dll", "doubly-linked lists and a scanning hook, one thread only", "dll", one_thread=True),
        Implementation(
            "rem",
            "pools whose young roots are in the collector's remembered set, one thread only",
            "rem",
            one_thread=True,
        ),
        Implementation(
            "bitmap", "blocks with a bitmap of their cells, after HotSpot, one thread only", "bitmap", one_thread=True
        ),
        Implementation(
            "floor", "a bare free list in thread-local storage: no root, no test of who calls", "floor", rootless=True
        ),
        Implementation("malloc", "malloc alone, no root", "malloc", rootless=True),
        Implementation("global_in_place", "a global root within the foreign structure", adaptors="in_place"),
        Implementation(
            "generational_in_place",
            "a generational global root within the foreign structure",
            adaptors="in_place",
            flags=("-DGENERATIONAL=1",),
        ),
        Implementation("gc", "a block of the OCaml heap, handled by C", adaptors="gc"),
        Implementation("ocaml", "OCaml alone, no cell", adaptors="ocaml"),
        Implementation("ocaml_ref", "a mutable record of the OCaml heap", adaptors="ocaml_ref"),
        Implementation("ocaml_list", "the same data in an OCaml list", adaptors="ocaml_list"),
        Implementation("ocaml_array", "the same data in an OCaml array", adaptors="ocaml_array"),
        Implementation("naive", "this library, callee-roots discipline", "ours", adaptors="naive"),
        Implementation("naive-0.4.0", "0.4.0, callee-roots discipline", "published", adaptors="naive"),
        Implementation("camllocal", "CAMLparam and CAMLlocal", adaptors="camllocal"),
    ]
}


ONE_THREAD = ("dll", "rem", "bitmap")
CELLS = (OURS, RIVAL, "boxroot_stw", "gc", "ocaml", "ocaml_ref", *ONE_THREAD)
QUICK_CELLS = (OURS, RIVAL, "boxroot_stw", "gc", "ocaml", "ocaml_ref")
BOTH = (OURS, RIVAL)
LISTS = (OURS, RIVAL, "gc", "ocaml", "generational", "global_in_place", "generational_in_place")
SWITCHES = ("thread_unsafe", "force_remote")
QUICK, FULL, GRID = ("quick",), ("full",), ("grid",)
OTHER_BUILDS = ("O2", "clang", "clang-O2")
NUMBERS = (("1 domain", "1"), ("2 domains", "2"), ("4 domains", "4"), ("all cores", "{cores}"))
STYLES = ("persistent", "ephemeral")
ALL_PLACES = "local,while-marking,blocking-section,thread,domain,two-domains"


def pacing(roots: int, immediates: int, window: int, overhead: int, millions: int, **options) -> Case:
    """One setting of `pacing`: roots, percent of immediates, words of the window, space_overhead (0: the default),
    words to allocate."""
    label = f"{roots / 1e6:g} M roots, {immediates} % immediates, window {window / 1e6:g} Mwords"
    arguments = tuple(str(n) for n in (roots, immediates, window, overhead, millions))
    return Case(label + (f", o={overhead}" if overhead else ""), arguments, **{"implementations": BOTH, **options})


def domains(number: int, work: str, implementations: tuple[str, ...], modes: tuple[str, ...], **options) -> Case:
    """A program that takes a number of domains, and so much work for all of them together."""
    return Case(f"{number} domains", (str(number), work), implementations, modes, ocaml5_only=True, **options)


def copies(
    name: str,
    program: str,
    args: tuple[str, ...],
    implementations: tuple[str, ...] = (OURS, RIVAL, "boxroot_stw", "ocaml", "ocaml_ref", "gc"),
    slow: tuple[str, ...] = ("generational",),
    seconds: float = 2,
    hidden: tuple[str, ...] = ("wall",),
    **options,
) -> Workload:
    """A program that several domains run at the same time, each with all of its work. Its last argument is their
    number."""
    cases = [
        Case(label, (*args, number), implementations, FULL, seconds=seconds, timeout=300, ocaml5_only=True)
        for label, number in NUMBERS
    ]
    cases += [
        Case(label, (*args, number), slow, FULL, seconds=5 * seconds, timeout=900, once=True, ocaml5_only=True)
        for label, number in NUMBERS[:2]
        if slow
    ]
    return Workload(
        f"{name}_domains",
        f"{name} on several domains, each of which does it all (per copy)",
        tuple(cases),
        program=program,
        hidden=hidden,
        **options,
    )


WORKLOADS = {
    w.name: w
    for w in [
        # The fast paths, in each build.
        Workload(
            "pair",
            "create and delete in batches, modify (processor time)",
            (
                Case(
                    "",
                    ("0.03", "5"),
                    (OURS, RIVAL, "floor", *SWITCHES, "boxroot_stw", *ONE_THREAD, "malloc", "generational", "global"),
                    seconds=1.3,
                ),
                Case("", ("0.02", "5"), (OURS, RIVAL, "floor"), builds=OTHER_BUILDS, seconds=0.9),
            ),
        ),
        Workload(
            "instructions",
            "instructions per operation, batches of 1,000, loop excluded (callgrind)",
            (
                Case("", (), (OURS, RIVAL, "floor", "thread_unsafe", *ONE_THREAD, "malloc"), seconds=4, once=True),
                Case("", (), (OURS, RIVAL, "floor"), builds=OTHER_BUILDS, seconds=4, once=True),
            ),
            program="pair",
            measure=callgrind.instructions,
        ),
        Workload(
            "local_roots",
            "fixpoint of depth N through C and back (processor time of one computation)",
            (
                Case(
                    "",
                    ("0.03", "5"),
                    (OURS, RIVAL, "thread_unsafe", "naive", "naive-0.4.0", "camllocal", "ocaml", "generational"),
                    QUICK,
                    seconds=0.9,
                ),
                Case("", ("0.02", "5"), BOTH, QUICK, ("clang",), seconds=0.7),
                Case(
                    "",
                    ("0.1", "9"),
                    (
                        OURS,
                        RIVAL,
                        *SWITCHES,
                        "naive",
                        "naive-0.4.0",
                        "camllocal",
                        "ocaml",
                        *ONE_THREAD,
                        "generational",
                        "global",
                    ),
                    FULL,
                    seconds=5.5,
                ),
                Case("", ("0.1", "9"), (OURS, RIVAL, "generational"), FULL, OTHER_BUILDS, seconds=5.5),
            ),
            modules=("fixpoint",),
        ),
        # After the authors' own programs: perm_count, ephemeral, parallel, synthetic, globroots (and local_roots).
        Workload(
            "perm_count",
            "permutations in a list monad, a cell per element (processor time)",
            (
                Case("n=10", ("10", "persistent"), QUICK_CELLS, QUICK, seconds=2.2),
                Case("n=10", ("10", "persistent"), (*CELLS, *SWITCHES), FULL, seconds=2.2),
                Case("n=10", ("10", "persistent"), BOTH, FULL, OTHER_BUILDS, seconds=2.2),
                Case("n=10", ("10", "persistent"), ("generational",), seconds=9, once=True),
                Case("n=10", ("10", "persistent"), ("global",), FULL, seconds=60, timeout=600, once=True),
            ),
            modules=("cell",),
            hidden=("wall",),
        ),
        Workload(
            "ephemeral",
            "the same with lists that are changed in place (processor time)",
            (
                Case("n=10", ("10", "ephemeral"), QUICK_CELLS, QUICK, seconds=2),
                Case("n=10", ("10", "ephemeral"), (*CELLS, *SWITCHES), FULL, seconds=2),
                Case("n=10", ("10", "ephemeral"), ("generational",), FULL, seconds=9, once=True),
                Case("n=10", ("10", "ephemeral"), ("global",), FULL, seconds=60, timeout=600, once=True),
            ),
            program="perm_count",
            modules=("cell",),
            hidden=("wall",),
        ),
        Workload(
            "choice",
            "the list monad itself in C, a root per element, new nodes or the old ones (processor time)",
            (
                *(Case(f"{style}, n=9", ("9", style), LISTS, QUICK, seconds=0.5) for style in STYLES),
                *(
                    Case(
                        f"{style}, n=10",
                        ("10", style),
                        (*LISTS, "boxroot_stw", *SWITCHES, *ONE_THREAD),
                        FULL,
                        seconds=4,
                    )
                    for style in STYLES
                ),
                *(
                    Case(f"{style}, n=10", ("10", style), ("global",), FULL, seconds=60, timeout=600, once=True)
                    for style in STYLES
                ),
            ),
            modules=("lists",),
            hidden=("wall",),
        ),
        Workload(
            "parallel",
            "domains that send each other cells, producers and consumers (per message)",
            (
                *(domains(n, "2000000", BOTH, QUICK, seconds=0.8) for n in (2, 4)),
                *(domains(n, "8000000", (OURS, RIVAL, "boxroot_stw", "ocaml_ref"), FULL, seconds=3) for n in (2, 4)),
                *(domains(n, "8000000", ("generational",), FULL, seconds=20, timeout=600, once=True) for n in (2, 4)),
            ),
            modules=("cell",),
        ),
        Workload(
            "synthetic",
            "cells and values that live and die by generation (processor time)",
            (
                Case("N=6", ("n=6",), QUICK_CELLS, QUICK, seconds=0.9),
                Case("N=8", ("n=8",), (*CELLS, *SWITCHES), FULL, seconds=3.5),
                Case("N=8", ("n=8",), ("generational",), FULL, seconds=25, once=True),
                Case("N=8", ("n=8",), ("global",), FULL, seconds=60, timeout=600, once=True),
            ),
            modules=("cell",),
            hidden=("wall", "roots created"),
        ),
        Workload(
            "root_share",
            "instructions of synthetic due to root work (callgrind)",
            (
                Case("N=2", ("n=2",), BOTH, QUICK, seconds=6, once=True),
                Case(
                    "N=4", ("n=4",), (OURS, RIVAL, "boxroot_stw", *ONE_THREAD), FULL, seconds=25, timeout=300, once=True
                ),
            ),
            program="synthetic",
            modules=("cell",),
            measure=callgrind.root_share,
        ),
        Workload(
            "globroots",
            "1,024 cells, few changes between collections (processor time)",
            (
                Case("500,000 steps", ("500000",), (*QUICK_CELLS, "generational"), QUICK, seconds=0.6),
                Case("500,000 steps", ("500000",), (*CELLS, *SWITCHES, "generational", "global"), FULL, seconds=0.6),
            ),
            modules=("cell",),
            hidden=("wall",),
        ),
        Workload(
            "pressure",
            "a hash table with OCaml records, in C or in OCaml's heap (processor time, collections, memory)",
            (
                Case(
                    "100,000 entries", ("100000", "2000000"), (OURS, RIVAL, "ocaml", "generational"), QUICK, seconds=1.5
                ),
                Case(
                    "1 M entries",
                    ("1000000", "10000000"),
                    (OURS, RIVAL, "boxroot_stw", "ocaml", *ONE_THREAD),
                    FULL,
                    seconds=12,
                    timeout=300,
                ),
                Case(
                    "1 M entries", ("1000000", "10000000"), ("generational",), FULL, seconds=60, timeout=900, once=True
                ),
            ),
            modules=("store",),
            hidden=("wall", "user time"),
            context=("major collections",),
        ),
        # Remote deletion, of old roots, and what comes after.
        Workload(
            "remote",
            "1 M roots deleted remotely (wall clock per root)",
            (
                Case("", ("1000000", "7", ALL_PLACES), BOTH, QUICK, seconds=0.8),
                Case("", ("1000000", "9", ALL_PLACES), (OURS, RIVAL, "boxroot_stw", "force_remote"), FULL, seconds=1.5),
                Case("", ("1000000", "3", "local,domain,two-domains"), ("generational",), FULL, seconds=3),
            ),
        ),
        Workload(
            "flood",
            "5 M roots deleted by a thread without the lock: what their domain pays at once (processor time)",
            (
                Case("5 M", ("5000000", "1"), BOTH, QUICK, seconds=3),
                Case("5 M", ("5000000", "3"), (OURS, RIVAL, "boxroot_stw"), FULL, seconds=8),
            ),
            modules=("slots",),
        ),
        Workload(
            "old_roots",
            "1 M roots deleted, a value each, while marking and not (processor time per root)",
            (
                Case("", ("1000000", "3"), BOTH, QUICK, seconds=1.5),
                Case("", ("1000000", "9"), (OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "ocaml_array"), FULL, seconds=4),
                Case("", ("1000000", "3"), ("generational",), FULL, seconds=12, timeout=300, once=True),
            ),
            modules=("slots",),
        ),
        Workload(
            "churn",
            "a random one of 2 M old roots is replaced, or gets a young value, with the GC "
            "(processor time per operation)",
            (
                Case("2 M", ("2000000", "2000000"), BOTH, QUICK, seconds=1.6),
                Case(
                    "2 M",
                    ("2000000", "4000000"),
                    (OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "ocaml_array"),
                    FULL,
                    seconds=4,
                ),
                Case("2 M", ("2000000", "1000000"), ("generational",), FULL, seconds=8),
            ),
            modules=("slots",),
            context=("major collections",),
        ),
        Workload(
            "pinned",
            "10 M roots, of which one stays in each pool for ever, and then as many again (processor time)",
            (
                Case("10 M", ("10000000", "2000"), BOTH, QUICK, seconds=2.5),
                Case(
                    "10 M",
                    ("10000000", "2000"),
                    (OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "ocaml_array"),
                    FULL,
                    seconds=2.5,
                ),
                Case("10 M", ("10000000", "2000"), ("generational",), FULL, seconds=30, timeout=600, once=True),
            ),
            modules=("slots",),
        ),
        Workload(
            "exchange",
            "domains in a circle that delete each other's roots (wall clock per root)",
            (
                Case("1 domain", ("1", "300000", "9"), BOTH, seconds=0.1),
                Case("1 domain", ("1", "300000", "9"), ("boxroot_stw", "generational"), FULL, seconds=1),
                Case("1 domain, deleting thread", ("1", "300000", "9", "threads"), BOTH, seconds=0.5),
                Case("2 domains", ("2", "300000", "9"), BOTH, seconds=1, ocaml5_only=True),
                Case(
                    "2 domains",
                    ("2", "300000", "9"),
                    ("boxroot_stw", "generational"),
                    FULL,
                    seconds=2,
                    ocaml5_only=True,
                ),
                Case(
                    "all cores",
                    ("{cores}", "300000", "9"),
                    (OURS, RIVAL, "boxroot_stw", "generational"),
                    FULL,
                    seconds=3,
                    ocaml5_only=True,
                ),
            ),
        ),
        Workload(
            "crowd",
            "2 to 120 domains with roots passed round, and what they leave when they end",
            (
                *(domains(n, "600000", BOTH, QUICK, seconds=seconds) for n, seconds in ((2, 0.6), (16, 1), (120, 4))),
                *(
                    domains(n, "1200000", (OURS, RIVAL, "boxroot_stw", "ocaml_ref"), FULL, seconds=8, timeout=300)
                    for n in (2, 4, 8, 16, 32, 64, 120)
                ),
                *(
                    domains(n, "1200000", ("generational",), FULL, seconds=20, timeout=600, once=True)
                    for n in (2, 16, 120)
                ),
            ),
            modules=("cell",),
        ),
        Workload(
            "contention",
            "domains, and threads without the lock, that create and delete in the same pools (per step)",
            (
                *(
                    Case(
                        f"{label}, 256 slots",
                        (n, "0", "256", "2000000"),
                        BOTH,
                        QUICK,
                        seconds=0.3,
                        ocaml5_only=n != "1",
                    )
                    for label, n in NUMBERS[:2]
                ),
                Case("1 domain, 1 thread, 256 slots", ("1", "1", "256", "2000000"), BOTH, QUICK, seconds=0.3),
                *(
                    Case(
                        f"{label}, {slots} slots",
                        (n, "0", slots, "10000000"),
                        (OURS, RIVAL, "boxroot_stw"),
                        FULL,
                        seconds=2,
                        ocaml5_only=n != "1",
                    )
                    for slots in ("256", "100000")
                    for label, n in NUMBERS
                ),
                *(
                    Case(
                        f"{label}, {slots} slots",
                        (n, "0", slots, "2000000"),
                        ("generational",),
                        FULL,
                        seconds=5,
                        timeout=600,
                        once=True,
                        ocaml5_only=n != "1",
                    )
                    for slots in ("256", "100000")
                    for label, n in NUMBERS
                ),
                *(
                    Case(
                        f"1 domain, {n} thread{'s' * (n > 1)}, 256 slots",
                        ("1", str(n), "256", "10000000"),
                        (OURS, RIVAL, "boxroot_stw"),
                        FULL,
                        seconds=2,
                    )
                    for n in (1, 3)
                ),
            ),
            context=("share deleted",),
        ),
        # Pauses, memory, and the GC's pace.
        Workload(
            "pause",
            "pauses with many live roots",
            (
                Case("1 M, shuffled", ("1000000", "shuffled", "5"), (OURS, RIVAL, "ocaml_list"), QUICK, seconds=1.2),
                Case(
                    "5 M, shuffled",
                    ("5000000", "shuffled", "4"),
                    (OURS, RIVAL, "boxroot_stw", "ocaml_list"),
                    QUICK,
                    seconds=7,
                ),
                *(
                    Case(
                        f"{size} M, {order}",
                        (f"{size}000000", order, "10"),
                        (OURS, RIVAL, "boxroot_stw", "generational", *ONE_THREAD, "ocaml_list", "ocaml_array"),
                        FULL,
                        seconds=4 * size,
                        timeout=900,
                    )
                    for size in (1, 5, 20)
                    for order in ("shuffled", "sequential")
                ),
            ),
            modules=("bag",),
            context=("heap at start",),
        ),
        Workload(
            "release",
            "memory that goes back to the system after deletion",
            (
                Case("20 M roots", ("roots", "20000000"), BOTH, QUICK, seconds=1),
                Case(
                    "20 M roots",
                    ("roots", "20000000"),
                    (OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "generational", "ocaml_array"),
                    FULL,
                    seconds=4,
                    timeout=600,
                ),
                Case("500 domains", ("domains", "500", "100000"), BOTH, seconds=2, ocaml5_only=True),
            ),
            modules=("slots",),
            context=("at the start",),
        ),
        Workload(
            "pacing",
            "the heap that the GC's pace allows beside many roots",
            (
                pacing(5_000_000, 100, 20_000, 0, 100, modes=("quick", "full"), seconds=1.5),
                pacing(5_000_000, 0, 600_000, 0, 100, modes=QUICK, seconds=3),
                *(
                    pacing(
                        5_000_000,
                        share,
                        window,
                        0,
                        200,
                        modes=FULL,
                        implementations=(OURS, RIVAL, "boxroot_stw", *ONE_THREAD, "ocaml_array"),
                        seconds=4,
                    )
                    for share, window in ((0, 20_000), (0, 600_000), (50, 600_000), (100, 600_000))
                ),
                *(
                    pacing(
                        roots,
                        share,
                        window,
                        overhead,
                        100,
                        modes=GRID,
                        implementations=(OURS, RIVAL, "ocaml_array"),
                        seconds=2,
                        timeout=300,
                    )
                    for roots in (100_000, 1_000_000, 5_000_000)
                    for window in (20_000, 600_000, 6_000_000)
                    for overhead in (40, 120, 240)
                    for share in (0, 50, 100)
                ),
            ),
            modules=("slots",),
            context=("major cycles",),
        ),
        Workload(
            "index",
            "a hash table of C over the words of a text (processor time per word)",
            (
                Case(
                    "", ("{text}", "3"), (OURS, RIVAL, "boxroot_stw", "generational", *ONE_THREAD), QUICK, seconds=0.7
                ),
                Case("", ("{text}", "6"), (OURS, RIVAL, "boxroot_stw", "generational", *ONE_THREAD), FULL, seconds=1.4),
                Case("", ("{text}", "1"), ("global",), FULL, seconds=10),
            ),
            hidden=("wall", "time", "user time", "words", "words new to the table", "handlers called"),
        ),
        Workload(
            "server",
            "an event loop in C that calls OCaml closures: the Redis protocol, under redis-benchmark",
            (
                Case("50 connections", ("300000", "50", "16", "100000"), BOTH, QUICK, seconds=2),
                Case(
                    "50 connections",
                    ("2000000", "50", "16", "100000"),
                    (OURS, RIVAL, "boxroot_stw", "generational", "global", *ONE_THREAD),
                    FULL,
                    seconds=12,
                    timeout=600,
                ),
                Case(
                    "50 connections, one request at a time",
                    ("300000", "50", "1", "100000"),
                    (OURS, RIVAL, "boxroot_stw", "generational", "global", *ONE_THREAD),
                    FULL,
                    seconds=12,
                    timeout=600,
                ),
            ),
            context=("requests per second",),
            needs=("redis-benchmark", "redis-tools"),
        ),
        # The same on several domains at once, where the work of one can be done beside that of another.
        copies(
            "local_roots",
            "local_roots",
            ("0.1", "5"),
            (OURS, RIVAL, "boxroot_stw", "naive", "naive-0.4.0", "camllocal", "ocaml"),
            seconds=5,
            modules=("fixpoint",),
        ),
        copies("perm_count", "perm_count", ("10", "persistent"), modules=("cell",)),
        copies("ephemeral", "perm_count", ("10", "ephemeral"), modules=("cell",)),
        copies(
            "choice", "choice", ("10", "persistent"), (OURS, RIVAL, "boxroot_stw", "gc", "ocaml"), modules=("lists",)
        ),
        copies("globroots", "globroots", ("5000",), seconds=2, modules=("cell",)),
        copies(
            "index",
            "index",
            ("{text}", "6"),
            (OURS, RIVAL, "boxroot_stw"),
            seconds=2,
            hidden=("wall", "time", "user time", "words", "words new to the table", "handlers called"),
        ),
        Workload(
            "synthetic_domains",
            "synthetic on several domains, each of which does it all (per copy)",
            (
                *(
                    Case(
                        label,
                        ("n=7", f"domains={n}"),
                        (OURS, RIVAL, "boxroot_stw", "gc", "ocaml", "ocaml_ref"),
                        FULL,
                        seconds=3,
                        timeout=300,
                        ocaml5_only=True,
                    )
                    for label, n in NUMBERS
                ),
                *(
                    Case(
                        label,
                        ("n=7", f"domains={n}"),
                        ("generational",),
                        FULL,
                        seconds=20,
                        timeout=900,
                        once=True,
                        ocaml5_only=True,
                    )
                    for label, n in NUMBERS[:2]
                ),
            ),
            program="synthetic",
            modules=("cell",),
            hidden=("wall", "roots created"),
        ),
    ]
}

NO_ROOT = (
    "floor",
    "malloc",
    "gc",
    "ocaml",
    "ocaml_ref",
    "ocaml_list",
    "ocaml_array",
)  # baselines: they are no roots of foreign code
VARIANTS = ("boxroot_stw", "thread_unsafe", "force_remote", "naive", "naive-0.4.0")  # the two libraries in another way

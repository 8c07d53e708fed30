# SPDX-License-Identifier: MIT
"""Remote deletion, deletion of old roots, and what comes after."""

from __future__ import annotations

from ....model import Case, Workload
from ..implementations import OURS, RIVAL
from .cases import ALL_PLACES, BOTH, FULL, NUMBERS, ONE_THREAD, QUICK, domains

WORKLOADS = (
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
        "a random one of 2 M old roots is replaced, or gets a young value, with the GC (processor time per operation)",
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
            Case("2 domains, 64 at a time", ("2", "300000", "9", "batched"), BOTH, seconds=1, ocaml5_only=True),
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
            *(domains(n, "1200000", ("generational",), FULL, seconds=20, timeout=600, once=True) for n in (2, 16, 120)),
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
)

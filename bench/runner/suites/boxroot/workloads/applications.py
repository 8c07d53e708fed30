# SPDX-License-Identifier: MIT
"""Bindings as their authors write them, and programs with real input."""

from __future__ import annotations

from ....model import Case, Workload
from ..implementations import OURS, RIVAL
from .cases import BOTH, FULL, ONE_THREAD, QUICK

WORKLOADS = (
    Workload(
        "closures",
        "a table of C that keeps 300,000 closures alive (processor time of all of a part)",
        (
            Case(
                "300,000 closures",
                ("300000",),
                (OURS, RIVAL, "generational_in_place", "global_in_place", "ocaml_array"),
                QUICK,
                seconds=2,
            ),
            Case(
                "300,000 closures",
                ("300000",),
                (
                    OURS,
                    RIVAL,
                    "generational_in_place",
                    "global_in_place",
                    "generational",
                    "boxroot_stw",
                    *ONE_THREAD,
                    "ocaml_array",
                ),
                FULL,
                seconds=3,
                timeout=300,
            ),
        ),
        modules=("callbacks",),
        beside=("generational_in_place", "global_in_place"),
        main=(OURS, RIVAL, "generational_in_place"),
    ),
    Workload(
        "index",
        "a hash table of C over the words of a text (processor time per word)",
        (
            Case("", ("{text}", "3"), (OURS, RIVAL, "boxroot_stw", "generational", *ONE_THREAD), QUICK, seconds=0.7),
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
        needs="redis-benchmark",
    ),
)

# SPDX-License-Identifier: MIT
"""The same programs on several domains at once, where the work of one can be done beside that of another."""

from __future__ import annotations

from ....model import Case, Workload
from ..implementations import OURS, RIVAL
from .cases import FULL, NUMBERS


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


WORKLOADS = (
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
    copies("choice", "choice", ("10", "persistent"), (OURS, RIVAL, "boxroot_stw", "gc", "ocaml"), modules=("lists",)),
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
)

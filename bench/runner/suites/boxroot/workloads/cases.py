# SPDX-License-Identifier: MIT
"""What the tables of workloads share: sets of implementations, and cases for a number of domains."""

from __future__ import annotations

from ....model import Case
from ..implementations import OURS, RIVAL

ONE_THREAD = ("dll", "rem", "bitmap")
CELLS = (OURS, RIVAL, "boxroot_stw", "gc", "ocaml", "ocaml_ref", *ONE_THREAD)
QUICK_CELLS = (OURS, RIVAL, "boxroot_stw", "gc", "ocaml", "ocaml_ref")
BOTH = (OURS, RIVAL)
LISTS = (OURS, RIVAL, "gc", "ocaml", "generational", "global_in_place", "generational_in_place")
SWITCHES = ("thread_unsafe", "force_remote")
QUICK, FULL = ("quick",), ("full",)
OTHER_BUILDS = ("O2", "clang", "clang-O2")
NUMBERS = (("1 domain", "1"), ("2 domains", "2"), ("4 domains", "4"), ("all cores", "{cores}"))
STYLES = ("persistent", "ephemeral")
ALL_PLACES = "local,while-marking,blocking-section,thread,domain,two-domains"


def domains(number: int, work: str, implementations: tuple[str, ...], modes: tuple[str, ...], **options) -> Case:
    """A program that takes a number of domains, and so much work for all of them together."""
    return Case(f"{number} domains", (str(number), work), implementations, modes, ocaml5_only=True, **options)

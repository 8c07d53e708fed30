# SPDX-License-Identifier: MIT
"""Why an implementation is not measured in a workload: for each pair of them there is a case, or a reason here."""

from __future__ import annotations

from ...compiler import BENCH
from ...model import Workload
from .implementations import IMPLEMENTATIONS, OURS, Implementation
from .workloads import WORKLOADS

NO_DOMAINS = "OCaml 4.14 has no domains"
LOGARITHMIC = (
    "each operation searches a skip list, and each minor collection visits all roots: it takes minutes, and "
    "perm_count, synthetic and index show it"
)

# Workloads in which more than one thread or domain uses the roots of one.
SHARED = {"parallel", "remote", "flood", "exchange", "crowd", "contention"} | {
    w for w in WORKLOADS if w.endswith("_domains")
}
# Those of them in which a thread deletes without the lock, and nothing else is measured.
WITHOUT_LOCK = {"flood"}
COUNTED = {"instructions", "root_share"}

PAIRS = {
    ("remote", "global"): LOGARITHMIC,
    ("release", "global"): LOGARITHMIC,
    ("flood", "force_remote"): "a thread without the lock deletes: that is what the switch would do",
    ("flood", "ocaml_array"): "a thread that OCaml does not know cannot write an array of OCaml's",
    ("instructions", "boxroot_stw"): "the inline paths are those of boxroot",
    ("instructions", "force_remote"): "pair and remote show it; the switch changes no other path",
    ("local_roots", "boxroot_stw"): "the roots are gone before a collection comes: the same as boxroot",
    ("local_roots", "gc"): "a local root is no cell of OCaml's heap: ocaml and camllocal are the baselines",
    ("local_roots", "ocaml_ref"): "a local root is no cell of OCaml's heap: ocaml and camllocal are the baselines",
    ("crowd", "gc"): "ocaml_ref is the baseline there",
    ("crowd", "ocaml"): "a cell is deleted and read by others: without one there is nothing to hand round",
    ("parallel", "gc"): "ocaml_ref is the baseline there",
    ("parallel", "ocaml"): "a cell is deleted and read by others: without one there is nothing to send",
    ("root_share", "generational"): "its work lies in functions of the runtime, which this count leaves out",
    ("root_share", "global"): "its work lies in functions of the runtime, which this count leaves out",
    ("root_share", "gc"): "no root work: the baseline would be 0",
    ("root_share", "ocaml"): "no root work: the baseline would be 0",
    ("root_share", "ocaml_ref"): "no root work: the baseline would be 0",
}


def lacks_adaptor(workload: Workload, implementation: Implementation) -> bool:
    if not workload.modules:
        return implementation.library is None or implementation.adaptors != "foreign"
    return any(not (BENCH / "rivals" / implementation.adaptors / f"{m}.ml").exists() for m in workload.modules)


def adaptor_reason(workload: Workload, i: Implementation) -> str:
    if i.name in ("naive", "naive-0.4.0", "camllocal"):
        return "a way to write recursive C functions: local_roots only"
    if i.adaptors == "in_place":
        return "a root within the nodes of a structure: choice only"
    if i.name.startswith("ocaml_") or i.name in ("gc", "ocaml"):
        return (
            "C holds the values in this workload, and what lies in OCaml's heap would move away from it"
            if not workload.modules
            else f"has no {' or '.join(workload.modules)}: another baseline of OCaml's heap stands for it"
        )
    return f"has no {' or '.join(workload.modules)}"


def reason(workload: Workload, i: Implementation, ocaml5: bool) -> str | None:
    """Of a pair for which no case is there."""
    if not ocaml5 and i.ocaml5_only:
        return "the collector of OCaml 4.14 visits all roots at once anyhow"
    if not ocaml5 and all(c.ocaml5_only for c in workload.cases):
        return NO_DOMAINS
    if known := PAIRS.get((workload.name, i.name)):
        return known
    if i.rootless:
        return "keeps no value alive: pair and instructions only, where no collection comes between"
    if lacks_adaptor(workload, i):
        return adaptor_reason(workload, i)
    if workload.name == "occupancy":
        return "about pools that are shared by many roots, and by domains: 0.4.0 is the other that has them"
    if i.one_thread and workload.name in SHARED:
        return "for one thread on one domain"
    if i.name in ("generational", "global") and workload.name in WITHOUT_LOCK:
        return "a root of the runtime cannot be deleted without the lock"
    if i.name in ("generational", "global") and workload.name in COUNTED:
        return "most of its work is malloc's and the skip list's, whose length changes: times say more"
    if i.name == "global":
        return LOGARITHMIC
    if i.name in ("thread_unsafe", "force_remote"):
        return f"a switch of {OURS}, measured where creation and deletion are most of the time"
    if i.name == "generational" and workload.name == "pacing":
        return (
            "a collection visits only those with young values, as boxroot's pools do; pause and release show its "
            "collections"
        )
    if workload.name.endswith("_domains"):
        return f"{workload.name.removesuffix('_domains')} shows it on one domain"
    return None


def covered(workload: Workload, i: Implementation, ocaml5: bool) -> bool:
    return any(i.name in c.implementations and (ocaml5 or not (c.ocaml5_only or i.ocaml5_only)) for c in workload.cases)


def empty(ocaml5: bool) -> dict[tuple[str, str], str | None]:
    """(implementation, workload) -> why, of every pair without a case."""
    return {
        (i.name, w.name): reason(w, i, ocaml5)
        for w in WORKLOADS.values()
        for i in IMPLEMENTATIONS.values()
        if not covered(w, i, ocaml5)
    }


WHY_NOT = empty(ocaml5=True)

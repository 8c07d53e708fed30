# SPDX-License-Identifier: MIT
"""The implementations that are compared. To add one, add its files and one entry here."""

from __future__ import annotations

from dataclasses import dataclass

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
        Implementation(
            "by_handle", "this library, created by a handle on the domain", "ours", flags=("-DBY_HANDLE=1",)
        ),
        Implementation(
            "in_storage", "this library, created by a handle on a storage", "ours", flags=("-DIN_STORAGE=1",)
        ),
        Implementation("naive", "this library, callee-roots discipline", "ours", adaptors="naive"),
        Implementation("naive-0.4.0", "0.4.0, callee-roots discipline", "published", adaptors="naive"),
        Implementation("camllocal", "CAMLparam and CAMLlocal", adaptors="camllocal"),
        Implementation(
            "camllocal_each",
            "CAMLparam and CAMLlocal in a function for each value",
            adaptors="camllocal",
            flags=("-DA_CALL_EACH=1",),
        ),
        Implementation("frame", "local frames of this library, with room for all values", "ours", adaptors="frames"),
        Implementation(
            "frame_8",
            "local frames of this library, with room for eight values",
            "ours",
            adaptors="frames",
            flags=("-DCAPACITY=8",),
        ),
        Implementation("weak", "weak roots of this library", "ours", adaptors="weak"),
        Implementation(
            "weak_array", "keys of one weak array, by the primitives of the module Weak", "ours", adaptors="weak_array"
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
VARIANTS = (
    "boxroot_stw",
    "thread_unsafe",
    "force_remote",
    "by_handle",
    "in_storage",
    "naive",
    "naive-0.4.0",
    "frame",
    "frame_8",
    "weak",
)  # the two libraries in another way

# SPDX-License-Identifier: MIT
"""The runtimes that are compared, and where each comes from. `shift`ed, a runtime shows what the place of its code in
memory does to a figure. A program is compiled once and linked with each of
them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ...compiler import ROOT, Compiler

BASE, TABLE, OURS, COUNTING, NO_NAKED, REGIONS, MARSHALLED, CELLS, CELLS_ALONE, BUCKETS = (
    "stock",
    "table",
    "outheap",
    "outheap-count",
    "no-naked",
    "regions",
    "marshal",
    "hash-cells",
    "hash-cells, tables alone",
    "hash-buckets",
)
ADAPTIVE, PAUSES = "minor-adaptive", "minor-adaptive-5ms"
BY_CALLS = "memory-stock"
HELPED, HELPED_60, HELPED_SMALL = "helper", "helper, o=60", "helper, small"
FLOOR, LAVISH = "memory-floor", "stock, o=400"
WIDE_STACK = "stock, mark stack"
LINEAR, LINEAR_ON_STOCK, MUTABLE = "linear", "linear, stock", "mutable"
ENCODED, LMDB, REDIS, NO_TABLE = "bigarray", "lmdb", "redis", "no-table"
SIZES = ("8k", "32k", "128k", "256k", "512k", "1M", "4M", "8M")  # of minor heaps, in words
FIXED = tuple(f"minor-{size}" for size in SIZES)
YOUNG_SIZES = tuple(f"minor-{size}" for size in ("32k", "256k", "1M", "4M", "8M"))
PRELOADED = ("jemalloc", "mimalloc")
SHIFTS = (16, 32, 48)  # bytes; code is fetched in lines of 64
CLANG = "table, clang"
SHIFTED = tuple(f"{rival}+{n}" for rival in (BASE, TABLE) for n in SHIFTS)
TOOL = Path(__file__).with_name("outheap-build")


@dataclass(frozen=True)
class Rival:
    """`variant`: the runtime variant to link with. `environment`: settings at run time, `parameters`: those for
    OCAMLRUNPARAM. `preload`: a shared library. `command`: a program."""

    name: str
    note: str
    variant: str = ""
    environment: dict = field(default_factory=dict)
    parameters: str = ""
    preload: str = ""
    command: str = ""
    versions: str = ""  # only for versions that begin with this
    cc: str = ""  # the C compiler of the variant, if it is not that of OCaml
    shift: int = 0  # bytes by which the runtime's code lies further on


RIVALS = {
    r.name: r
    for r in [
        Rival(BASE, "the compiler's own runtime (OCaml 4.14: the legacy page table)"),
        Rival(
            WIDE_STACK,
            "the same, told to let the mark stack grow to an eighth of the heap, as with Outheap",
            parameters="Xmark_stack_prune_factor=8",
            versions="5.5",
        ),
        Rival(
            "stock-thp",
            "the same, huge pages for what it gets from malloc (glibc.malloc.hugetlb=1)",
            environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
        ),
        Rival(
            "jemalloc",
            "the same, malloc is jemalloc with huge pages (thp:always); on OCaml 5 that concerns large blocks alone",
            environment={"MALLOC_CONF": "thp:always"},
            preload="libjemalloc.so.2",
        ),
        Rival(
            "mimalloc",
            "the same, malloc is mimalloc",
            preload="libmimalloc.so.2",
        ),
        Rival(
            BY_CALLS,
            "Outheap, memory goes back by calls alone, as with the compiler's runtime (memory=stock)",
            "_outheap",
            environment={"OUTHEAP": "memory=stock"},
        ),
        Rival(
            HELPED,
            "Outheap with a thread that marks and sweeps where a processor is idle (helper=auto)",
            "_outheap",
            {"OUTHEAP": "helper=auto"},
            versions="5.",
        ),
        Rival(
            HELPED_60,
            "the same with a space_overhead of 60 instead of 120: what it gains, spent on memory",
            "_outheap",
            {"OUTHEAP": "helper=auto"},
            "o=60",
            versions="5.",
        ),
        Rival(
            HELPED_SMALL,
            "the same with memory=small: half of space_overhead in cycles in which the helper keeps pace",
            "_outheap",
            {"OUTHEAP": "helper=auto,memory=small"},
            versions="5.",
        ),
        Rival(
            FLOOR,
            "Outheap, heaps below 6 % of the memory that is there, at most 512 MB, not collected (memory.floor=auto)",
            "_outheap",
            {"OUTHEAP": "memory.floor=auto"},
            versions="5.",
        ),
        Rival(LAVISH, "the compiler's own runtime with a space_overhead of 400", parameters="o=400"),
        Rival(
            NO_NAKED,
            "the runtime of OCaml 4.14 configured with --disable-naked-pointers: no page table",
            "_nnp",
            versions="4.",
        ),
        Rival(
            "no-naked-thp",
            "the same with glibc.malloc.hugetlb=1",
            "_nnp",
            {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
            versions="4.",
        ),
        Rival("thp-only", "Outheap's large pages, without its table in marking", "_outheap_notable", versions="5."),
        Rival(
            TABLE,
            "Outheap without huge pages: the table, and large pages of 4 KB ones",
            "_outheap",
            {"OUTHEAP": "thp=off"},
        ),
        Rival(
            "table-order",
            "the same, table synchronised by dependency ordering instead of taint",
            "_outheap_order",
            {"OUTHEAP": "thp=off"},
        ),
        Rival(OURS, "Outheap with its default settings", "_outheap"),
        Rival("outheap-always", "Outheap with huge pages for everything", "_outheap", {"OUTHEAP": "thp=always"}),
        Rival(
            REGIONS,
            "Outheap, with the data of the program in a region instead of the heap",
            "_outheap",
            {"BENCH_DATA": "region"},
        ),
        Rival(
            MARSHALLED,
            "the stock runtime, where each process reads the data from a file of Marshal",
            environment={"BENCH_DATA": "marshal"},
        ),
        Rival(
            CELLS,
            "Outheap, with hash-consed values in cells outside the heap (outheap.hashcons)",
            "_outheap",
            {"BENCH_HASHCONS": "cells"},
        ),
        Rival(
            CELLS_ALONE,
            "the same, where nothing but tables is changed: terms are not asked whether they are in cells",
            "_outheap",
            {"BENCH_HASHCONS": "cells", "COQ_HASHCONS": "tables"},
        ),
        Rival(
            BUCKETS,
            "the compiler's own runtime, with hash-consed values in an array of weak arrays",
            environment={"BENCH_HASHCONS": "buckets"},
        ),
        Rival(
            LINEAR,
            "Outheap, with owned data in cells outside the heap (outheap.linear)",
            "_outheap",
            {"BENCH_LINEAR": "linear"},
        ),
        Rival(
            LINEAR_ON_STOCK,
            "the compiler's own runtime, with owned data in cells outside the heap",
            environment={"BENCH_LINEAR": "linear"},
        ),
        Rival(
            MUTABLE,
            "the compiler's own runtime, with trees of the heap that are changed in place",
            environment={"BENCH_LINEAR": "mutable"},
        ),
        Rival(
            ENCODED,
            "the compiler's own runtime, with the entries of a cache encoded in bigarrays",
            environment={"BENCH_LINEAR": "bigarray"},
        ),
        Rival(
            LMDB,
            "the compiler's own runtime, with the entries of a cache in LMDB, not synchronised with its file",
            environment={"BENCH_LINEAR": "lmdb"},
        ),
        Rival(
            REDIS,
            "Redis itself as the cache server",
            environment={"BENCH_LINEAR": "redis"},
            command="redis-server",
        ),
        Rival(
            NO_TABLE,
            "the compiler's own runtime, a cache server without a table, which answers from the key: the floor",
            environment={"BENCH_LINEAR": "none"},
        ),
        Rival(
            ADAPTIVE,
            "Outheap with minor heaps that adapt their size (minor=adaptive)",
            "_outheap",
            {"OUTHEAP": "minor=adaptive"},
            "s=256k",
        ),
        Rival(
            PAUSES,
            "the same with pauses of 5 ms (minor=adaptive,pause=5ms)",
            "_outheap",
            {"OUTHEAP": "minor=adaptive,pause=5ms"},
            "s=256k",
        ),
        *(
            Rival(name, f"Outheap with minor heaps of {size} words", "_outheap", parameters=f"s={size}")
            for name, size in zip(FIXED, SIZES)
        ),
        *(
            Rival(
                f"{name}+{n}",
                f"`{name}`, the runtime's code {n} bytes further on",
                variant,
                environment,
                shift=n,
            )
            for name, variant, environment in ((BASE, "", {}), (TABLE, "_outheap", {"OUTHEAP": "thp=off"}))
            for n in SHIFTS
        ),
        Rival(CLANG, "`table`, compiled by clang", "_outheap", {"OUTHEAP": "thp=off"}, cc="clang"),
        Rival(COUNTING, "Outheap's instrumented flavour, for counts only", "_outheap_count", {"OUTHEAP": "stats=1"}),
    ]
}
FLAVOURS = {
    "_outheap": "release",
    "_outheap_count": "count",
    "_outheap_order": "order",
    "_outheap_notable": "notable",
}  # of outheap-build


class Missing(Exception):
    """A runtime that cannot be had; the message says why."""


class Runtimes:
    """The folder with the runtime variants for one compiler."""

    def __init__(self, compiler: Compiler, prefix: Path, folder: Path, ready: Path | None = None):
        self.compiler, self.prefix = compiler, prefix
        self.folder, self.made_here = (ready, False) if ready else (folder, True)
        self.why: dict[str, str] = {}
        self.preloaded: dict[str, Path] = {}

    def archive(self, variant: str, cc: str = "") -> Path:
        return self.folder / cc / f"libasmrun{variant}.a"

    def prepare(self, rivals: list[Rival]) -> None:
        """Builds what these rivals need and this folder lacks."""
        if not self.made_here:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = {r.variant for r in rivals if r.variant}
        if "_nnp" in wanted:
            self._no_naked_pointers()
        self._outheap({v: FLAVOURS[v] for v in wanted if v in FLAVOURS})
        for cc in dict.fromkeys(r.cc for r in rivals if r.cc):
            if subprocess.run([ROOT / "tools" / "need", cc], stdout=subprocess.DEVNULL).returncode == 0:
                self._outheap({r.variant: FLAVOURS[r.variant] for r in rivals if r.cc == cc}, cc)
            else:
                self.why[cc] = f"{cc} is missing"

    def _no_naked_pointers(self) -> None:
        # What ocamlopt emits does not depend on that choice, so the other configuration's runtime fits this compiler's
        # programs.
        done = subprocess.run(
            [ROOT / "tools" / "toolchain", f"{self.compiler.version}+nnp"], stdout=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            self.why["_nnp"] = f"tools/toolchain cannot build {self.compiler.version}+nnp"
            return
        shutil.copy(Path(done.stdout.strip()) / "lib" / "ocaml" / "libasmrun.a", self.archive("_nnp"))

    def _outheap(self, wanted: dict[str, str], cc: str = "") -> None:
        if not wanted:
            return
        if not TOOL.exists():
            self.why |= dict.fromkeys(wanted, f"{TOOL} does not exist")
            return
        known = subprocess.run([TOOL, "--help"], capture_output=True, text=True).stdout
        for variant, flavour in list(wanted.items()):
            if f"{variant} " not in known and variant not in known.split():
                self.why[variant] = f"outheap-build has no flavour `{flavour}`"
                del wanted[variant]
        digest = hashlib.sha256(repr(sorted(wanted)).encode() + TOOL.read_bytes())
        for source in sorted(
            p for f in ("include", "runtime", "tool") for p in (ROOT / "outheap" / f).rglob("*") if p.is_file()
        ):
            digest.update(str(source).encode() + source.read_bytes())
        stamp, archives = self.folder / cc / "stamp", [self.archive(v, cc) for v in wanted]
        if stamp.exists() and stamp.read_text() == digest.hexdigest() and all(a.exists() for a in archives):
            return
        for variant in FLAVOURS:
            self.archive(variant, cc).unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        command = [TOOL, "--ocaml", self.prefix, "--output", stamp.parent, "--flavours", " ".join(wanted.values())]
        command += ["--self-test", "0", *(["--cc", cc] if cc else [])]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            why = "outheap-build failed: " + " / ".join(done.stderr.strip().splitlines()[-3:])
            self.why |= dict.fromkeys([cc] if cc else wanted, why)
            return
        stamp.write_text(digest.hexdigest())

    def environment(self, rival: Rival) -> dict[str, str]:
        """Settings at run time; what is preloaded, or run, is installed where it is missing."""
        need = [ROOT / "tools" / "need", rival.command]
        if rival.command and subprocess.run(need, stdout=subprocess.DEVNULL).returncode != 0:
            raise Missing(f"{rival.command} is missing")
        if not (library := rival.preload):
            return rival.environment
        if library not in self.preloaded:
            subprocess.run([ROOT / "tools" / "need", "-l", library], stdout=subprocess.DEVNULL)
            asked = [self.compiler.cc.split()[0], f"-print-file-name={library}"]
            self.preloaded[library] = Path(subprocess.run(asked, stdout=subprocess.PIPE, text=True).stdout.strip())
        if not self.preloaded[library].is_absolute():
            raise Missing(f"{library} is missing")
        return {**rival.environment, "LD_PRELOAD": str(self.preloaded[library])}

    def link_flags(self, rival: Rival) -> list[str]:
        if not rival.variant:
            return []
        archive = self.archive(rival.variant, rival.cc)
        if not archive.exists():
            raise Missing(self.why.get(rival.cc or rival.variant, f"there is no {archive.name}"))
        return ["-I", str(archive.parent), "-runtime-variant", rival.variant]

    def digest(self, rival: Rival) -> bytes:
        if not rival.variant:
            return b""
        return hashlib.sha256(self.archive(rival.variant, rival.cc).read_bytes()).digest()

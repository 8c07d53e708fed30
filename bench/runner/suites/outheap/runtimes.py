# SPDX-License-Identifier: MIT
"""The runtimes that are compared, and where each comes from. A program is compiled once and linked with each of
them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ...compiler import ROOT, Compiler

BASE, TABLE, OURS, COUNTING, NO_NAKED, REGIONS = (
    "stock",
    "table",
    "outheap",
    "outheap-count",
    "no-naked",
    "regions",
)
TOOL = ROOT / "outheap" / "tool" / "outheap-build"


@dataclass(frozen=True)
class Rival:
    """`variant`: the runtime variant to link with. `environment`: settings at run time."""

    name: str
    note: str
    variant: str = ""
    environment: dict = field(default_factory=dict)
    versions: str = ""  # only for versions that begin with this


RIVALS = {
    r.name: r
    for r in [
        Rival(BASE, "the compiler's own runtime (OCaml 4.14: the legacy page table)"),
        Rival(
            "stock-thp",
            "the same, huge pages for what it gets from malloc (glibc.malloc.hugetlb=1)",
            environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
        ),
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
            {"BENCH_REGIONS": "1"},
        ),
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

    def archive(self, variant: str) -> Path:
        return self.folder / f"libasmrun{variant}.a"

    def prepare(self, rivals: list[Rival]) -> None:
        """Builds what these rivals need and this folder lacks."""
        if not self.made_here:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = {r.variant for r in rivals if r.variant}
        if "_nnp" in wanted:
            self._no_naked_pointers()
        self._outheap({v: FLAVOURS[v] for v in wanted if v in FLAVOURS})

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

    def _outheap(self, wanted: dict[str, str]) -> None:
        if not wanted:
            return
        if not TOOL.exists():
            self.why |= dict.fromkeys(wanted, "outheap/tool/outheap-build does not exist")
            return
        known = subprocess.run([TOOL, "--help"], capture_output=True, text=True).stdout
        for variant, flavour in list(wanted.items()):
            if f"{variant} " not in known and variant not in known.split():
                self.why[variant] = f"outheap-build has no flavour `{flavour}`"
                del wanted[variant]
        digest = hashlib.sha256(repr(sorted(wanted)).encode())
        for source in sorted(
            p for f in ("include", "overlay", "src", "tool") for p in (ROOT / "outheap" / f).rglob("*") if p.is_file()
        ):
            digest.update(str(source).encode() + source.read_bytes())
        stamp = self.folder / "stamp"
        if stamp.exists() and stamp.read_text() == digest.hexdigest() and all(self.archive(v).exists() for v in wanted):
            return
        for variant in FLAVOURS:
            self.archive(variant).unlink(missing_ok=True)
        command = [TOOL, "--ocaml", self.prefix, "--output", self.folder, "--flavours", " ".join(wanted.values())]
        command += ["--self-test", "0"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            self.why |= {
                v: "outheap-build failed: " + " / ".join(done.stderr.strip().splitlines()[-3:]) for v in wanted
            }
            return
        stamp.write_text(digest.hexdigest())

    def link_flags(self, rival: Rival) -> list[str]:
        if not rival.variant:
            return []
        if not self.archive(rival.variant).exists():
            raise Missing(self.why.get(rival.variant, f"there is no {self.archive(rival.variant).name}"))
        return ["-I", str(self.folder), "-runtime-variant", rival.variant]

    def digest(self, rival: Rival) -> bytes:
        return hashlib.sha256(self.archive(rival.variant).read_bytes()).digest() if rival.variant else b""

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

from ...compiler import ROOT, BuildError, Compiler

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


FLAVOURS = {
    "_outheap": "release",
    "_outheap_count": "count",
    "_outheap_order": "order",
    "_outheap_notable": "notable",
}  # of outheap-build


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
            raise BuildError(f"{rival.command} is missing")
        if not (library := rival.preload):
            return rival.environment
        if library not in self.preloaded:
            subprocess.run([ROOT / "tools" / "need", "-l", library], stdout=subprocess.DEVNULL)
            asked = [self.compiler.cc.split()[0], f"-print-file-name={library}"]
            self.preloaded[library] = Path(subprocess.run(asked, stdout=subprocess.PIPE, text=True).stdout.strip())
        if not self.preloaded[library].is_absolute():
            raise BuildError(f"{library} is missing")
        return {**rival.environment, "LD_PRELOAD": str(self.preloaded[library])}

    def link_flags(self, rival: Rival) -> list[str]:
        if not rival.variant:
            return []
        archive = self.archive(rival.variant, rival.cc)
        if not archive.exists():
            raise BuildError(self.why.get(rival.cc or rival.variant, f"there is no {archive.name}"))
        return ["-I", str(archive.parent), "-runtime-variant", rival.variant]

    def digest(self, rival: Rival) -> bytes:
        if not rival.variant:
            return b""
        return hashlib.sha256(self.archive(rival.variant, rival.cc).read_bytes()).digest()

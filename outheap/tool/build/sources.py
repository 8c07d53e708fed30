# SPDX-License-Identifier: MIT
"""The sources of the compiler's runtime: found, unpacked, and compared with the compiler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from build import HOME, Stop
from build.compiler import Compiler, output_of

# Headers that are written when the compiler is configured.
CONFIGURED = ("s.h", "m.h", "config.h", "version.h", "opnames.h", "jumptbl.h", "exec.h")


def version_in(folder: Path) -> str:
    """As the file VERSION says; empty: there is none."""
    try:
        return (folder / "VERSION").read_text().splitlines()[0]
    except (OSError, IndexError):
        return ""


def _fits(folder: Path, compiler: Compiler) -> bool:
    version = re.split("[+~ ]", version_in(folder))[0]
    return (folder / "runtime/major_gc.c").is_file() and version == compiler.base


def _unpack(archive: Path, work: Path) -> Path:
    """Without the first folder of its names."""
    target = work / "sources"
    target.mkdir()
    if output_of("tar", "xf", archive, "-C", target, "--strip-components=1") is None:
        raise Stop(1, f"cannot unpack {archive}")
    return target


def _places(compiler: Compiler) -> Iterator[Path]:
    """Where packages leave sources."""
    yield compiler.library.parent / "ocaml-src"
    yield Path((output_of("ocamlfind", "query", "ocaml-src") or "none").strip())
    if switch := os.environ.get("OPAM_SWITCH_PREFIX"):  # of which the compiler is no part: it is the system's
        yield Path(switch) / "lib/ocaml-src"
    for kind in ("sources", "build"):
        yield from sorted(compiler.prefix.glob(f".opam-switch/{kind}/ocaml*"))
    yield Path(f"/usr/src/ocaml-source-{compiler.base}")


def _find(compiler: Compiler, work: Path) -> Path:
    for place in _places(compiler):
        if _fits(place, compiler):
            return place
    for archive in sorted(Path("/usr/src").glob(f"ocaml-source-{compiler.base}.tar*")):
        return _unpack(archive, work)
    fetched = output_of(HOME.parent / "tools/toolchain", "--source", compiler.base)  # in a clone
    if fetched and fetched.strip():
        return Path(fetched.strip())
    raise Stop(3, f"no sources of OCaml {compiler.base} found: `opam install ocaml-src`, Debian's package "
                  "ocaml-source, or name them with --sources")  # fmt: skip


def sources_of(compiler: Compiler, named: str, work: Path) -> Path:
    """The folder that has `runtime`, of exactly the compiler's version. `named`: a folder or an archive; empty: those
    of a package."""
    sources = Path(named).absolute() if named else _find(compiler, work)
    if sources.is_file():
        sources = _unpack(sources, work)
    if not (sources / "runtime/major_gc.c").is_file():
        raise Stop(3, f"no runtime/major_gc.c in {sources}: not the sources of an OCaml compiler")
    if not _fits(sources, compiler):
        raise Stop(3, f"these are the sources of OCaml {version_in(sources)}, the compiler is {compiler.version}")
    # The installed headers are the compiler's own; those of the sources must agree, or the sources were patched
    # differently.
    for header in sorted((sources / "runtime/caml").glob("*.h")):
        installed = compiler.library / "caml" / header.name
        if header.name in CONFIGURED or not installed.is_file():
            continue
        if installed.read_bytes() != header.read_bytes():
            raise Stop(3, f"caml/{header.name} of the sources differs from the compiler's: not the same OCaml "
                          f"{compiler.version}")  # fmt: skip
    return sources

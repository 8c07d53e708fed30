# SPDX-License-Identifier: MIT
"""Compiles the program of a workload with an implementation: one program per pair, all with the same flags."""

from __future__ import annotations

from pathlib import Path

from ... import fetch
from ...compiler import BENCH, BUILT, OCAML_FLAGS, ROOT, USERS, Compiler, built


def library_files(library: str) -> tuple[Path, list[Path], list[Path]]:
    """The folder with boxroot.h, the C sources to compile, and every file they depend on."""
    if library == "ours":
        sources = ROOT / "boxroot"
        return (
            sources / "include",
            [sources / "src" / "all.c"],
            [*sources.glob("include/**/*.h"), *sources.glob("src/**/*.[ch]")],
        )
    folder = fetch.published(BUILT / "rivals") if library == "published" else BENCH / "rivals" / library
    return folder, [c for c in sorted(folder.glob("*.c")) if not c.stem.endswith("_stubs")], [*folder.glob("*.[ch]")]


def program(workload, implementation, compiler: Compiler, build: str = USERS) -> Path:
    """The program, built again when anything it is made of has changed."""
    include, c_sources, depends = library_files(implementation.library) if implementation.library else (None, [], [])
    common, adaptors = BENCH / "common", BENCH / "rivals" / implementation.adaptors
    ml = {"bench.ml": common / "bench.ml", "rng.ml": common / "rng.ml", "steps.ml": common / "steps.ml"}
    ml["domains.ml"] = compiler.domains
    own = [*(adaptors / f"{m}.ml" for m in workload.modules), BENCH / "workloads" / f"{workload.source}.ml"]
    ml |= {path.name: path for path in own}
    stubs = [path.with_name(f"{path.stem}_stubs.c") for path in (ml["bench.ml"], ml["steps.ml"], *own)]
    includes = ["-I", common, *(["-I", include] if include else []), "-I", compiler.where]
    return built(
        compiler.build_dir / workload.source / implementation.name / build,
        f"{workload.source}.exe",
        ml,
        c_sources + [path for path in stubs if path.exists()],
        [*compiler.c_command(build), *implementation.flags, *includes, "-c"],
        [compiler.ocamlopt, *OCAML_FLAGS],
        depends,
    )

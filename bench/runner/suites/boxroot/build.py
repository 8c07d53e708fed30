# SPDX-License-Identifier: MIT
"""Compiles the program of a workload with an implementation: one program per pair, all with the same flags."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ... import fetch
from ...compiler import BENCH, BUILT, OCAML_FLAGS, ROOT, USERS, Compiler, run_tool


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
    directory = compiler.build_dir / workload.source / implementation.name / build
    result = directory / f"{workload.source}.exe"
    include, c_sources, depends = library_files(implementation.library) if implementation.library else (None, [], [])
    adaptors = BENCH / "rivals" / implementation.adaptors
    ml = [BENCH / "common" / n for n in ("bench.ml", "rng.ml", "steps.ml")]
    ml.append(BENCH / "common" / ("domains_ocaml5.ml" if compiler.ocaml5 else "domains_ocaml4.ml"))
    ml += [adaptors / f"{m}.ml" for m in workload.modules]
    ml.append(BENCH / "workloads" / f"{workload.source}.ml")
    stubs = [BENCH / "common" / "bench_stubs.c", BENCH / "common" / "steps_stubs.c"]
    stubs.append(BENCH / "workloads" / f"{workload.source}_stubs.c")
    stubs += [adaptors / f"{m}_stubs.c" for m in workload.modules]
    c_sources = c_sources + [s for s in stubs if s.exists()]

    includes = ["-I", BENCH / "common", *(["-I", include] if include else []), "-I", compiler.where]
    c_command = [*compiler.c_command(build), *implementation.flags, *includes, "-c"]
    ml_names = [p.name.replace("domains_ocaml5", "domains").replace("domains_ocaml4", "domains") for p in ml]
    ocaml_command = [compiler.ocamlopt, *OCAML_FLAGS, *ml_names]

    digest = hashlib.sha256(repr((c_command, ocaml_command)).encode())
    for path in sorted({*ml, *c_sources, *depends, *(BENCH / "common").glob("*.h")}):
        digest.update(str(path).encode() + path.read_bytes())
    stamp = directory / "stamp"
    if result.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return result

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    objects = []
    for source in c_sources:
        run_tool([*c_command, source, "-o", source.stem + ".o"], directory)
        objects.append(source.stem + ".o")
    for source, name in zip(ml, ml_names):
        shutil.copy(source, directory / name)
    run_tool([*ocaml_command, *objects, "-o", result.name], directory)
    stamp.write_text(digest.hexdigest())
    return result

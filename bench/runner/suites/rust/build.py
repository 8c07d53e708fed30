# SPDX-License-Identifier: MIT
"""Builds the programs: one OCaml program per workload, linked with each implementation of its externals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ...compiler import BENCH, OCAML_FLAGS, ROOT, BuildError, Compiler, built
from ...model import Job, Workload
from . import client
from .cargo import Package
from .names import BASE, BUILDS, CLIENTS

RIVALS = BENCH / "rivals"
THREADS = ["-I", "+unix", "-I", "+threads", "unix.cmxa", "threads.cmxa"]  # one of the crates needs the thread library
RUST_LIBRARIES = [word for name in ("pthread", "dl", "m") for word in ("-cclib", f"-l{name}")]
MANIFEST = """[package]
name = "{name}"
version = "0.0.0"
edition = "2021"

[lib]
{kind}

[dependencies]
{crate}
{more}
[workspace]
"""
PUBLISHED = 'ocaml-boxroot-sys = "=0.4.0"\n'  # what the rivals were published with


def first(folders: Iterable[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


@dataclass
class Builder:
    compiler: Compiler
    folder: Path
    implementations: dict
    lock: Lock = field(default_factory=Lock)
    archives: dict[str, Path] = field(default_factory=dict)

    def _manifest(self, name: str, implementation: str, kind: str = "") -> str:
        crate = self.implementations[implementation].crate
        published = "" if "path" in crate else PUBLISHED
        return MANIFEST.format(name=name, kind=kind, crate=crate.format(root=ROOT), more=published)

    def program(self, job: Job) -> Path | Package:
        if job.workload.name == BUILDS:
            return self._project("alone", job.implementation, "")
        if job.workload.name == CLIENTS:
            return self._project("client", job.implementation, client.source(job.implementation))
        return self._program(job.workload, job.implementation)

    def _package(self, name: str, implementation: str) -> Package:
        return Package(self.folder / name / implementation, self.compiler.ocamlopt)

    def _project(self, name: str, implementation: str, source: str) -> Package:
        """A library that is only compiled."""
        package = self._package(name, implementation)
        write(package.folder / "Cargo.toml", self._manifest(name, implementation))
        write(package.folder / "src" / "lib.rs", source)
        package.fetch()
        return package

    def archive(self, implementation: str) -> Path:
        """The externals in Rust: a copy of the folder, so that cargo writes nothing beside the sources."""
        with self.lock:
            if implementation not in self.archives:
                source, package = RIVALS / "rust" / implementation, self._package("archive", implementation)
                kind = 'name = "bench"\ncrate-type = ["staticlib"]'
                write(package.folder / "Cargo.toml", self._manifest("bench", implementation, kind))
                for path in source.rglob("*.rs"):
                    write(package.folder / path.relative_to(source), path.read_text())
                package.fetch()
                package.run("build", "--release", "--offline", "--quiet")
                self.archives[implementation] = package.target / "release" / "libbench.a"
            return self.archives[implementation]

    def _program(self, workload: Workload, implementation: str) -> Path:
        """Built anew when anything it is made of has changed."""
        c, own = self.compiler, RIVALS / "rust" / implementation
        main = first([BENCH / "workloads" / "rust", BENCH / "workloads"], f"{workload.source}.ml")
        folders = [own, RIVALS / "rust", RIVALS / "foreign"]
        adaptors = [first(folders, f"{m}.ml") for m in workload.modules]
        if main is None or None in adaptors:
            raise BuildError(f"{workload.source} has no source")
        ml = {"bench.ml": BENCH / "common" / "bench.ml", "domains.ml": c.domains}
        ml |= {path.name: path for path in [*adaptors, main] if path}
        c_sources, include, linked, depends = [BENCH / "common" / "bench_stubs.c"], [], [], []
        if implementation == BASE:
            names = [f"{name}_stubs.c" for name in (*workload.modules, workload.source)]
            c_sources += [path for name in names if (path := first(folders, name))]
            c_sources.append(ROOT / "boxroot" / "src" / "all.c")
            include = ["-I", ROOT / "boxroot" / "include"]
            depends = [*(ROOT / "boxroot").glob("include/**/*.h"), *(ROOT / "boxroot").glob("src/**/*.[ch]")]
        else:
            linked = [self.archive(implementation), *RUST_LIBRARIES]
            depends = [linked[0]]
        return built(
            self.folder / workload.source / implementation,
            f"{workload.source}.exe",
            ml,
            c_sources,
            [*c.c_command(), "-I", BENCH / "common", *include, "-I", c.where, "-c"],
            [c.ocamlopt, *OCAML_FLAGS, *THREADS],
            depends,
            linked,
        )

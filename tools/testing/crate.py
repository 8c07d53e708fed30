# SPDX-License-Identifier: MIT
"""The Rust crate and its clients: cargo, copies of published crates, OCaml programs over Rust archives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testing import steps
from testing.compilers import Compiler, dune
from testing.run import OUT, ROOT, Outcome, environment, run, shown
from testing.steps import digest, locked

RUST = ROOT / "rust"
CRATE = RUST / "ocaml-boxroot-sys"
CLIENTS = ROOT / "rust/tests/clients"
BUILD = OUT / "rust"
RUNTIME = "link-ocaml-runtime-and-dummy-program"
CARGO = shutil.which("cargo") or str(Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin/cargo")
OLDEST = 85  # of Rust 1.x, as the manifests say
PUBLISHED = {"ocaml-interop": "interop", "ocaml": "ocaml"}  # by the lock file of which client
COPIED = ("ocaml-interop", "ocaml", "clients/interop", "clients/interop-driver", "clients/ocaml")
LIMIT = 900
# What is compiled here is compiled once: with places for backtraces, as rust/Cargo.toml says for its own packages.
CHEAP = {"CARGO_PROFILE_DEV_DEBUG": "line-tables-only", "CARGO_INCREMENTAL": "0"}
# Settings of cargo that `cargo vendor` advises.
VENDORED = '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n'


def missing() -> str:
    """Why nothing of this can be tested here, or an empty string."""
    try:
        said = subprocess.run([CARGO, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "no cargo"
    found = re.match(r"cargo 1\.(\d+)", said)
    if found is None or int(found[1]) < OLDEST:
        return f"Rust 1.{OLDEST} or later is needed, this is {said.strip()}: install it with rustup"
    return ""


@dataclass
class Shop:
    """Where one compiler's crates are built, and its commands."""

    compiler: Compiler
    counter: int = 0
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cargo_bin = str(Path(CARGO).parent)
        self.settings = self.compiler.settings | CHEAP | {"CARGO_TERM_COLOR": "never"}
        self.settings["PATH"] += f":{cargo_bin}"
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        self.fetch_all()

    @property
    def folder(self) -> Path:
        return BUILD / self.compiler.name

    @property
    def target(self) -> Path:
        """Where cargo compiles for all that is built for this compiler: what several depend on, once."""
        return self.folder / "target"

    def try_run(
        self,
        words: Sequence[str | Path],
        cwd: Path,
        target: Path | None = None,
        more: dict[str, str] | None = None,
        without: Sequence[str] = (),
    ) -> Outcome:
        self.counter += 1
        settings = self.settings | ({"CARGO_TARGET_DIR": str(target)} if target else {}) | (more or {})
        settings = {name: value for name, value in settings.items() if name not in without}
        name = re.sub(r"[^a-z0-9]+", "-", " ".join(Path(str(w)).name for w in words[:4]))
        return run(words, cwd, self.folder / f"log/{os.getpid()}-{self.counter:03}-{name}.log", LIMIT, settings)

    def run(
        self, words: Sequence[str | Path], cwd: Path, target: Path | None = None, more: dict[str, str] | None = None
    ) -> str:
        outcome = self.try_run(words, cwd, target, more)
        if not outcome.passed:
            pytest.fail(
                f"{outcome.why}\n{outcome.tail(25)}\nagain: {outcome.again()}\nlog: {shown(outcome.log)}", pytrace=False
            )
        return outcome.text

    def cargo(
        self, *words: str, cwd: Path = CRATE, target: Path | None = None, more: dict[str, str] | None = None
    ) -> str:
        return self.run([CARGO, words[0], "--locked", *words[1:]], cwd, target or self.target, more)

    def pin(self, project: Path) -> None:
        """A project that a test has written depends on what the workspace's lock file names."""
        shutil.copy(RUST / "Cargo.lock", project)

    def online(self, *words: str, cwd: Path) -> str:
        """With the network, or with what was fetched earlier."""
        outcome = self.try_run([CARGO, *words], cwd)
        return outcome.text if outcome.passed else self.run([CARGO, "--offline", *words], cwd)

    def fetch_all(self) -> None:
        """What the crates of the workspace depend on: what tests build with --offline, each in a process of its own,
        they find, whichever comes first."""
        stamp = BUILD / "fetched"
        with locked(BUILD / "fetch.lock"):
            wanted = digest([RUST / "Cargo.lock"], [CARGO, os.environ.get("CARGO_HOME")])
            if not stamp.exists() or stamp.read_text() != wanted:
                self.online("fetch", "--locked", cwd=RUST)
                stamp.write_text(wanted)

    def package(self) -> dict[str, str]:
        """The settings with which dune finds the OCaml package ocaml-boxroot and its command, installed."""
        folder, home = self.folder / "package", RUST / "ocaml-boxroot"
        top = [ROOT / name for name in ("dune", "dune-project", "ocaml-boxroot.opam")]
        files = [file for part in ("ocaml", "glue") for file in (home / part).iterdir()]
        prefix = folder / "prefix"

        def make() -> None:
            for file in top + files:
                place = folder / file.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place)
            name = ("-p", "ocaml-boxroot")
            steps.command([dune(), "build", *name, "@install"], folder, self.settings)
            steps.command([dune(), "install", *name, "--prefix", prefix], folder, self.settings)

        steps.step(folder, top + files, [self.compiler.name], make)
        return {"PATH": f"{prefix}/bin:{self.settings['PATH']}", "OCAMLPATH": str(prefix / "lib")}

    # --- clients

    def fetched(self) -> dict[str, Path]:
        """Sources of the published crates that the clients' lock files name, as cargo unpacks them."""
        found = {}
        with locked(BUILD / "fetch.lock"):
            for name, client in PUBLISHED.items():
                self.online("fetch", "--locked", cwd=CLIENTS / client)
                words = [CARGO, "metadata", "--format-version", "1", "--offline", "--locked"]
                settings = environment(self.settings)
                done = subprocess.run(words, cwd=CLIENTS / client, env=settings, capture_output=True, check=True)
                packages = json.loads(done.stdout)["packages"]
                found[name] = Path(next(p["manifest_path"] for p in packages if p["name"] == name)).parent
        return found

    def lay_out(self, kind: str) -> Path:
        """Copies of crates and clients, over the published ocaml-boxroot-sys, over ours, or over its checked build."""
        folder = self.folder / kind
        for name, source in self.fetched().items():
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns(".cargo-ok", ".cargo_vcs_info.json"))
        shutil.rmtree(folder / "clients", ignore_errors=True)
        shutil.copytree(CLIENTS, folder / "clients", ignore=shutil.ignore_patterns("target"))
        for name in COPIED:
            manifest = folder / name / "Cargo.toml"
            text = manifest.read_text()
            if kind == "checked" and name.startswith("clients/"):
                dependency = 'ocaml-boxroot-sys = { version = "0.4", features = ["checked"] }'
                text = re.sub(r"^\[dependencies\]$", rf"[dependencies]\n{dependency}", text, flags=re.MULTILINE)
            text += "" if "workspace" in tomllib.loads(text) else "\n[workspace]\n"
            text += "" if kind == "published" else f'\n[patch.crates-io]\nocaml-boxroot-sys = {{ path = "{CRATE}" }}\n'
            manifest.write_text(text)
            # Each comes with a lock file, which names 0.4.0; nothing else changes in it.
            if kind != "published":
                self.online("update", "ocaml-boxroot-sys", cwd=folder / name)
            used = self.cargo("tree", "-i", "ocaml-boxroot-sys", cwd=folder / name).splitlines()
            expected = " v0.4.0" if kind == "published" else f"({CRATE})"
            assert any(line.startswith("ocaml-boxroot-sys") and expected in line for line in used), (
                f"{name} uses another ocaml-boxroot-sys"
            )
        return folder

    def ocaml_program(
        self,
        kind: str,
        archive: str,
        name: str,
        files: Sequence[Path],
        flags: Sequence[str] = (),
        more: dict[str, str] | None = None,
    ) -> str:
        """Links an OCaml program with a Rust archive and runs it; its output."""
        folder = self.folder / kind / "work" / f"{archive}-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder)
        library = self.folder / kind / "target/debug" / archive
        self.run(
            [
                self.compiler.ocamlopt,
                "-w",
                "-a",
                "-g",
                *flags,
                *self.compiler.libraries,
                "unix.cmxa",
                "threads.cmxa",
                *(f.name for f in files),
                library,
                "-cclib",
                "-lpthread",
                "-cclib",
                "-ldl",
                "-cclib",
                "-lm",
                "-o",
                f"{name}.exe",
            ],
            folder,
        )
        return self.run([f"./{name}.exe"], folder, more=more)

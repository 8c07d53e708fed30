# SPDX-License-Identifier: MIT
"""What comes from outside at benchmark time, by package name: commands, the published library, data of Debian's
packages. All but commands are cached."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import threading
from pathlib import Path

from .compiler import ROOT, BuildError
from .model import Job, Plan

PUBLISHED_CRATE, PUBLISHED_VERSION = "ocaml-boxroot-sys", "0.4.0"
TEXT_PACKAGE, TEXT_FILE = "dict-foldoc", "usr/share/dictd/foldoc.dict.dz"  # a dictionary of computing, 5.6 MB
WORDNET_PACKAGE, WORDNET_FOLDER = "wordnet-base", "usr/share/wordnet"  # a database of English words, 30 MB
COQ_PACKAGE, COQ_FOLDER = "libcoq-stdlib", "usr/lib/ocaml/coq"  # 583 compiled files, 56 MB
FALLBACK_TEXT_BYTES = 5_000_000
lock = threading.Lock()


class FetchError(BuildError):
    pass


def with_commands(plan: Plan, jobs: list[Job]) -> list[Job]:
    """The jobs whose commands are there, or could be installed."""
    for command in dict.fromkeys(j.workload.needs for j in jobs if j.workload.needs):
        subprocess.run([ROOT / "tools" / "need", command], stdout=subprocess.DEVNULL)
        if not shutil.which(command):
            jobs = plan.without(jobs, lambda j, c=command: j.workload.needs == c, f"{command} is missing")
    return jobs


def unpacked(cache: Path, package: str) -> Path:
    """The files of a Debian package, which is not installed."""
    result = cache / package
    if not result.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = cache / f"{package}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            subprocess.run(["apt-get", "download", package], cwd=cache, check=True, capture_output=True)
            archive = next(cache.glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", archive, partial], check=True, capture_output=True)
            archive.unlink()
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise FetchError(f"the package {package} cannot be fetched (offline?)") from error
        partial.rename(result)
    return result


def wordnet(cache: Path) -> Path:
    """The folder of the WordNet database: index.noun, data.noun, …"""
    with lock:
        installed = Path("/", WORDNET_FOLDER)
        return installed if (installed / "data.noun").exists() else unpacked(cache, WORDNET_PACKAGE) / WORDNET_FOLDER


def theories(cache: Path) -> Path:
    """The folder of the compiled files of Coq's library: theories/Lists/List.vo, … They are read as data."""
    with lock:
        installed = Path("/", COQ_FOLDER)
        complete = (installed / "theories" / "Lists" / "List.vo").exists()
        return installed if complete else unpacked(cache, COQ_PACKAGE) / COQ_FOLDER


def published(cache: Path) -> Path:
    """The C sources of the published library, from crates.io through cargo."""
    with lock:
        sources = cache / "crates" / PUBLISHED_CRATE / "vendor" / "boxroot"
        if sources.exists():
            return sources
        project = cache / "project"
        (project / "src").mkdir(parents=True, exist_ok=True)
        (project / "src" / "lib.rs").touch()
        (project / "Cargo.toml").write_text(
            f'[package]\nname = "rivals"\nversion = "0.0.0"\nedition = "2021"\n\n'
            f'[dependencies]\n{PUBLISHED_CRATE} = "={PUBLISHED_VERSION}"\n\n[workspace]\n'
        )
        if not shutil.which("cargo"):
            raise FetchError(f"cargo is missing: without it {PUBLISHED_CRATE} {PUBLISHED_VERSION} cannot be fetched")
        done = subprocess.run(
            ["cargo", "vendor", "--quiet", str(cache / "crates")], cwd=project, capture_output=True, text=True
        )
        if done.returncode != 0 or not sources.exists():
            raise FetchError(
                f"cargo cannot fetch {PUBLISHED_CRATE} {PUBLISHED_VERSION} (offline?):\n{done.stderr.strip()}"
            )
        return sources


def text(cache: Path, ocaml_where: Path, notice) -> Path:
    """A text of some megabytes: from a Debian package or, failing that, OCaml's own sources."""
    result = cache / "text"
    if result.exists():
        return result
    cache.mkdir(parents=True, exist_ok=True)
    try:
        contents = gzip.decompress((unpacked(cache, TEXT_PACKAGE) / TEXT_FILE).read_bytes())
    except (OSError, FetchError) as error:
        notice(f"index: {error}; taking word lists and OCaml's sources as the text")
        files = [
            *sorted(Path("/usr/share/dict").glob("*")),
            *sorted(ocaml_where.rglob("*.ml")),
            *sorted(ocaml_where.rglob("*.mli")),
        ]
        contents = b"\n".join(f.read_bytes() for f in files if f.is_file())[:FALLBACK_TEXT_BYTES]
        result = cache / "fallback-text"  # so that a later run tries the package again
    partial = result.with_suffix(".partial")
    partial.write_bytes(contents)
    partial.rename(result)
    return result

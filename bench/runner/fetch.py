# SPDX-License-Identifier: MIT
"""What comes from outside at benchmark time, by package name: the published library and a text. Both are cached."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import threading
from pathlib import Path

PUBLISHED_CRATE, PUBLISHED_VERSION = "ocaml-boxroot-sys", "0.4.0"
TEXT_PACKAGE, TEXT_FILE = (
    "dict-foldoc",
    "usr/share/dictd/foldoc.dict.dz",
)  # a dictionary of computing, 5.6 MB of English
FALLBACK_TEXT_BYTES = 5_000_000
lock = threading.Lock()


class FetchError(Exception):
    pass


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
        subprocess.run(["apt-get", "download", TEXT_PACKAGE], cwd=cache, check=True, capture_output=True)
        package = next(cache.glob(f"{TEXT_PACKAGE}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, cache / "package"], check=True, capture_output=True)
        contents = gzip.decompress((cache / "package" / TEXT_FILE).read_bytes())
    except (OSError, subprocess.CalledProcessError, StopIteration):
        notice(
            f"index: the package {TEXT_PACKAGE} cannot be fetched (offline?); "
            "taking word lists and OCaml's sources as the text"
        )
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

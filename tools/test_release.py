# SPDX-License-Identifier: MIT
"""tools/release, in a copy of the tree with a history of its own."""

from __future__ import annotations

import datetime
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.run import ROOT, environment

VERSION = "9.8.7"
CRATES = ("ocaml-boxroot-sys", "ocaml-boxroot-derive", "ocaml-boxroot-build", "ocaml-boxroot", "cargo-ocaml-boxroot")


def said(tree: Path, *words: str, code: int = 0, **more: str) -> str:
    done = subprocess.run(words, cwd=tree, env=environment(more), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def commit(tree: Path) -> None:
    said(tree, "git", "add", "-A")
    said(tree, "git", "-c", "user.name=test", "-c", "user.email=test", "commit", "-q", "-m", "test")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    result = tmp_path / "a tree"
    listed = said(ROOT, "git", "ls-files", "-co", "--exclude-standard").splitlines()
    for file in (file for file in listed if (ROOT / file).exists() or (ROOT / file).is_symlink()):
        (result / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, result / file, follow_symlinks=False)
    said(result, "git", "init", "-q")
    commit(result)
    return result


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
@pytest.mark.skipif(bool(crate.missing()), reason="no Rust")
def test_release(tree: Path) -> None:
    assert "is not released" in said(tree, "tools/release", code=2)
    assert "three numbers" in said(tree, "tools/release", "--set", "9.8", code=1)
    assert said(tree, "tools/release", "--set", VERSION) == f"{VERSION}\n"
    assert f"## {VERSION} ({datetime.date.today()})\n" in (tree / "CHANGES.md").read_text()
    assert "the tree has changes" in said(tree, "tools/release", code=2)
    said(tree, crate.CARGO, "tree", "--offline", "--locked", "--manifest-path", "rust/Cargo.toml")
    commit(tree)
    prefix = str(matrix.compilers()[0].prefix)
    more = {"ADDRESS": "file:///nowhere/boxroot.tar.xz", "OCAML": prefix}
    said(tree, "tools/release", **more)
    made = tree / f"_build/release/{VERSION}"
    archive = made / f"boxroot-{VERSION}.tar.xz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    for package in ("boxroot", "outheap", "ocaml-boxroot"):
        text = (made / f"{package}.opam").read_text()
        assert f'src: "{more["ADDRESS"]}"' in text and f'checksum: "sha256={digest}"' in text
    assert {file.name.rsplit("-", 1)[0] for file in made.glob("*.crate")} == set(CRATES)
    said(made, "sha256sum", "--check", "--quiet", "SHA256SUMS")
    with tarfile.open(archive) as files:
        names = files.getnames()
    assert f"boxroot-{VERSION}/boxroot/include/boxroot.h" in names and not any("/_build" in name for name in names)
    said(tree, "tools/release", **more)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == digest

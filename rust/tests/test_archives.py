# SPDX-License-Identifier: MIT
"""The crates as they are published: packed, unpacked, and used where there is nothing else of this repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import CARGO, VENDORED, Shop
from testing.run import ROOT

RUST = ROOT / "rust"
PACKED = ("ocaml-boxroot-sys", "ocaml-boxroot-derive", "ocaml-boxroot", "ocaml-boxroot-build", "cargo-ocaml-boxroot")
TOGETHER = 90  # cargo 1.90 packs crates that depend on each other and are not published


def why_not() -> str:
    if why := crate.missing():
        return why
    said = subprocess.run([CARGO, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"cargo 1\.(\d+)", said)
    return "" if found and int(found[1]) >= TOGETHER else f"cargo 1.{TOGETHER} or later is needed: {said.strip()}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    skip = [pytest.mark.skip(reason=why)] if (why := why_not()) else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()
    ]
    metafunc.parametrize("compiler", params)


def unpacked(archive: Path, folder: Path) -> Path:
    """The archive's folder, as a directory that stands for a registry has it."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    result = folder / archive.name.removesuffix(".crate")
    (result / ".cargo-checksum.json").write_text('{"files":{},"package":null}')
    return result


@pytest.mark.everything
def test_programs_over_the_archives(compiler: Compiler) -> None:
    """The command from its archive writes a project, which is built of archives and vendored sources, without a
    network. No archive has links, or paths of this machine."""
    shop = Shop(compiler)
    folder, target = shop.folder / "archives", shop.folder / "archives-target"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(target / "package", ignore_errors=True)
    packages = [word for name in PACKED for word in ("-p", name)]
    shop.cargo("package", "--offline", "--allow-dirty", "--no-verify", *packages, cwd=RUST, target=target)
    archives = sorted((target / "package").glob("*.crate"))
    assert len(archives) == len(PACKED), archives
    vendor = folder / "vendor"
    shop.run([CARGO, "--offline", "vendor", vendor], RUST)
    found = {re.sub(r"-\d.*", "", archive.name): unpacked(archive, vendor) for archive in archives}
    assert set(found) == set(PACKED)
    for package in found.values():
        files = [file for file in package.rglob("*") if file.is_file()]
        assert not [file for file in files if file.is_symlink()]
        assert not [file for file in files if str(ROOT) in file.read_text()]
        assert (package / "LICENSE").is_file()

    (folder / ".cargo").mkdir()
    (folder / ".cargo/config.toml").write_text(VENDORED.replace('"vendor"\n', f'"{vendor}"\n'))
    home = folder / "home"
    home.mkdir()
    toolchains = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    more = {"CARGO_HOME": str(home), "RUSTUP_HOME": toolchains}
    command = folder / "command"
    shutil.copytree(found["cargo-ocaml-boxroot"], command)
    (command / "Cargo.lock").unlink(missing_ok=True)
    shop.run([CARGO, "build", "--offline"], command, target, more)
    new = [target / "debug/cargo-ocaml-boxroot", "new", "trial", "--cargo", "--registry"]
    shop.run(new, folder, more=more)
    said = shop.run([CARGO, "test", "--offline"], folder / "trial", target, more)
    assert "1 passed" in said and str(RUST) not in said, said
    assert not (home / "registry/src").exists()

# SPDX-License-Identifier: MIT
"""The programs of docs/start and docs/guide: the files and commands of each section, in a folder of its own.

A block ```LANGUAGE FILE is written to FILE. A block ```sh is run with `sh -eu`. A block ```text is the whole output of
the commands before it. A section with the comment `<!-- with the files above -->` begins with the files of the sections
before it. A section without commands has nothing to test.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from testing.compilers import NO_DUNE

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
ABOVE = "<!-- with the files above -->"
PAGES = [*sorted((ROOT / "docs/start").glob("*.md")), *sorted((ROOT / "docs/guide").glob("*.md"))]
INSTALL = "install: Install with dune"
OPAM = "install: Install with opam"
# beside a compiler and dune
NEEDS = {OPAM: ("opam", "rsync"), "c: CMake": ("cmake",)}
NEEDS |= {"packaging: CMake": ("cmake",), "packaging: pkg-config": ("pkg-config",)}
NEEDS |= dict.fromkeys(("rust: Rust for OCaml, with dune", "rust: OCaml in a Rust program, with cargo"), ("cargo",))
LONG = (OPAM, "outheap: Build the variant", "checking: Find it", *(name for name in NEEDS if name.startswith("rust")))


def sections(page):
    """Each section of a page by its name, with its blocks: language, name of a file, text."""
    above, found = [], {}
    stem = "install" if page.name == "README.md" else page.stem
    for section in page.read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        blocks = BLOCK.findall(text)
        found[f"{stem}: {title}"] = [b for b in above if b[1]] + blocks if ABOVE in text else blocks
        above += blocks
    return found


SECTIONS = {
    name: blocks for page in PAGES for name, blocks in sections(page).items() if any(b[0] == "sh" for b in blocks)
}
OURS = ("OCAMLLIB", "CAMLLIB", "OCAMLFIND_CONF", "OPAM_SWITCH_PREFIX", "CAML_LD_LIBRARY_PATH", "DUNE_BUILD_DIR")


def ask(*words):
    """The answer of a command of the repository, or an empty string."""
    done = subprocess.run(words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Variables for the commands; dune and the packages as the first section installs them."""
    prefix = ask("bash", "-c", '. tools/lib.sh; ocaml_prefix "$1"', "tools/test", os.environ.get("OCAML", ""))
    assert prefix, "no compiler"
    cached = Path(os.environ.get("BOXROOT_CACHE") or Path.home() / ".cache/boxroot") / "dune/bin/dune"
    dune = shutil.which("dune") or (cached.exists() and str(cached))
    if not dune:
        pytest.skip(NO_DUNE)
    folder = tmp_path_factory.mktemp("start")
    cargo = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin"
    variables = {k: v for k, v in os.environ.items() if k not in OURS} | {
        "PATH": f"{folder}/prefix/bin:{prefix}/bin:{Path(dune).parent}:{os.environ['PATH']}:{cargo}",
        "boxroot": str(folder / "clone"),
        "prefix": str(folder / "prefix"),
        "OCAMLPATH": str(folder / "prefix/lib"),
    }
    ignored = shutil.ignore_patterns("_build", "target", ".git", "results")
    shutil.copytree(ROOT, folder / "clone", symlinks=True, ignore=ignored)
    play(SECTIONS[INSTALL], folder, variables)
    return variables


def sh(text, folder, variables):
    done = subprocess.run(
        ["sh", "-euc", text],
        cwd=folder,
        env=variables,
        text=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=1800,  # for what hangs, not for a busy machine
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def play(blocks, folder, variables):
    output = None
    for language, name, text in blocks:
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        elif language == "sh":
            output = sh(text, folder, variables)
        elif language == "text":
            assert output == text


def make_switch(folder, variables):
    """A switch of opam in which the compiler and dune of this machine count as installed, with a repository of its
    own."""
    version = sh("ocamlopt -version", folder, variables).strip()
    (folder / "repository").mkdir()
    (folder / "repository/repo").write_text('opam-version: "2.0"\n')
    packages = (f"ocaml.{version}", "dune.3.20.0", f"ocaml-src.{version}", "conf-python-3.9.0.0")
    for package in packages:
        place = folder / "repository/packages" / package.split(".")[0] / package
        place.mkdir(parents=True)
        (place / "opam").write_text('opam-version: "2.0"\n')
    sh(
        'cd "$boxroot" && git init --quiet && git add -A\n'
        "git -c user.name=test -c user.email=test commit --quiet --allow-empty -m test\n"
        'cd "$OLDPWD"\n'
        "opam init --bare --no-setup --disable-sandboxing --yes here ./repository\n"
        "opam switch create test --empty --yes\n"
        f"opam install --fake --yes {' '.join(packages)}",
        folder,
        variables,
    )


def test_each_page_of_start_has_a_program():
    for page in (ROOT / "docs/start").glob("*.md"):
        assert any(blocks for name, blocks in sections(page).items() if name in SECTIONS), page.name


@pytest.mark.parametrize(
    "section",
    [pytest.param(s, marks=[pytest.mark.slow] if s in LONG else []) for s in SECTIONS if s != INSTALL],
)
def test_section(environment, section, tmp_path):
    variables, folder = dict(environment), tmp_path
    for needed in NEEDS.get(section, ()):
        if not shutil.which(needed, path=variables["PATH"]):
            pytest.skip(f"no {needed} here")
    if section == OPAM:
        variables["OPAMROOT"] = str(tmp_path / "opam")
        make_switch(tmp_path, variables)
        folder = tmp_path / "program"
        folder.mkdir()
    if section == "outheap: Build the variant":
        version = sh("ocamlopt -version", tmp_path, variables).strip()
        variables["sources"] = ask("tools/toolchain", "--source", version)
    if "cargo" in NEEDS.get(section, ()) and not fetched(tmp_path, variables):
        variables["CARGO_NET_OFFLINE"] = "true"
    play(SECTIONS[section], folder, variables)


def fetched(folder, variables):
    """Can cargo reach the registry?"""
    try:
        sh('cargo fetch --quiet --manifest-path "$boxroot/rust/Cargo.toml"', folder, variables)
    except AssertionError:
        return False
    return True

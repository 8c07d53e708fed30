# SPDX-License-Identifier: MIT
"""The dune packages, installed into a prefix of their own and used from dune-stubs, and the library inside its user's
workspace."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from testing import matrix
from testing.compilers import KNOWN_TO_OUTHEAP, NO_DUNE, Compiler, dune, dune_is_there, toolchain
from testing.run import BUILD, ROOT, run

PACKAGED = ("dune", "dune-project", "boxroot.opam", "outheap.opam", "boxroot", "outheap")
PACKAGED += ("boxroot.opam.template", "outheap.opam.template", "ocaml-boxroot.opam", "ocaml-boxroot.opam.template")
PACKAGED += ("README.md", "CHANGES.md", "LICENSE", "CONTRIBUTING.md", "docs", "bench/README.md")
PACKAGED += ("examples/README.md", "examples/bindings", "examples/coq-images", "examples/foreign-pointers")
PACKAGED += ("examples/hashcons", "examples/linear", "examples/regions")
PACKAGED += tuple(f"rust/ocaml-boxroot/{name}" for name in ("README.md", "guide", "glue", "ocaml"))
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    there = metafunc.config.getoption("everything") or dune_is_there()
    skip = [] if there else [pytest.mark.skip(reason=NO_DUNE)]
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"dune-{c.name}"), *skip])
        for c in matrix.compilers(brief=False)
    ]
    metafunc.parametrize("compiler", params)


class Workshop:
    def __init__(self, compiler: Compiler, name: str = "dune") -> None:
        self.compiler = compiler
        self.folder = BUILD / compiler.name / name
        self.installed = self.folder / "installed"
        self.built = self.folder / "user/_build/default"
        self.counter = 0
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, words: Sequence[str | Path], folder: Path, line: str = "", **settings: object) -> str:
        """Runs a command, which must pass, and say a line."""
        self.counter += 1
        more = self.compiler.settings | {name: str(value) for name, value in settings.items()}
        outcome = run(words, folder, self.folder / f"log/{os.getpid()}-{self.counter:02}.log", 600, more)
        if not outcome.passed or (line and line not in outcome.text.splitlines()):
            pytest.fail(
                f"{outcome.why}; expected: {line or 'success'}\n{outcome.tail(20)}\nagain: {outcome.again()}",
                pytrace=False,
            )
        return outcome.text

    def dune(self, *words: str | Path, folder: Path, line: str = "", **settings: object) -> str:
        return self.run([dune(), *words], folder, line, **settings)

    @property
    def stublibs(self) -> str:
        return f"{self.installed}/lib/stublibs:{self.built}"


def sources(folder: Path) -> None:
    """The files of the packages in a folder of their own, as opam builds them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build"))
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def project(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "examples/dune-stubs", folder, ignore=shutil.ignore_patterns("_build"))


def same(left: Path, right: Path) -> None:
    for file in (f for f in left.rglob("*") if f.is_file()):
        assert filecmp.cmp(file, right / file.relative_to(left), shallow=False), file


INSTALLED: dict[str, Workshop] = {}
USED: set[str] = set()


@pytest.fixture
def shop(compiler: Compiler) -> Workshop:
    """With the package boxroot installed."""
    if compiler.name not in INSTALLED:
        made = Workshop(compiler)
        sources(made.folder / "library")
        made.dune("build", "-p", "boxroot", "@install", folder=made.folder / "library")
        shutil.rmtree(made.installed, ignore_errors=True)
        made.dune("install", "-p", "boxroot", "--prefix", made.installed, folder=made.folder / "library")
        INSTALLED[compiler.name] = made
    return INSTALLED[compiler.name]


@pytest.fixture
def used(shop: Workshop) -> Workshop:
    """With a project, with stubs in C and C++, built against it."""
    if shop.compiler.name not in USED:
        project(shop.folder / "user")
        shop.dune(
            "build",
            "--root",
            shop.folder / "user",
            "@default",
            "./use.cmxs",
            "./use.cma",
            folder=shop.folder,
            OCAMLPATH=shop.installed / "lib",
        )
        USED.add(shop.compiler.name)
    return shop


def test_package_installs_its_headers(shop: Workshop) -> None:
    same(ROOT / "boxroot/include", shop.installed / "lib/boxroot")


def test_installed_documents_link_to_what_is_installed(shop: Workshop) -> None:
    for package in ("boxroot", "outheap"):
        shop.dune("build", "-p", package, "@install", folder=shop.folder / "library")
        shop.dune("install", "-p", package, "--prefix", shop.installed, folder=shop.folder / "library")
        home = shop.installed / "doc" / package
        documents = list(home.rglob("*.md"))
        assert home / "README.md" in documents and home / "docs/start/c.md" in documents
        for document in documents:
            for path, _ in LINK.findall(document.read_text()):
                where = document.parent / path
                outside = re.search("://|::|@", path)
                assert outside or where.exists() and home in where.resolve().parents, (document, path)


@pytest.mark.parametrize("package", ["boxroot", "outheap", "ocaml-boxroot"])
def test_opam_file_is_up_to_date(shop: Workshop, package: str) -> None:
    folder = shop.folder / f"opam-{package}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(ROOT / "dune-project", folder)
    shutil.copy(ROOT / f"{package}.opam.template", folder)
    for name in ("boxroot", "outheap", "ocaml-boxroot"):
        (folder / f"{name}.opam").touch()
    shop.dune("build", "--root", folder, f"{package}.opam", folder=folder)
    assert (folder / f"{package}.opam").read_text() == (ROOT / f"{package}.opam").read_text()


def test_package_of_the_variant(shop: Workshop) -> None:
    """Its tool, installed, builds the variant, with which the programs of a workspace are linked."""
    shop.dune("build", "-p", "outheap", "@install", folder=shop.folder / "library")
    shop.dune("install", "-p", "outheap", "--prefix", shop.installed, folder=shop.folder / "library")
    same(ROOT / "outheap/include", shop.installed / "lib/outheap")
    if shop.compiler.version not in KNOWN_TO_OUTHEAP:
        return
    variant = shop.folder / "variant"
    shop.run(
        [
            shop.installed / "bin/outheap-build",
            "--output",
            variant,
            "--flavours",
            "release",
            "--sources",
            toolchain("--source", shop.compiler.version),
            "--self-test",
            "4",
        ],
        shop.folder,
    )
    user = shop.folder / "variant-user"
    shutil.rmtree(user, ignore_errors=True)
    user.mkdir()
    (user / "main.ml").write_text('let () = print_endline (if Outheap.available then "variant" else "stock")\n')
    (user / "dune").write_text("(executable (name main) (libraries outheap))\n")
    (user / "dune-project").write_text("(lang dune 3.0)\n")
    for expected in ("stock", "variant"):
        if expected == "variant":  # no change to the project
            flags = f"(link_flags (:standard -I {variant} -runtime-variant _outheap))"
            (user / "dune-workspace").write_text(f"(lang dune 3.0)\n(env (_ {flags}))\n")
        shop.dune("build", "--root", ".", "./main.exe", folder=user, OCAMLPATH=shop.installed / "lib")
        shop.run(["./_build/default/main.exe"], user, expected)


def prints_counters(text: str) -> None:
    """Boxroot.print_stats: the counters of Boxroot.stats, between what OCaml code prints before and after."""
    found = re.search(r"slow creations: (\d+)\nboxroot: pools.*create (\d+), .*dune-stubs: ok", text, re.S)
    assert found and found[1] == found[2], text


def test_native_program(used: Workshop) -> None:
    prints_counters(used.run([used.built / "main.exe"], used.folder, "dune-stubs: ok"))


def test_bytecode_program(used: Workshop) -> None:
    settings = {"CAML_LD_LIBRARY_PATH": used.stublibs}
    prints_counters(used.run(["ocamlrun", used.built / "main.bc"], used.folder, "dune-stubs: ok", **settings))


def test_self_contained_bytecode_program(used: Workshop) -> None:
    used.run([used.built / "main.bc.exe"], used.folder, "dune-stubs: ok")


def test_toplevel(used: Workshop) -> None:
    main = ROOT / "examples/dune-stubs/main.ml"
    (used.folder / "session.ml").write_text(f'#load "boxroot.cma";;\n#load "memo.cma";;\n#use "{main}";;\n')
    used.run(
        [
            "ocaml",
            "-noinit",
            "-I",
            used.installed / "lib/boxroot",
            "-I",
            used.built,
            "-I",
            used.built / ".memo.objs/byte",
            "session.ml",
        ],
        used.folder,
        "dune-stubs: ok",
        CAML_LD_LIBRARY_PATH=used.stublibs,
    )


@pytest.mark.parametrize("host", ["host.exe", "host.bc"])
def test_plugins(used: Workshop, host: str) -> None:
    used.run(
        [
            used.built / host,
            used.installed / "lib/boxroot/boxroot.cma",
            used.built / "memo.cma",
            used.built / "use.cma",
        ],
        used.folder,
        "plugin: ok",
        CAML_LD_LIBRARY_PATH=used.stublibs,
    )


def test_library_and_project_in_one_workspace(compiler: Compiler) -> None:
    made = Workshop(compiler)
    workspace = made.folder / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)
    project(workspace / "app")
    sources(workspace / "boxroot")
    made.dune("exec", "--root", workspace, "./app/main.exe", folder=made.folder, line="dune-stubs: ok")


# One line of each, made wrong: the test of its package must say so.
BROKEN = {
    "boxroot/test/package/roots_stubs.c": (
        "  boxroot_delete(root_of(root));\n",
        "  (void)root;\n",
        "a deleted root keeps nothing alive",
    ),
    "outheap/lib/hashcons/outheap_hashcons.ml": (
        "c.tag <= since && equal c.node d -> Ok c",
        "c.tag <= since && equal c.node d && false -> Ok c",
        "equal terms are one",
    ),
}


def test_dune_test_runs_and_can_fail(compiler: Compiler) -> None:
    """`dune test` in a clone, without pytest."""
    made = Workshop(compiler)
    folder = made.folder / "tested"
    sources(folder)
    said = made.dune("test", "--root", ".", folder=folder, line="boxroot: ok")
    assert "outheap: ok (stock)" in said, said
    for name, (right, wrong, complaint) in BROKEN.items():
        text = (folder / name).read_text()
        assert text.count(right) == 1, name
        (folder / name).write_text(text.replace(right, wrong))
        log = made.folder / f"log/broken-{Path(name).stem}.log"
        outcome = run([dune(), "test", "--root", "."], folder, log, 600, made.compiler.settings)
        assert not outcome.passed and complaint in outcome.text, (name, outcome.tail())
        (folder / name).write_text(text)

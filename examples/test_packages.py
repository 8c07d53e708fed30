# SPDX-License-Identifier: MIT
"""tools/install, and a C++ program that is built against what it installs, by CMake, Meson and pkg-config."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from testing import matrix
from testing.compilers import Compiler
from testing.programs import CXX
from testing.run import BUILD, ROOT, environment

SAYS = "14 9 27 1002\n1002 formulas, 503\n"
WHAT = ["boxroot.pc", "boxroot-shared.pc", "boxrootConfig.cmake", "boxrootConfigVersion.cmake"]
WHAT += ["libboxroot.a", "libboxroot.so", "LICENSE", "installed"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    groups = [
        pytest.param(c, id=c.name, marks=pytest.mark.xdist_group(f"packages-{c.name}"))
        for c in matrix.compilers(brief=False)
    ]
    metafunc.parametrize("compiler", groups)


def need(command: str) -> None:
    """A command that comes from the system's package manager."""
    done = subprocess.run([ROOT / "tools/need", command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(done.stderr.strip().splitlines()[-1])


def call(folder: Path, *words: str | Path, code: int = 0, **settings: str | Path) -> str:
    """Runs a command, which must end with this code; what it prints."""
    more = {name: str(value) for name, value in settings.items()}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment(more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, f"{shlex.join(done.args)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def install(compiler: Compiler, *words: str, code: int = 0, **settings: str | Path) -> str:
    where = {"OCAML": compiler.prefix, "BUILD": BUILD / compiler.name / "packages/built"} | settings
    return call(ROOT, ROOT / "tools/install", *words, code=code, **where)


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


INSTALLED: dict[str, Path] = {}


@pytest.fixture
def prefix(compiler: Compiler) -> Path:
    """Where Boxroot was installed."""
    if compiler.name not in INSTALLED:
        folder = BUILD / compiler.name / "packages/prefix"
        shutil.rmtree(folder, ignore_errors=True)
        install(compiler, PREFIX=folder)
        INSTALLED[compiler.name] = folder
    return INSTALLED[compiler.name]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example in a folder of its own."""
    return shutil.copytree(ROOT / "examples/cpp-embedded", tmp_path / "project")


def another(project: Path) -> str:
    """A PATH in which an ocamlopt of another version, other/ocamlopt, stands first."""
    ocamlopt = project / "other/ocamlopt"
    ocamlopt.parent.mkdir()
    ocamlopt.write_text('#!/bin/sh\ncase "$1" in -version) echo 5.0.9;; *) exit 1;; esac\n')
    ocamlopt.chmod(0o755)
    return f"{ocamlopt.parent}:{os.environ['PATH']}"


def test_what_is_installed(prefix: Path) -> None:
    headers = {str(p.relative_to(ROOT / "boxroot/include")) for p in (ROOT / "boxroot/include").rglob("*.h*")}
    files = {path for path in tree(prefix) if (prefix / path).is_file()}
    assert {p.removeprefix("include/") for p in files if p.startswith("include/")} == headers
    assert {Path(p).name for p in files if not p.startswith("include/")} == set(WHAT)
    for name in files - {"lib/libboxroot.a", "lib/libboxroot.so"}:
        assert not re.search(r"@[A-Z]+@", (prefix / name).read_text()), f"{name} is not filled in"


@pytest.mark.parametrize("library", ["archive", "shared"])
def test_cmake(compiler: Compiler, prefix: Path, project: Path, library: str) -> None:
    need("cmake")
    shared = "ON" if library == "shared" else "OFF"
    flags = ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", f"-DCMAKE_CXX_COMPILER={CXX}", f"-DSHARED_BOXROOT={shared}"]
    configure = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", *flags]
    call(project, *configure, PATH=compiler.settings["PATH"])
    call(project, "cmake", "--build", "build")
    assert call(project, "build/formulas") == SAYS
    if shutil.which("ldd"):
        linked = call(project, "ldd", "build/formulas")
        assert ("libboxroot.so" in linked) == (library == "shared"), linked


def test_cmake_refuses_another_ocaml(compiler: Compiler, prefix: Path, project: Path) -> None:
    """An ocamlopt of another version, in PATH or given; and a version of Boxroot that is not compatible."""
    need("cmake")
    path_of_another = another(project)
    other = project / "other/ocamlopt"
    words = ["cmake", "-S", ".", f"-DCMAKE_PREFIX_PATH={prefix}"]
    for name, more, path in (
        ("path", [], path_of_another),
        ("given", [f"-DOCAMLOPT={other}"], ""),
    ):
        path = path or compiler.settings["PATH"]
        said = " ".join(call(project, *words, "-B", name, *more, code=1, PATH=path).split())
        assert f"was built for OCaml {compiler.version}, but" in said and "is OCaml 5.0.9." in said, said
    # the right one is given, and another is in PATH
    right = f"-DOCAMLOPT={compiler.ocamlopt}"
    call(project, *words, "-B", "right", right, PATH=path_of_another)
    lists = project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("boxroot 0.5 CONFIG", "boxroot 0.4 CONFIG"))
    said = " ".join(call(project, *words, "-B", "version", code=1, PATH=compiler.settings["PATH"]).split())
    assert 'compatible with requested version "0.4"' in said, said


@pytest.mark.parametrize("library", ["boxroot", "boxroot-shared"])
def test_pkg_config(compiler: Compiler, prefix: Path, project: Path, library: str) -> None:
    need("pkg-config")

    def ask(*words: str) -> str:
        return call(project, "pkg-config", *words, library, PKG_CONFIG_PATH=prefix / "lib/pkgconfig").strip()

    assert ask("--variable=ocaml_version") == compiler.version
    assert ask("--modversion") == call(ROOT, "tools/version").split()[0]
    libraries = call(project, compiler.ocamlopt, "-config-var", "native_c_libraries").split()
    call(project, compiler.ocamlopt, "-output-complete-obj", "formula.ml", "-o", "whole.o")
    flags = ["-std=c++11", "-O2", "-Wall", "-Wextra", "-Werror", *shlex.split(ask("--cflags"))]
    linked = [*shlex.split(ask("--libs")), *libraries, f"-Wl,-rpath,{prefix}/lib"]
    call(project, CXX, *flags, "main.cpp", "whole.o", *linked, "-o", "formulas")
    assert call(project, "./formulas") == SAYS
    # headers of another version
    caml = project / "another/caml"
    shutil.copytree(compiler.where / "caml", caml)
    version = caml / "version.h"
    text, changed = re.subn(r"(#define OCAML_VERSION) \d+", r"\1 50009", version.read_text())
    assert changed == 1
    version.write_text(text)
    said = call(project, CXX, f"-I{caml.parent}", *flags, "-c", "main.cpp", code=1)
    assert "built for another version of OCaml" in said, said


def test_meson(compiler: Compiler, prefix: Path, project: Path) -> None:
    """By the file of pkg-config; another ocamlopt in PATH is refused."""
    need("meson")
    need("ninja")
    need("pkg-config")
    where = {"PKG_CONFIG_PATH": prefix / "lib/pkgconfig", "CXX": CXX}
    words = ["meson", "setup", "--werror", "-Dwarning_level=2", "-Dbuildtype=release"]
    call(project, *words, "build", PATH=compiler.settings["PATH"], **where)
    call(project, "ninja", "-C", "build", PATH=compiler.settings["PATH"])
    assert call(project, "build/formulas") == SAYS
    said = call(project, *words, "other", code=1, PATH=another(project), **where)
    assert f"Boxroot was built for OCaml {compiler.version}, but ocamlopt is OCaml 5.0.9" in said, said


def test_uninstalling_leaves_nothing(compiler: Compiler, tmp_path: Path) -> None:
    """Nor does it take what others have put there; also with DESTDIR, and after a second installation."""
    where = {"DESTDIR": tmp_path / "stage", "PREFIX": "/usr", "LIBDIR": "lib64"}
    (tmp_path / "stage/usr/include").mkdir(parents=True)
    (tmp_path / "stage/usr/include/other.h").touch()
    before = tree(tmp_path)
    install(compiler, **where)
    assert tmp_path.joinpath("stage/usr/lib64/cmake/boxroot/boxrootConfig.cmake").exists()
    assert "prefix=/usr\nlibdir=/usr/lib64\n" in tmp_path.joinpath("stage/usr/lib64/pkgconfig/boxroot.pc").read_text()
    first = tree(tmp_path)
    install(compiler, **where)
    assert tree(tmp_path) == first
    install(compiler, "--uninstall", **where)
    assert tree(tmp_path) == before
    assert "nothing was installed" in install(compiler, "--uninstall", code=1, **where)
    # a folder that has another file by now stays
    install(compiler, **where)
    (tmp_path / "stage/usr/lib64/pkgconfig/other.pc").touch()
    install(compiler, "--uninstall", **where)
    added = {"stage/usr/lib64", "stage/usr/lib64/pkgconfig", "stage/usr/lib64/pkgconfig/other.pc"}
    assert tree(tmp_path) == before | added

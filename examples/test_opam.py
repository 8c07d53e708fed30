# SPDX-License-Identifier: MIT
"""The packages as users of opam have them: from a repository of their own, which names an archive of the files that are
here, in a switch with the system's compiler, without a network."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path

import pytest
from test_packages import need
from testing import matrix
from testing.compilers import KNOWN_TO_OUTHEAP, Compiler, dune, toolchain
from testing.run import BUILD, ROOT, Outcome, environment, run

PACKAGES = ("boxroot", "outheap", "ocaml-boxroot")
NOWHERE = "http://127.0.0.1:9"
SETTINGS = {"OPAMYES": "1", "OPAMROOTISOK": "1", "OPAMCOLOR": "never", "OPAMNOSELFUPGRADE": "1", "OPAMJOBS": "2"}
SETTINGS |= {f"{scheme}_proxy": NOWHERE for scheme in ("http", "https", "ftp", "all")}
# homepage and bug-reports: there is no public address yet
WITHOUT_ADDRESSES = "--warnings=-35-36"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compiler" in metafunc.fixturenames:
        mark = lambda name: [pytest.mark.xdist_group(f"opam-{name}"), pytest.mark.everything]
        metafunc.parametrize("compiler", [pytest.param(c, id=c.name, marks=mark(c.name)) for c in matrix.ends()])


@pytest.fixture(autouse=True)
def commands() -> None:
    for command in ("opam", "rsync", "unzip", "patch", "curl", "git"):
        need(command)


@cache
def offline() -> tuple[str, ...]:
    """What stands before a command that is to have no network. Where that is not permitted, nothing does: then there
    are only the proxies in SETTINGS, which do not answer."""
    words = ("unshare", "--map-root-user", "--net")
    try:
        done = subprocess.run([*words, "cat", "/proc/net/dev"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    if done.returncode != 0:
        return ()
    assert re.findall(r"^ *(\w+):", done.stdout, re.M) == ["lo"], done.stdout
    return words


class Opam:
    """An opam with one repository, in a folder of its own."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder, self.counter = folder, 0
        self.settings = SETTINGS | {"OPAMROOT": str(folder / "root"), "PATH": path}
        unwanted = [name for name in os.environ if name.startswith("OPAM") and name not in self.settings]
        self.before = (*offline(), "env", *(f"--unset={name}" for name in unwanted))
        self.home = folder / "root/user"  # of the switch
        shutil.rmtree(folder, ignore_errors=True)
        self.package("none", "0")
        (folder / "repository/repo").write_text('opam-version: "2.0"\n')

    def package(self, name: str, version: str, text: str = "") -> None:
        place = self.folder / f"repository/packages/{name}/{name}.{version}"
        place.mkdir(parents=True)
        (place / "opam").write_text(text or 'opam-version: "2.0"\n')

    def try_run(self, *words: str | Path, where: Path | None = None, **settings: str) -> Outcome:
        self.counter += 1
        log = self.folder / f"log/{self.counter:02}.log"
        return run([*self.before, *words], where or self.folder, log, 900, self.settings | settings)

    def run(self, *words: str | Path, where: Path | None = None, **settings: str) -> str:
        outcome = self.try_run(*words, where=where, **settings)
        if not outcome.passed:
            pytest.fail(f"{outcome.why}\n{outcome.tail(30)}\nagain: {outcome.again()}", pytrace=False)
        return outcome.text

    def begin(self, *compiler: str) -> None:
        """A switch, with this compiler or with none."""
        self.run("opam", "init", "--bare", "--no-setup", "--disable-sandboxing", "here", "./repository")
        self.run("opam", "switch", "create", "user", *(compiler or ["--empty"]))

    def exec(self, *words: str | Path, where: Path | None = None) -> str:
        return self.run("opam", "exec", "--", *words, where=where)

    def tree(self) -> dict[str, str]:
        """What is in the switch, but for opam's own account of it, and the folders at the top, which are opam's too."""
        found = {}
        for path in self.home.rglob("*"):
            name = str(path.relative_to(self.home))
            if not name.startswith(".opam-switch") and not (path.is_dir() and path.parent == self.home):
                link = os.readlink(path) if path.is_symlink() else ""
                found[name] = link or (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder")
        return found


def archive(folder: Path) -> str:
    """The files that git knows, or would take, as they are now; what an opam file says of their archive."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a clone of the repository")
    file = folder / "boxroot.tar.gz"
    with tarfile.open(file, "w:gz") as out:
        for name in listed.stdout.split("\0"):
            if name and (ROOT / name).is_file():
                out.add(ROOT / name, f"boxroot/{name}")
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    return f'url {{\n  src: "file://{file}"\n  checksum: "sha256={checksum}"\n}}\n'


def system(opam: Opam, compiler: Compiler) -> None:
    """Packages for what this machine has: the compiler, its sources, dune, Python."""
    version = compiler.version
    opam.package(
        "ocaml-system",
        version,
        f'opam-version: "2.0"\nflags: compiler\navailable: sys-ocaml-version = "{version}"\n',
    )
    opam.package(
        "ocaml",
        version,
        f'opam-version: "2.0"\nflags: conf\ndepends: "ocaml-system" {{= "{version}"}}\n'
        'setenv: [CAML_LD_LIBRARY_PATH = "%{lib}%/stublibs"]\n',
    )
    said = subprocess.run([dune(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    opam.package(
        "dune",
        said,
        f'opam-version: "2.0"\ndepends: "ocaml"\nbuild: [\n  ["cp" "{dune()}" "dune"]\n'
        '  ["sh" "-c" "echo \'bin: \\"dune\\"\' >dune.install"]\n]\n',
    )
    sources = f'install: ["cp" "-r" "{toolchain("--source", version)}" "%{{lib}}%/ocaml-src"]\n'
    known = version in KNOWN_TO_OUTHEAP
    opam.package("ocaml-src", version, 'opam-version: "2.0"\ndepends: "ocaml"\n' + (sources if known else ""))
    opam.package("conf-python-3", "9.0.0", 'opam-version: "2.0"\nflags: conf\nbuild: ["python3" "--version"]\n')


BEGUN: dict[str, tuple[Opam, dict[str, str]]] = {}


@pytest.fixture
def begun(compiler: Compiler) -> tuple[Opam, dict[str, str]]:
    """A switch with what the packages depend on, and its tree; also when a test has failed."""
    if compiler.name not in BEGUN:
        opam = Opam(BUILD / compiler.name / "opam", compiler.settings["PATH"])
        system(opam, compiler)
        url = archive(opam.folder)
        for package in PACKAGES:
            text = (ROOT / f"{package}.opam").read_text()
            opam.package(package, re.search(r'^version: "(.*)"', text, re.M)[1], text + url)
        opam.begin("ocaml-system")
        opam.run("opam", "install", "--deps-only", "--with-test", *PACKAGES)
        BEGUN[compiler.name] = opam, opam.tree()
    return BEGUN[compiler.name]


@pytest.fixture
def opam(begun: tuple[Opam, dict[str, str]]) -> Opam:
    """With the packages, whose own tests have run."""
    begun[0].run("opam", "install", "--with-test", *PACKAGES)
    return begun[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_opam_lint(package: str) -> None:
    words = ["opam", "lint", "--strict", WITHOUT_ADDRESSES, f"{package}.opam"]
    done = subprocess.run(words, cwd=ROOT, env=environment(SETTINGS), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout + done.stderr


# A version of OCaml, what else is wanted, what opam takes the machine for: which packages can be installed.
FITS = {
    "4.13.1": "",
    "4.14.0": "boxroot ocaml-boxroot outheap",
    "5.0.0": "boxroot ocaml-boxroot",
    "5.1.0": "boxroot ocaml-boxroot outheap",
    "5.5.2": "boxroot ocaml-boxroot outheap",
    "5.6.0": "boxroot ocaml-boxroot",
    "5.4.1 ocaml-option-32bit": "",
    "5.4.1 OPAMVAR_arch=x86_32": "",
    "5.4.1 OPAMVAR_arch=arm64": "boxroot ocaml-boxroot",
    "5.4.1 OPAMVAR_os=macos": "boxroot ocaml-boxroot",
    "5.4.1 OPAMVAR_os=win32": "",
}


LINUX = {"OPAMVAR_os": "linux", "OPAMVAR_arch": "x86_64"}
NOT_AVAILABLE, NO_SOLUTION = 5, 20  # exit codes of opam


@pytest.mark.everything
def test_opam_offers_the_packages_where_they_work() -> None:
    opam = Opam(BUILD / "opam", os.environ["PATH"])
    for version in sorted({words.split()[0] for words in FITS}):
        opam.package("ocaml", version)
    for name, version in (("dune", "3.20.0"), ("ocaml-src", "9"), ("conf-python-3", "9"), ("ocaml-option-32bit", "1")):
        opam.package(name, version)
    for package in PACKAGES:
        opam.package(package, "0.5.0", (ROOT / f"{package}.opam").read_text())
    opam.begin()
    for case, fitting in FITS.items():
        version, *more = case.split()
        settings = LINUX | dict(word.split("=") for word in more if "=" in word)
        wanted = [f"ocaml.{version}", *(word for word in more if "=" not in word)]
        for package in PACKAGES:
            outcome = opam.try_run("opam", "install", "--show-actions", package, *wanted, **settings)
            assert outcome.code in (0, NOT_AVAILABLE, NO_SOLUTION), (case, outcome.tail())
            assert outcome.passed == (package in fitting.split()), (case, package, outcome.tail())


def test_opam_project_with_stubs(opam: Opam, tmp_path: Path) -> None:
    """With what opam has installed, and the variables that it sets: native code, bytecode, a plug-in."""
    project = shutil.copytree(ROOT / "examples/dune-stubs", tmp_path / "project")
    opam.exec("dune", "build", "--root", ".", "@default", "./use.cmxs", where=project)
    built = project / "_build/default"
    assert "dune-stubs: ok" in opam.exec(built / "main.exe", where=project)
    bytecode = f"CAML_LD_LIBRARY_PATH=$CAML_LD_LIBRARY_PATH:{built} ocamlrun {built}/main.bc"
    assert "dune-stubs: ok" in opam.exec("sh", "-c", bytecode, where=project)
    plugins = [opam.home / "lib/boxroot/boxroot.cmxs", built / "memo.cmxs", built / "use.cmxs"]
    assert "plugin: ok" in opam.exec(built / "host.exe", *plugins, where=project)


def test_opam_program_with_the_variant(opam: Opam, compiler: Compiler, tmp_path: Path) -> None:
    """outheap-build finds the sources that the switch has."""
    if compiler.version not in KNOWN_TO_OUTHEAP:
        pytest.skip(f"the variant is not for {compiler.version}")
    (tmp_path / "main.ml").write_text('let () = print_endline (if Outheap.available then "variant" else "stock")\n')
    (tmp_path / "dune").write_text("(executable (name main) (libraries outheap))\n")
    (tmp_path / "dune-project").write_text("(lang dune 3.0)\n")
    build = ("dune", "build", "--root", ".", "./main.exe")
    opam.exec(*build, where=tmp_path)
    assert opam.exec("_build/default/main.exe", where=tmp_path) == "stock\n"
    variant = tmp_path / "variant"
    words = ("outheap-build", "--output", variant, "--flavours", "release", "--self-test", "4")
    opam.exec(*words, where=tmp_path)
    flags = f"(link_flags (:standard -I {variant} -runtime-variant _outheap))"
    (tmp_path / "dune-workspace").write_text(f"(lang dune 3.0)\n(env (_ {flags}))\n")
    opam.exec(*build, where=tmp_path)
    assert opam.exec("_build/default/main.exe", where=tmp_path) == "variant\n"


def test_opam_removes_the_packages_without_a_trace(begun: tuple[Opam, dict[str, str]], opam: Opam) -> None:
    before, full = begun[1], opam.tree()
    ours = {name: what for name, what in full.items() if name not in before}
    assert {"lib/boxroot/META", "lib/boxroot/boxroot.h", "lib/outheap/META", "bin/outheap-build"} < set(ours)
    assert full == before | ours, "a file of another package was changed"
    opam.run("opam", "remove", "boxroot")
    rest = opam.tree()
    assert "lib/outheap/META" in rest and rest.items() < full.items()
    assert not [name for name in rest if name.startswith(("lib/boxroot", "doc/boxroot", "lib/stublibs/dllboxroot"))]
    opam.run("opam", "remove", "outheap")
    assert opam.tree() == before

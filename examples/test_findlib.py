# SPDX-License-Identifier: MIT
"""What dune installs, by findlib's own tools: listed, linked, loaded into the toplevel, and as what a plug-in needs.
The user is a package of its own, `keep`, whose stubs keep a value in a root."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_dune import Workshop, sources
from testing import matrix
from testing.compilers import Compiler
from testing.run import ROOT

STUBS = """#include <boxroot.h>
#include <caml/fail.h>
static boxroot kept;
value keep(value v)
{
  if ((kept = boxroot_create(v)) == NULL) caml_failwith(boxroot_error_string());
  return Val_unit;
}
value kept_value(value unit) { (void)unit; return boxroot_get(kept); }
"""
KEEP = """external keep : string -> unit = "keep"
external kept : unit -> string = "kept_value"
let () =
  keep (String.make 3 'x');
  Gc.compact ();
  print_endline (kept ())
let name = "keep"
"""
META = """version = "1"
requires = "boxroot"
archive(byte) = "keep.cma"
archive(native) = "keep.cmxa"
plugin(byte) = "keep.cma"
plugin(native) = "keep.cmxs"
"""
SAYS = "xxx\nkeep\n"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = lambda c: [pytest.mark.xdist_group(f"findlib-{c.name}"), pytest.mark.everything]
    params = [pytest.param(c, id=c.name, marks=marks(c)) for c in matrix.compilers(brief=False)]
    metafunc.parametrize("compiler", params)


class Site(Workshop):
    """The packages, and beside them `keep`, which `ocamlfind install` has put there."""

    def __init__(self, compiler: Compiler, ocamlfind: Path) -> None:
        super().__init__(compiler, "findlib")
        self.ocamlfind, self.lib = ocamlfind, self.installed / "lib"
        sources(self.folder / "library")
        self.dune("build", "-p", "boxroot,outheap", "@install", folder=self.folder / "library")
        shutil.rmtree(self.installed, ignore_errors=True)
        self.dune("install", "-p", "boxroot,outheap", "--prefix", self.installed, folder=self.folder / "library")
        self.keep = self.folder / "keep"
        shutil.rmtree(self.keep, ignore_errors=True)
        self.keep.mkdir()
        for name, text in {"keep_stubs.c": STUBS, "keep.ml": KEEP, "META": META}.items():
            (self.keep / name).write_text(text)
        self.package()

    def package(self) -> None:
        find = lambda *words: self.find(*words, folder=self.keep)
        find("ocamlopt", "-package", "boxroot", "-ccopt", "-O2 -fPIC -Wall -Werror", "-c", "keep_stubs.c")
        self.run(["ocamlmklib", "-o", "keep_stubs", "keep_stubs.o"], self.keep)
        dll = ("-dllib", "-lkeep_stubs")
        find("ocamlc", "-package", "boxroot", "-a", "keep.ml", *dll, "-cclib", "-lkeep_stubs", "-o", "keep.cma")
        find("ocamlopt", "-package", "boxroot", "-a", "keep.ml", "-cclib", "-lkeep_stubs", "-o", "keep.cmxa")
        find("ocamlopt", "-shared", "-linkall", "-I", ".", "-ccopt", "-L.", "keep.cmxa", "-o", "keep.cmxs")
        files = [f"keep.{end}" for end in ("cma", "cmi", "cmx", "cmxa", "cmxs", "a")]
        find(
            "install",
            "-ldconf",
            "ignore",
            "-destdir",
            str(self.lib),
            "keep",
            "META",
            *files,
            "libkeep_stubs.a",
            "dllkeep_stubs.so",
        )

    def find(self, *words: str, folder: Path) -> str:
        return self.run([self.ocamlfind, *words], folder, **self.where)

    @property
    def where(self) -> dict[str, object]:
        return {"OCAMLPATH": self.lib, "CAML_LD_LIBRARY_PATH": f"{self.lib}/stublibs"}

    def play(self, folder: Path, *words: str | Path) -> str:
        return self.run(words, folder, **self.where)


SITES: dict[str, Site] = {}


@pytest.fixture
def site(compiler: Compiler) -> Site:
    if compiler.name not in SITES:
        done = subprocess.run([ROOT / "tools/findlib", compiler.prefix], capture_output=True, text=True, check=False)
        if done.returncode == 3:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        SITES[compiler.name] = Site(compiler, Path(done.stdout.strip()))
    return SITES[compiler.name]


def test_findlib_lists_the_packages(site: Site) -> None:
    lines = [line.split() for line in site.find("list", folder=site.folder).splitlines()]
    version = subprocess.run([ROOT / "tools/version"], capture_output=True, text=True, check=True).stdout.split()[0]
    ours = {words[0] for words in lines if words[0].split(".")[0] in ("boxroot", "outheap")}
    wanted = {"boxroot", *(f"outheap{part}" for part in ("", ".ancient", ".hashcons", ".linear", ".region"))}
    assert ours - {"outheap.events"} == wanted, ours
    assert ("outheap.events" in ours) == (site.compiler.major >= 5), ours
    assert all(words[1:] == ["(version:", f"{version})"] for words in lines if words[0] in ours), lines


@pytest.mark.parametrize("way", ["native", "bytecode", "custom"])
@pytest.mark.parametrize("stubs", ["package", "program"])
def test_findlib_links(site: Site, way: str, stubs: str, tmp_path: Path) -> None:
    """Stubs of a package that needs ours, and those of the program itself."""
    (tmp_path / "main.ml").write_text("let () = print_endline Keep.name\n")
    words = ["ocamlopt" if way == "native" else "ocamlc", *(["-custom"] if way == "custom" else [])]
    if stubs == "package":
        words += ["-package", "keep", "-linkpkg"]
    elif way == "bytecode":
        words += ["-package", "boxroot", "-linkpkg", "-I", str(site.keep), "-dllib", "-lkeep_stubs", "keep.cmo"]
        shutil.copy(site.keep / "keep.cmo", tmp_path)
    else:
        words += ["-package", "boxroot", "-linkpkg", "keep_stubs.c", "keep.ml"]
        for name in ("keep_stubs.c", "keep.ml"):
            shutil.copy(site.keep / name, tmp_path)
    site.find(*words, "main.ml", "-o", "main", folder=tmp_path)
    assert site.play(tmp_path, *(["ocamlrun"] if way == "bytecode" else []), "./main") == SAYS


def test_findlib_toplevel(site: Site, tmp_path: Path) -> None:
    """The lines before the last two are those of the file `topfind`, which is installed beside the compiler only."""
    findlib = site.ocamlfind.parent.parent / "lib/findlib"
    lines = [f'#directory "{findlib}"', '#load "findlib.cma"', '#load "findlib_top.cma"']
    lines += ['Topfind.add_predicates ["byte"; "toploop"]', 'Topfind.don\'t_load ["findlib"]']
    lines += ['#require "keep"', "assert (Boxroot.status () = Boxroot.Running)", "print_endline Keep.name"]
    (tmp_path / "session.ml").write_text("".join(f"{line};;\n" for line in lines))
    said = site.play(tmp_path, "ocaml", "-noinit", "session.ml")
    assert [line for line in said.splitlines() if "search path" not in line and ": loaded" not in line] == SAYS.split()


@pytest.mark.parametrize("way", ["native", "bytecode"])
def test_findlib_loads_what_a_plugin_needs(site: Site, way: str, tmp_path: Path) -> None:
    """A host that knows none of the packages asks findlib for `keep`, and loads a plug-in that uses it."""
    load = 'Fl_dynload.load_packages [ "keep" ]'
    unsafe = "Dynlink.allow_unsafe_modules true"  # for bytecode with stubs
    host = f'let () = print_endline "host"; {unsafe}; {load}; Dynlink.loadfile Sys.argv.(1)\n'
    (tmp_path / "host.ml").write_text(host)
    (tmp_path / "use.ml").write_text("let () = print_endline Keep.name\n")
    compiler, plugin = ("ocamlopt", "use.cmxs") if way == "native" else ("ocamlc", "use.cmo")
    site.find(compiler, "-package", "findlib.dynload", "-linkpkg", "-linkall", "host.ml", "-o", "host", folder=tmp_path)
    words = ("-shared", "use.ml", "-o", plugin) if way == "native" else ("-c", "use.ml")
    site.find(compiler, "-package", "keep", *words, folder=tmp_path)
    assert site.play(tmp_path, *(["ocamlrun"] if way == "bytecode" else []), "./host", plugin) == f"host\n{SAYS}"

# SPDX-License-Identifier: MIT
"""Two copies of the safe layer in one program: two static libraries, and one that is loaded later."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_exports import LINK, MODULES, QUIET
from testing import crate, matrix
from testing.compilers import Compiler
from testing.crate import CARGO, Shop
from testing.run import ROOT

HOME = ROOT / "rust/tests/copies"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *skip]) for c in matrix.ends()
    ]
    metafunc.parametrize("compiler", params)


def libraries(shop: Shop, folder: Path) -> None:
    """Static libraries of the same source, and their OCaml side."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in MODULES.glob("ocaml_boxroot.ml*"):
        shutil.copy(file, folder)
    shutil.copy(HOME / "user.ml", folder)
    target = shop.target
    for name in ("one", "two"):
        source = folder / f"{name}-crate"
        (source / "src").mkdir(parents=True)
        (source / "src/lib.rs").write_text((HOME / "library.rs").read_text().replace("NAME", name))
        (source / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2021"\n[lib]\ncrate-type = ["staticlib"]\n'
            f'[dependencies]\nocaml-boxroot = {{ path = "{ROOT / "rust/ocaml-boxroot"}" }}\n[workspace]\n'
        )
        shop.pin(source)
        shop.run([CARGO, "build", "--offline"], source, target=target)
        shutil.copy(target / f"debug/lib{name}.a", folder)
        (folder / "text.ml").write_text(
            f'external text : string -> string = "{name}_ocaml_text"\nlet () = print_string (text Sys.argv.(1))\n'
        )
        shop.run([shop.compiler.ocamlopt, "text.ml", f"lib{name}.a", *LINK, "-o", "text"], folder)
        for kind in ("ml", "mli"):
            (folder / f"{name}.{kind}").write_text(shop.run(["./text", kind], folder))


@pytest.mark.everything
def test_two_static_libraries(compiler: Compiler) -> None:
    shop = Shop(compiler)
    folder = shop.folder / "copies/static"
    libraries(shop, folder)
    (folder / "main.ml").write_text("let () = User.run ()\n")
    files = ["ocaml_boxroot.mli", "ocaml_boxroot.ml"]
    files += [f"{name}.{end}" for name in ("one", "two") for end in ("mli", "ml")]
    words = [compiler.ocamlopt, "-g", *compiler.libraries, "unix.cmxa", "threads.cmxa", *files, "user.ml", "main.ml"]
    shop.run([*words, "libone.a", "libtwo.a", *LINK, "-o", "main"], folder)
    assert "copies: ok" in shop.run(["./main"], folder, more=QUIET)


@pytest.mark.slow
def test_a_library_that_is_loaded_later(compiler: Compiler) -> None:
    """The plugin contains its own copy of Rust's standard library, the safe layer and the C library."""
    shop = Shop(compiler)
    folder = shop.folder / "copies/plugin"
    libraries(shop, folder)
    (folder / "plugin.ml").write_text("let () = User.run ()\n")
    (folder / "main.ml").write_text(
        "let () =\n  try Dynlink.loadfile \"plugin.cmxs\" with Dynlink.Error e -> failwith (Dynlink.error_message e)\n"
        'let () = assert (One.text (One.mine "after") = "after")\n'
    )
    start = [compiler.ocamlopt, "-g", *compiler.libraries]
    common = ["ocaml_boxroot.mli", "ocaml_boxroot.ml", "one.mli", "one.ml"]
    shop.run([*start, "-c", *common, "two.mli", "two.ml", "user.ml", "plugin.ml"], folder)
    shop.run([*start, "-shared", "-o", "plugin.cmxs", "two.cmx", "user.cmx", "plugin.cmx", "libtwo.a"], folder)
    libs = ["unix.cmxa", "threads.cmxa", "dynlink.cmxa"]
    objects = [name.replace(".ml", ".cmx") for name in common if name.endswith(".ml")]
    shop.run([*start, "-linkall", *libs, *objects, "main.ml", "libone.a", *LINK, "-o", "main"], folder)
    assert "copies: ok" in shop.run(["./main"], folder, more=QUIET)

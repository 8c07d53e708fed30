# SPDX-License-Identifier: MIT
"""Rust under outheap-check: a stale value in a program over the raw layer is found, with its line of Rust; in the safe
layer's tests, which cannot have one, none is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from testing import crate, matrix, variants
from testing.compilers import Compiler
from testing.crate import CARGO, Shop
from testing.run import ROOT

RUST = ROOT / "rust"
TOOL = ROOT / "outheap/tool/outheap-check"
VARIANT = "_outheap_check"
sys.path.insert(0, str(TOOL.parent))

from checker import parse  # noqa: E402

MANIFEST = f"""
[package]
name = "stale"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["staticlib"]
[dependencies]
ocaml-boxroot-sys = {{ path = "{RUST / "ocaml-boxroot-sys"}" }}
[workspace]
"""
# `call` reads a function from its root and keeps it over an allocation; `call_right` allocates first.
STALE = """
use ocaml_boxroot_sys::*;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

extern "C" {
    fn caml_copy_int64(i: i64) -> Value;
    fn caml_callback(function: Value, argument: Value) -> Value;
}

static KEPT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

#[no_mangle]
pub unsafe extern "C" fn keep(function: Value) -> Value {
    let root: BoxRoot = boxroot_create(function).unwrap();
    let before = KEPT.swap(std::mem::transmute(root), SeqCst);
    if !before.is_null() {
        boxroot_delete(std::mem::transmute(before));
    }
    1
}

unsafe fn kept() -> Value {
    boxroot_get(std::mem::transmute(KEPT.load(SeqCst)))
}

#[no_mangle]
pub unsafe extern "C" fn call(_unit: Value) -> Value {
    let function = kept();
    let number = caml_copy_int64(1);
    caml_callback(function, number)
}

#[no_mangle]
pub unsafe extern "C" fn call_right(_unit: Value) -> Value {
    let number = caml_copy_int64(1);
    caml_callback(kept(), number)
}
"""
PROGRAM = """
external keep : (int64 -> int) -> unit = "keep"
external call : unit -> int = "call"
external call_right : unit -> int = "call_right"
let () =
  let f = if Sys.argv.(1) = "right" then call_right else call in
  for i = 1 to 50 do keep (fun n -> i + Int64.to_int n); assert (f () = i + 1) done;
  print_endline "nothing noticed"
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    why = crate.missing()
    skip = [pytest.mark.skip(reason=why)] if why else []
    params = [
        pytest.param(c, id=c.name, marks=[pytest.mark.xdist_group(f"rust-{c.name}"), *skip])
        for c in matrix.known_to_outheap(brief=True)
        if c.release >= (5, 4)
    ]
    metafunc.parametrize("compiler", params)


def test_raw_layer(compiler: Compiler, tmp_path: Path) -> None:
    shop, library = Shop(compiler), variants.library(compiler, "check")
    folder = shop.folder / "programs/stale"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    for name, text in (("Cargo.toml", MANIFEST), ("src/lib.rs", STALE), ("main.ml", PROGRAM)):
        (folder / name).write_text(text)
    shop.pin(folder)
    shop.run([CARGO, "build", "--offline"], folder, shop.target)
    shutil.copy(shop.target / "debug/libstale.a", folder)
    link = ["-I", library, "-runtime-variant", VARIANT, "main.ml", "libstale.a", "-cclib", "-lpthread -ldl -lm"]
    shop.run([compiler.ocamlopt, "-g", *link, "-o", "main"], folder)
    for seed in (1, 2, 3):
        report = tmp_path / f"report{seed}"
        more = {"OUTHEAP": f"check.seed={seed},check.report={report}"}
        shop.try_run(["./main", "stale"], folder, more=more)
        faults, _ = parse(report.read_text())
        assert faults and "a stale value was read" in faults[0].what, report.read_text()
        assert faults[0].line and "call" in faults[0].line.function, report.read_text()
        assert faults[0].line.place.startswith("lib.rs:"), report.read_text()
        said = shop.run(["./main", "right"], folder, more={"OUTHEAP": f"check.seed={seed}"})
        assert "nothing noticed" in said and "outheap-check" not in said, said


# It counts how much lies in the minor heap, which is emptied more often here.
COUNTS = "large::what_exceeds_the_minor_heap_is_built_first"


@pytest.mark.slow
def test_safe_layer(compiler: Compiler) -> None:
    shop, library = Shop(compiler), variants.library(compiler, "check")
    more = {"OCAML_RUNTIME_VARIANT": VARIANT, "OCAML_RUNTIME_FOLDER": str(library)}
    more["OUTHEAP"] = f"check.seed={matrix.seed()},check=move:10"
    said = shop.cargo("test", "-p", "ocaml-boxroot", "--test", "all", "--", "--skip", COUNTS, cwd=RUST, more=more)
    assert "outheap-check: a" not in said, said

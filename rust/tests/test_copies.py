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

LIBRARY = """
#![forbid(unsafe_code)]
use ocaml_boxroot::*;
use std::sync::Mutex;

#[derive(Debug)]
pub struct Mine(String);
ocaml_abstract! { Mine = "mine"; }

#[derive(Debug, OCamlException)]
pub struct Mistake(String);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.0) }
}
impl std::error::Error for Mistake {}

#[export]
fn mine<'a>(rt: &'a mut Runtime, s: &str) -> ValueGuard<'a, Boxed<Mine>> { rt.boxed(Mine(s.into())) }
#[export]
fn text(rt: &Runtime, m: &Mine) -> String { let _ = rt; m.0.clone() }
#[export]
fn explode(n: isize) -> isize { panic!("in NAME: {n}") }
#[export]
fn fail(s: String) -> Result<(), Mistake> { Err(Mistake(s)) }
#[export]
fn call(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Int>>) -> Result<isize, Exception> {
    rt.frame(|rt, [slot]| {
        let kept = slot.root(rt.string("NAME"));
        let root = rt.string("root of NAME").root();
        let n = f.call(rt, ((),))?.value().to_isize();
        rt.full_major()?;
        assert_eq!((kept.get(rt).to_str(), root.get(rt).to_str()), (Ok("NAME"), Ok("root of NAME")));
        Ok(n)
    })
}
#[export]
fn released(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Int>>) -> Result<isize, Exception> {
    rt.release(|| attach(|rt| Ok(f.call(rt, ((),))?.value().to_isize())).unwrap())
}
#[export]
fn attached() -> bool { attach(|_| ()) == Err(AttachError::Nested) }
static KEPT: Mutex<Option<Root<Str>>> = Mutex::new(None);
#[export]
fn keep(rt: &Runtime, s: Root<Str>) { let _ = rt; *KEPT.lock().unwrap() = Some(s); }
#[export]
fn kept(rt: &Runtime) -> Option<Root<Str>> { KEPT.lock().unwrap().as_ref().map(|root| root.clone_ref(rt)) }
library! {
    name = "NAME", exports = [mine, text, explode, fail, call, released, attached, keep, kept], exceptions = [Mistake],
}
"""

USER = """
let fresh s = String.init (String.length s) (String.get s)
let invalid f = match f () with _ -> false | exception Invalid_argument _ -> true
let panics text f =
  match f () with _ -> false | exception Ocaml_boxroot.Rust_panic p -> p.message = text
let run () =
  assert (One.text (One.mine "a") = "a" && Two.text (Two.mine "b") = "b");
  assert (invalid (fun () -> One.text (Obj.magic (Two.mine "x"))));
  assert (invalid (fun () -> Two.text (Obj.magic (One.mine "x"))));
  assert (match One.fail "1" with _ -> false | exception One.Mistake "1" -> true);
  assert (match Two.fail "2" with _ -> false | exception Two.Mistake "2" -> true);
  for n = 1 to 100 do
    assert (panics (Printf.sprintf "in two: %d" n) (fun () -> One.call (fun () -> Two.explode n)));
    assert (panics (Printf.sprintf "in one: %d" n) (fun () -> Two.call (fun () -> One.explode n)));
    assert (Two.call (fun () -> One.call (fun () -> n)) = n);
    assert (match Two.call (fun () -> One.call (fun () -> raise Not_found)) with
      | _ -> false | exception Not_found -> true);
    assert (One.released (fun () -> Two.released (fun () -> One.call (fun () -> n))) = n)
  done;
  (* The other copy sees that the lock is held. *)
  assert (One.attached () && Two.attached ());
  assert (One.call (fun () -> Bool.to_int (Two.attached ())) = 1);
  assert (Two.released (fun () -> Bool.to_int (One.attached ())) = 1);
  One.keep (fresh "kept by one");
  Two.keep (fresh "kept by two");
  Gc.compact ();
  assert (One.kept () = Some "kept by one" && Two.kept () = Some "kept by two");
  let work () =
    for n = 1 to 20 do
      assert (One.released (fun () -> Thread.yield (); Two.call (fun () -> n)) = n);
      assert (Two.released (fun () -> Thread.yield (); One.call (fun () -> n)) = n)
    done
  in
  List.iter Thread.join (List.init 3 (fun _ -> Thread.create work ()));
  print_endline "copies: ok"
"""


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
    (folder / "user.ml").write_text(USER)
    target = shop.target
    for name in ("one", "two"):
        source = folder / f"{name}-crate"
        (source / "src").mkdir(parents=True)
        (source / "src/lib.rs").write_text(LIBRARY.replace("NAME", name))
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

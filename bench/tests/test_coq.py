# SPDX-License-Identifier: MIT
"""What workloads/outheap/coq-hashcons changes in the sources of Coq, on a small stand-in for them, and on the sources
themselves where they were fetched already. OCAML_PREFIX, or the default compiler."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from runner.compiler import ROOT

SCRIPT = ROOT / "bench" / "workloads" / "outheap" / "coq-hashcons"
CACHE = Path(
    os.environ.get("BOXROOT_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boxroot"
)

HASHSET = """\
module type EqType = sig type t val eq : t -> t -> bool end
type statistics = {
  num_bindings : int; num_buckets : int; max_bucket_length : int; bucket_histogram : int array }
module type S = sig
  type elt
  type t
  val create : int -> t
  val clear : t -> unit
  val repr : int -> elt -> t -> elt
  val stats : t -> statistics
end
"""
STAND_IN = {
    "clib/dune": "(library\n (name clib)\n (libraries\n   str unix threads))\n",
    "clib/hashset.mli": HASHSET
    + """\
module Make (E : EqType) : S with type elt = E.t
module Combine : sig val combine : int -> int -> int end
""",
    "clib/hashset.ml": HASHSET
    + """\
module Make (E : EqType) =
  struct
  type elt = E.t
  type t = (int * elt) list ref
  let create _ = ref []
  let clear t = t := []
  let repr h d t =
    match List.find_opt (fun (h', d') -> h = h' && E.eq d' d) !t with
    | Some (_, d) -> d
    | None -> t := (h, d) :: !t; d
  let stats t =
    let n = List.length !t in
    { num_bindings = n; num_buckets = -1; max_bucket_length = n; bucket_histogram = [||] }
end

module Combine = struct
  let combine x y = 31 * x + y
end
""",
    "kernel/constr.ml": """\
type t = Rel of int | App of t * t array
let calls = ref 0
let eqeq a b = Array.length a = Array.length b && Array.for_all2 (==) a b
module HashsetTerm = Hashset.Make (struct
  type nonrec t = t
  let eq a b =
    match a, b with Rel a, Rel b -> a = b | App (a, l), App (b, m) -> a == b && l == m | _ -> false
end)
module HashsetTermArray = Hashset.Make (struct type nonrec t = t array let eq = eqeq end)
let term_table = HashsetTerm.create 19991
let term_array_table = HashsetTermArray.create 4999
open Hashset.Combine
let rec hash_term t =
  incr calls;
  match t with
  | Rel n -> (t, n)
  | App (f, l) ->
    let f, h = sh_rec f in
    let l = Array.map sh_rec l in
    let h = Array.fold_left (fun h (_, h') -> combine h h') h l in
    (App (f, HashsetTermArray.repr h (Array.map fst l) term_array_table), h)
and sh_rec t =
  let (y, h) = hash_term t in
  (HashsetTerm.repr (h land 0x3FFFFFFF) y term_table, h land 0x3FFFFFFF)
""",
}
MAIN = """\
open Constr
let rec term n = if n = 0 then Rel (Sys.opaque_identity 3) else App (term (n - 1), [| term (n - 1); Rel n |])
let () =
  let a, h = sh_rec (term 8) in
  let b, h' = sh_rec (term 8) in
  assert (a == b && h = h');
  (match a with App (f, l) -> assert (f == l.(0)) | Rel _ -> assert false);
  calls := 0;
  assert (sh_rec a = (a, h));
  (* off the heap a term that is hash-consed is not entered again *)
  assert ((!calls = 0) = (Outheap_hashcons.off_heap && at_once));
  let s = HashsetTerm.stats term_table in
  assert (s.Hashset.num_bindings = 16);
  (* with the stock runtime these are the tables that were there *)
  if Outheap_hashcons.off_heap then
    assert (s.num_buckets >= 16 && s.bucket_histogram = [| s.num_buckets - 16; 16 |])
  else assert (s.num_buckets = -1);
  HashsetTerm.clear term_table;
  assert ((HashsetTerm.stats term_table).Hashset.num_bindings = 0);
  print_endline (if at_once then "at once" else "tables alone")
"""


def stand_in(folder: Path) -> Path:
    for name, text in STAND_IN.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def change(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([SCRIPT, "--change", folder], capture_output=True, text=True)


def test_changed_tables(tmp_path, compiler):
    done = change(stand_in(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "coq-core.outheap_hashcons" in (tmp_path / "clib" / "dune").read_text()
    library = tmp_path / "outheap_hashcons"
    for name in ("clib/hashset.mli", "clib/hashset.ml", "kernel/constr.ml"):
        shutil.copy(tmp_path / name, library)
    (library / "main.ml").write_text(MAIN)
    modules = [f"{m}.{kind}" for m in ("outheap_region", "outheap_hashcons", "hashset") for kind in ("mli", "ml")]
    stubs = sorted(f.name for f in library.glob("*.c"))
    command = [compiler.ocamlopt, "-w", "-a", "-ccopt", "-I .", *stubs, *modules, "constr.ml", "main.ml", "-o", "main"]
    built = subprocess.run(command, cwd=library, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for wanted, said in (("", "at once"), ("tables", "tables alone")):
        ran = subprocess.run(
            ["./main"], cwd=library, capture_output=True, text=True, env={**os.environ, "COQ_HASHCONS": wanted}
        )
        assert (ran.returncode, ran.stdout.strip()) == (0, said), ran.stderr


@pytest.mark.parametrize(
    "name, line",
    [
        ("clib/dune", "   str unix threads))"),
        ("clib/hashset.ml", "module Make (E : EqType) ="),
        ("kernel/constr.ml", "let term_array_table = HashsetTermArray.create 4999"),
        ("kernel/constr.ml", "and sh_rec t ="),
    ],
)
def test_other_sources_are_refused(tmp_path, name, line):
    file = stand_in(tmp_path) / name
    file.write_text(file.read_text().replace(line, line.replace(" ", "  ", 1)))
    done = change(tmp_path)
    assert done.returncode == 1 and name in done.stderr


@pytest.mark.parametrize("sources", sorted((CACHE / "coq").glob("*/coq")), ids=lambda p: p.parent.name)
def test_debians_sources(tmp_path, sources):
    for folder in ("clib", "kernel"):
        (tmp_path / folder).mkdir()
        for file in ("dune", "hashset.ml", "constr.ml"):
            if (sources / folder / file).exists():
                shutil.copy(sources / folder / file, tmp_path / folder)
    done = change(tmp_path)
    assert done.returncode == 0, done.stderr
    hashset = (tmp_path / "clib" / "hashset.ml").read_text()
    assert hashset.count("module Make (E : EqType)") == 1 and "Weak_arrays (E)" in hashset
    assert (tmp_path / "kernel" / "constr.ml").read_text().count("hkey_of_node") == 1

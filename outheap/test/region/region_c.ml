(* SPDX-License-Identifier: MIT *)
(* The interface for C (outheap_region.h), called from stubs: region_c_stubs.c. *)
open Region_checks

(* Each is one sequence of calls; the result says which expectation failed, or is empty. *)
external life : 'a -> string = "region_c_life"
external images : 'a -> string -> string = "region_c_images"
external errors : 'a -> string -> string = "region_c_errors"
external tracked : 'a -> string = "region_c_tracked"
external below : 'a -> string = "region_c_below"
external refusals : string -> string -> string -> string = "region_c_refusals"
external uses : 'a -> string -> string = "region_c_uses"
external patience : int -> unit = "region_test_patience"

let kinds = Region_limits.kinds_in_c
let copied_and_saved = -101 and no_memory = 101
let exclusive = 16

(* Images that C code cannot map: see region_c_refusals. *)
let refused value =
  Region_images.with_file "c" @@ fun damaged ->
  Region_images.with_file "other" @@ fun other ->
  Region_images.with_file "base" @@ fun base ->
  Region_images.with_file "missing" @@ fun missing ->
  let s = Outheap_region.schema ~name:"c" ~version:7 in
  Region_images.write damaged (String.make 5000 'x');
  ok "save" (Outheap_region.save s ~path:other value);
  Region_images.write other (Region_images.of_another_ocaml (Region_images.read other));
  let made = in_child (fun () ->
      let another = Outheap_region.schema ~name:"base" ~version:1 in
      ok "save" (Outheap_region.save another ~path:base value);
      let b = ok "map" (Outheap_region.map another ~path:base ()) in
      ok "save" (Outheap_region.save s ~needs:[ Outheap_region.region b ] ~path:missing (Outheap_region.get b));
      0) in
  check "made" (made = Unix.WEXITED 0);
  refusals damaged other missing

(* Who has to wait is no error: a second process copies, unless it is told not to. *)
let alone value path =
  patience 0;
  let second () = (Outheap_region.stats ()).second in
  let before = second () in
  check "copied and saved" (kinds value 0 path = copied_and_saved);
  let usual = second () - before in
  check "a second process" (usual = 2 || Sys.getenv_opt "TSAN_OPTIONS" <> None);
  check "without one" (kinds value exclusive path = copied_and_saved && second () = before + usual);
  ignore (fail (-1));
  let kind = kinds value exclusive path in
  check "it failed" (fail 0);
  check (Printf.sprintf "errors %d without memory" kind) (kind = no_memory)

let calls () =
  let path = Filename.temp_file "region" ".image" in
  let value = List.init 3000 (fun i -> (i, string_of_int i)) in
  let expect what text = check (Printf.sprintf "%s: %s" what text) (text = "") in
  for _ = 1 to 5 do
    expect "life" (life value);
    expect "images" (images value path);
    expect "errors" (errors (opaque (fun x -> x + List.length value)) path);
    expect "tracked" (tracked (Array.make 100 []));
    expect "below" (below value);
    expect "uses" (uses value path);
    majors 2
  done;
  expect "refusals" (refused value);
  alone value path;
  Sys.remove path;
  if Outheap_region.can_delete then (
    majors 4;
    check "all ended" ((Outheap_region.stats ()).live = 0))

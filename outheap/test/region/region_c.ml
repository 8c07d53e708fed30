(* SPDX-License-Identifier: MIT *)
(* The interface for C (outheap_region.h), called from stubs: region_c_stubs.c. *)
open Region_checks

(* Each is one sequence of calls; the result says which expectation failed, or is empty. *)
external life : 'a -> string = "region_c_life"
external images : 'a -> string -> string = "region_c_images"
external errors : 'a -> string -> string = "region_c_errors"
external tracked : 'a -> string = "region_c_tracked"
external below : 'a -> string = "region_c_below"

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
    majors 2
  done;
  Sys.remove path;
  if Outheap_region.can_delete then (
    majors 4;
    check "all ended" ((Outheap_region.stats ()).live = 0))

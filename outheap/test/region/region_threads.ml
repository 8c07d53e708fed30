(* SPDX-License-Identifier: MIT *)
(* More copies are made at a time than there are extents of a TiB. It needs threads, so this is a program of its own. *)
let () =
  let v = List.init 300_000 (fun i -> Some (string_of_int i)) and failed = Atomic.make 0 in
  let copy () =
    match Outheap_region.copy v with
    | Ok r -> if Outheap_region.get r <> v then Atomic.incr failed
    | Error e -> prerr_endline (Outheap_region.error_to_string e); Atomic.incr failed
  in
  Region_domains.run 6 (fun _ () -> List.iter Thread.join (List.init 10 (fun _ -> Thread.create copy ())));
  if Atomic.get failed > 0 then exit 1

(* SPDX-License-Identifier: MIT *)
(* Outheap's statistics as they come to a consumer of runtime_events. events VARIANT: is this the variant? *)
module E = Runtime_events

let variant = bool_of_string Sys.argv.(1)

let check what ok =
  if not ok then (
    prerr_endline ("FAIL: " ^ what);
    exit 1)

(* The figures that have come since the last time: the last value of each name, and how many. *)
let received cursor =
  let last = Hashtbl.create 40 and count = ref 0 in
  let on_int _ring _time event value =
    match E.User.tag event with
    | Outheap_events.Outheap ->
      incr count;
      Hashtbl.replace last (E.User.name event) value
    | _ -> ()
  in
  let callbacks = E.Callbacks.(create () |> add_user_event E.Type.int on_int) in
  while E.read_poll cursor callbacks None > 0 do
    ()
  done;
  (last, !count)

let () =
  let n = List.length Outheap_events.names in
  Outheap_events.write (); (* before there are events *)
  E.start ();
  let cursor = E.create_cursor None in
  ignore (received cursor);
  Outheap_events.write ();
  let last, count = received cursor in
  check "each figure once" (count = n && List.for_all (Hashtbl.mem last) Outheap_events.names);
  let now = Outheap.statistics () in
  check "available" (Outheap.available = variant);
  check "committed" (Hashtbl.find last "outheap.committed" = now.committed && now.committed > 0 = variant);
  check "ranges" (Hashtbl.find last "outheap.ranges" = now.ranges);
  let alarm = Outheap_events.start () in
  let cycles = 3 in
  for _ = 1 to cycles do
    ignore (Sys.opaque_identity (Array.make 100_000 0));
    Gc.full_major ()
  done;
  let _, count = received cursor in
  check "at the end of cycles" (count >= n * cycles && count mod n = 0);
  Outheap_events.stop alarm;
  Outheap_events.stop alarm;
  Gc.full_major ();
  ignore (received cursor);
  Gc.full_major ();
  check "stopped" (snd (received cursor) = 0);
  Outheap_events.write ();
  check "once more" (snd (received cursor) = n);
  (* another domain, and one that ends *)
  Domain.join (Domain.spawn (fun () -> Outheap_events.write ()));
  check "another domain" (snd (received cursor) = n);
  print_endline "events: passed"

(* SPDX-License-Identifier: MIT *)
(* Outheap's statistics as they come to a consumer of runtime_events.
     events VARIANT   is this the variant?
     events helper    what the helper did, and the sums of that *)
module E = Runtime_events

let helper = Sys.argv.(1) = "helper"
let variant = helper || bool_of_string Sys.argv.(1)

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

(* The stretches of the helper's work that have come, the last first, each with the time when it was told. *)
let spans cursor =
  let all = ref [] and lost = ref 0 in
  let on_span _ring time event (s : Outheap.helper_span) =
    check "name and tag" (E.User.name event = "outheap.helper" && E.User.tag event = Outheap_events.Outheap);
    all := (s, Int64.to_int (E.Timestamp.to_int64 time)) :: !all
  in
  let lost_events _ n = lost := !lost + n in
  let callbacks = E.Callbacks.(create ~lost_events () |> add_user_event Outheap_events.helper on_span) in
  while E.read_poll cursor callbacks None > 0 do
    ()
  done;
  check "no event was lost" (!lost = 0);
  !all

(* The figures that came last, as one event. *)
let last_statistics cursor =
  let last = ref [] in
  let callbacks =
    E.Callbacks.(create () |> add_user_event Outheap_events.statistics (fun _ _ _ all -> last := all))
  in
  while E.read_poll cursor callbacks None > 0 do
    ()
  done;
  !last

(* Trees that are replaced, in cycles of which the helper has a part. *)
type tree = Leaf | Node of tree * int * tree

let rec tree depth = if depth = 0 then Leaf else Node (tree (depth - 1), depth, tree (depth - 1))

let helper_lives () =
  let name task =
    try In_channel.with_open_bin (Printf.sprintf "/proc/self/task/%s/comm" task) In_channel.input_all
    with Sys_error _ -> ""
  in
  Array.exists (fun task -> name task = "outheap-helper\n") (Sys.readdir "/proc/self/task")

let helped () =
  E.start ();
  let cursor = E.create_cursor None in
  let from = Outheap.helper_spans () in
  check "nothing was done" (from = [||]);
  let alarm = Outheap_events.start () in
  let all = ref [] in
  let kept = Array.init 16 (fun _ -> tree 13) in
  let some marks = List.exists (fun ((s : Outheap.helper_span), _) -> s.marks = marks) !all in
  let enough () = (some true && some false) || not (helper_lives ()) in
  let rec go i =
    kept.(i mod 16) <- tree 13;
    if i mod 64 = 0 then Gc.full_major ();
    if i mod 16 = 0 then all := spans cursor @ !all;
    if i < 400 || not (enough ()) then go (i + 1)
  in
  go 1;
  Outheap_events.stop alarm;
  Outheap.stop_helper ();
  Domain.join (Domain.spawn Outheap_events.write); (* any domain tells what is left *)
  let all = List.rev (spans cursor @ !all) in
  check "nothing is told twice" (Outheap.helper_spans () = [||]);
  let follow (i, before) ((s : Outheap.helper_span), told) =
    check "numbers" (s.number = i);
    check "there was work" (s.work > 0);
    check "stretches follow each other" (before <= s.began && s.began <= s.ended && s.ended <= told);
    (i + 1, s.ended)
  in
  let count, _ = List.fold_left follow (0, 0) all in
  let sum f = List.fold_left (fun n (s, _) -> n + f s) 0 all in
  Printf.printf "spans %d\nmarked %d\nswept %d\nmicroseconds %d\n" count
    (sum (fun (s : Outheap.helper_span) -> if s.marks then s.work else 0))
    (sum (fun (s : Outheap.helper_span) -> if s.marks then 0 else s.work))
    (sum (fun (s : Outheap.helper_span) -> s.ended - s.began) / 1000)

let () =
  if helper then (
    helped ();
    exit 0);
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
  (* more than an event of type int can say *)
  check "reserved" (Result.is_ok (Outheap.reserve (3 lsl 30)) = variant);
  let all = E.create_cursor None in
  ignore (last_statistics all);
  Outheap_events.write ();
  let last, _ = received cursor and whole = last_statistics all and now = Outheap.statistics () in
  check "whole" (List.map (fun (name, _) -> "outheap." ^ name) whole = Outheap_events.names);
  check "reserved, whole" (List.assoc "reserved" whole = now.reserved && now.reserved > 3 lsl 30 - 1 = variant);
  check "reserved, as an int" (Hashtbl.find last "outheap.reserved" = min now.reserved 0x7fff_ffff);
  E.free_cursor all;
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

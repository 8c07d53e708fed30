(* SPDX-License-Identifier: MIT *)
(* pressure: a hash table with OCaml records, in which entries come, are changed, are read and make room for others. The
   table lies in foreign memory and has a root per entry, or lies in OCaml's heap: what the collector has to do in each
   case. Arguments: entries, steps. *)

type record = { key : int; name : string; past : int list }

let rec first n = function x :: rest when n > 0 -> x :: first (n - 1) rest | _ -> []

let () =
  let entries = Bench.int_argument 1 ~default:500_000 and steps = Bench.int_argument 2 ~default:5_000_000 in
  let names = Array.init 1000 string_of_int in
  let resident = Bench.resident_bytes () in
  Store.create ~most:entries;
  let seen = ref 0 in
  (* Twice as many keys as entries: about half of those asked for are there. *)
  let any_key () = Rng.below (2 * entries) in
  let step i =
    let key = any_key () in
    match Store.get key with
    | None -> Store.put key { key; name = names.(key mod 1000); past = [ i ] }
    | Some r ->
      if r.key <> key || r.name != names.(key mod 1000) then Bench.fail "key %d has lost its value" key;
      Store.put key { r with past = i :: first 3 r.past };
      Option.iter (fun other -> seen := !seen + List.length other.past) (Store.get (any_key ()))
  in
  Bench.timed (fun () ->
      for i = 1 to steps do
        step i
      done);
  let s = Gc.quick_stat () in
  Bench.metric "minor collections" (float s.minor_collections) "";
  Bench.metric "major collections" (float s.major_collections) "";
  Bench.metric "promoted words per step" (s.promoted_words /. float steps) "";
  Bench.metric "top heap" (float (s.top_heap_words * 8) /. 1e6) "MB";
  Bench.metric "resident" (float (Bench.resident_bytes () - resident) /. 1e6) "MB";
  let start = Bench.cpu () in
  Gc.full_major ();
  Bench.metric "full major" ((Bench.cpu () -. start) *. 1e3) "ms";
  Store.clear ()

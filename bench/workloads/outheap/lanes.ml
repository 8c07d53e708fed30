(* SPDX-License-Identifier: MIT *)
(* What the first domain and the helper do in some cycles of the collector: a line
   "lane TAB NAME TAB BEGIN TAB LENGTH" in milliseconds for each stretch, and as a metric how much time of each kind a
   thousand calls take. Reading the events takes time and memory, too. *)
module E = Runtime_events

let cycles = 2
let most = 8. (* seconds *)
let drawn_apart = 1000 (* the part of the time that must lie between two stretches to be drawn *)

type lane = { name : string; drawn : bool; mutable since : int option; mutable spans : (int * int) list }

let lane ?(drawn = true) name = { name; drawn; since = None; spans = [] }
let minor = lane "minor collections"
let slices = lane "major slices"
let marking = lane ~drawn:false "marking by the domain"
let sweeping = lane ~drawn:false "sweeping by the domain"
let marks = lane "the helper marks"
let sweeps = lane "the helper sweeps"
let all = [ minor; slices; marking; sweeping; marks; sweeps ]

let of_phase = function
  | E.EV_MINOR -> Some minor
  | E.EV_MAJOR_SLICE -> Some slices
  | E.EV_MAJOR_MARK -> Some marking
  | E.EV_MAJOR_SWEEP -> Some sweeping
  | _ -> None

let nanoseconds time = Int64.to_int (E.Timestamp.to_int64 time)

(* The lanes of ring 0, which the first domain writes. *)
let callbacks =
  let on_begin ring time phase =
    if ring = 0 then Option.iter (fun l -> l.since <- Some (nanoseconds time)) (of_phase phase)
  in
  let ended time l =
    Option.iter (fun from -> l.spans <- (from, nanoseconds time) :: l.spans) l.since;
    l.since <- None
  in
  let on_end ring time phase = if ring = 0 then Option.iter (ended time) (of_phase phase) in
  E.Callbacks.create ~runtime_begin:on_begin ~runtime_end:on_end
    ~lost_events:(fun _ n -> Bench.fail "%d events were lost" n)
    ()

let of_helper () =
  let add (s : Outheap.helper_span) =
    let l = if s.marks then marks else sweeps in
    l.spans <- (s.began, s.ended) :: l.spans
  in
  Array.iter add (Outheap.helper_spans ())

let clip from until (a, b) = if b <= from || a >= until then None else Some (max a from, min b until)

let rec joined gap = function
  | (a, b) :: (c, d) :: rest when c - b < gap -> joined gap ((a, max b d) :: rest)
  | span :: rest -> span :: joined gap rest
  | [] -> []

let tell from until calls l =
  let spans = List.filter_map (clip from until) (List.sort compare l.spans) in
  let time = List.fold_left (fun sum (a, b) -> sum + b - a) 0 spans in
  Bench.metric ("a thousand calls: " ^ l.name) (float time /. 1e3 /. float calls) "ms";
  if l.drawn then
    List.iter
      (fun (a, b) -> Printf.printf "lane\t%s\t%.3f\t%.3f\n" l.name (float (a - from) /. 1e6) (float (b - a) /. 1e6))
      (joined ((until - from) / drawn_apart) spans)

(* Calls [f] until a cycle has ended, and so on [n] times, or until that takes too long. *)
let rec until_cycles n f =
  let ended () = (Gc.quick_stat ()).major_collections and began = Bench.wall () in
  let before = ended () in
  while ended () = before && Bench.wall () < began +. (most /. float cycles) do
    f ()
  done;
  if n > 1 then until_cycles (n - 1) f

(* [step], which is so many calls, runs again and again from the beginning of a cycle on. *)
let record ~calls step =
  until_cycles 1 step;
  E.start ();
  let cursor = E.create_cursor None in
  let poll () = ignore (E.read_poll cursor callbacks None) in
  poll ();
  ignore (Outheap.helper_spans ());
  let now () = int_of_float (Bench.wall () *. 1e9) in
  let from = now () and count = ref 0 in
  until_cycles cycles (fun () ->
      step ();
      count := !count + calls;
      poll ();
      of_helper ());
  let until = now () in
  (* stretches that have begun *)
  for _ = 1 to 20 do
    Unix.sleepf 0.005;
    of_helper ()
  done;
  List.iter (tell from until !count) all

(* SPDX-License-Identifier: MIT *)
type Runtime_events.User.tag += Outheap

(* tools/statistics writes this list from outheap.h. *)
let figures : (string * (Outheap.statistics -> int)) list = [
  ("chunks", fun s -> s.chunks);
  ("chunks_tainted", fun s -> s.chunks_tainted);
  ("reserved", fun s -> s.reserved);
  ("reserved_ahead", fun s -> s.reserved_ahead);
  ("committed", fun s -> s.committed);
  ("resident_free", fun s -> s.resident_free);
  ("pools", fun s -> s.pools);
  ("pool_pages", fun s -> s.pool_pages);
  ("blocks", fun s -> s.blocks);
  ("block_bytes", fun s -> s.block_bytes);
  ("young", fun s -> s.young);
  ("minor_grown", fun s -> s.minor_grown);
  ("minor_shrunk", fun s -> s.minor_shrunk);
  ("minor_refused", fun s -> s.minor_refused);
  ("ranges", fun s -> s.ranges);
  ("commits", fun s -> s.commits);
  ("purges", fun s -> s.purges);
  ("reservations", fun s -> s.reservations);
  ("advises", fun s -> s.advises);
  ("met_unknown", fun s -> s.met_unknown);
  ("words_seen", fun s -> s.words_seen);
  ("words_immediate", fun s -> s.words_immediate);
  ("words_young", fun s -> s.words_young);
  ("words_static", fun s -> s.words_static);
  ("words_foreign", fun s -> s.words_foreign);
  ("lines_saved", fun s -> s.lines_saved);
  ("refused_zone", fun s -> s.refused_zone);
  ("refused_memory", fun s -> s.refused_memory);
  ("refused_huge", fun s -> s.refused_huge);
]

(* The runtime's events of type int have 32 bits, also where it has 64. *)
let most = 0x7fff_ffff

let events =
  let event (name, of_statistics) =
    (Runtime_events.User.register ("outheap." ^ name) Outheap Runtime_events.Type.int, of_statistics)
  in
  List.map event figures

let names = List.map (fun (event, _) -> Runtime_events.User.name event) events

(* Words, one behind the other. The runtime gives a buffer of 1,024 bytes. *)
let put buffer i n = Bytes.set_int64_le buffer (8 * i) (Int64.of_int n)
let get buffer i = Int64.to_int (Bytes.get_int64_le buffer (8 * i))

let statistics =
  let encode buffer all = List.iteri (fun i (_, n) -> put buffer i n) all; 8 * List.length all in
  let decode buffer _ = List.mapi (fun i (name, _) -> (name, get buffer i)) figures in
  Runtime_events.Type.register ~encode ~decode

let helper =
  let encode buffer (s : Outheap.helper_span) =
    List.iteri (put buffer) [ s.number; s.began; s.ended; s.work; Bool.to_int s.marks ];
    40
  in
  let decode buffer _ : Outheap.helper_span =
    let at = get buffer in
    { number = at 0; began = at 1; ended = at 2; work = at 3; marks = at 4 <> 0 }
  in
  Runtime_events.Type.register ~encode ~decode

let all_figures = Runtime_events.User.register "outheap.statistics" Outheap statistics
let stretch = Runtime_events.User.register "outheap.helper" Outheap helper

let write () =
  let s = Outheap.statistics () in
  List.iter (fun (event, of_statistics) -> Runtime_events.User.write event (min most (of_statistics s))) events;
  Runtime_events.User.write all_figures (List.map (fun (name, of_statistics) -> (name, of_statistics s)) figures);
  Array.iter (Runtime_events.User.write stretch) (Outheap.helper_spans ())

type t = Gc.alarm

let start () = Gc.create_alarm write
let stop = Gc.delete_alarm

(* SPDX-License-Identifier: MIT *)
(* pair: creation, deletion and modification in C, in batches. Reports ns per pair and per modification. Arguments:
   seconds per measurement, measurements (the median counts). With the arguments "count" and R: R batches of 1,000 of
   each operation, not timed, for a tool that counts instructions. *)

external setup : 'a -> unit = "pair_setup"
external pairs : int -> int -> unit = "pair_create_delete" [@@noalloc]
external pairs_of_any_size : bool -> int -> int -> unit = "pair_create_delete_any" [@@noalloc]
external modifications : int -> int -> unit = "pair_modify" [@@noalloc]
external count : int -> unit = "pair_count" [@@noalloc]

let median_ns ~seconds ~measurements f =
  f 10_000;
  Bench.median (List.init measurements (fun _ -> Bench.ns_per_operation ~seconds ~chunk:100_000 f))

let () =
  setup [| Sys.opaque_identity 1 |];
  match Bench.argument 1 ~default:"0.03" with
  | "count" -> count (Bench.int_argument 2 ~default:10)
  | seconds ->
    let seconds = float_of_string seconds and measurements = Bench.int_argument 2 ~default:5 in
    let measure name f =
      let ns = median_ns ~seconds ~measurements f in
      Bench.metric name ns "ns";
      ns
    in
    let in_batches name f =
      let ns = List.map (fun batch ->
        measure (Printf.sprintf "%s, batch %d" name batch) (f batch)) [ 1; 10; 100; 1000 ] in
      Bench.metric (name ^ ", geometric mean") (List.fold_left ( *. ) 1. ns ** 0.25) "ns"
    in
    in_batches "create+delete" pairs;
    List.iter (fun size ->
      let measure how last_first =
        ignore (measure (Printf.sprintf "create+delete, %d %s" size how) (pairs_of_any_size last_first size)) in
      measure "at a time" false;
      measure "at a time, last first" true) [ 2; 5; 10; 20; 50 ];
    in_batches "modify" modifications

(* SPDX-License-Identifier: MIT *)
(* remote: one domain creates a million roots, then they are deleted from somewhere. Reports ns per root of the deletion
   (wall clock; median), and of what the owner pays afterwards: a minor collection and the creation of as many roots
   again. Arguments: roots, measurements, and the places:
   "local,while-marking,blocking-section,thread,domain,two-domains". *)

external setup : int -> 'a array -> unit = "remote_setup"
external create_all : unit -> unit = "remote_create_all" [@@noalloc]
(* every [stride]-th root from [first] on *)
external delete_stride : int -> int -> unit = "remote_delete_stride" [@@noalloc]
external delete_in_blocking_section : unit -> unit = "remote_delete_in_blocking_section"
external delete_by_thread : unit -> float = "remote_delete_by_thread" (* seconds, without the start of the thread *)

let timed f =
  let start = Bench.wall () in
  f ();
  Bench.wall () -. start

(* Domains are started beforehand and wait, so that only deletion is timed. *)
let by_domains strides =
  let waiting = Atomic.make (List.length strides) in
  let times = Array.make (List.length strides) 0. in
  let delete i (first, stride) () =
    Atomic.decr waiting;
    while Atomic.get waiting > 0 do Domains.relax () done;
    times.(i) <- timed (fun () -> delete_stride first stride)
  in
  Domains.run_all (List.mapi delete strides);
  Array.fold_left max 0. times

let delete_from = function
  | "local" -> timed (fun () -> delete_stride 0 1)
  | "while-marking" ->
    (* the roots are old and a cycle has just begun: the case where snapshot marking needs a barrier *)
    Bench.begin_marking ();
    timed (fun () -> delete_stride 0 1)
  | "blocking-section" -> timed delete_in_blocking_section
  | "thread" -> delete_by_thread ()
  | "domain" -> by_domains [ (0, 1) ]
  | "two-domains" -> by_domains [ (0, 2); (1, 2) ] (* neighbours in a pool go to different domains *)
  | other -> Bench.fail "unknown place: %s" other

let () =
  let roots = Bench.int_argument 1 ~default:1_000_000 in
  let measurements = Bench.int_argument 2 ~default:5 in
  let places = Bench.argument 3 ~default:"local,while-marking,blocking-section,thread,domain,two-domains" in
  setup roots (Array.init 1024 (fun i -> ref i));
  let measure place =
    Gc.full_major ();
    create_all ();
    Gc.minor ();
    let deletion = delete_from place in
    let after = timed (fun () -> Gc.minor (); create_all ()) in
    delete_stride 0 1;
    (deletion, after)
  in
  let report place =
    let results = List.init measurements (fun _ -> measure place) in
    let metric name seconds = Bench.metric name (Bench.median seconds *. 1e9 /. float roots) "ns" in
    metric ("delete, " ^ place) (List.map fst results);
    metric ("create again, after " ^ place) (List.map snd results)
  in
  let possible place = Domains.available || not (List.mem place [ "domain"; "two-domains" ]) in
  List.iter report (List.filter possible (String.split_on_char ',' places))

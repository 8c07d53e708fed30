(* SPDX-License-Identifier: MIT *)
(* What every workload needs: clocks, parameters, and the output that the runner reads: one line "name TAB value TAB
   unit" per metric. *)
external wall : unit -> (float [@unboxed]) = "bench_wall_byte" "bench_wall" [@@noalloc]
external cpu : unit -> (float [@unboxed]) = "bench_cpu_byte" "bench_cpu" [@@noalloc]
external thread_cpu : unit -> (float [@unboxed]) = "bench_thread_cpu_byte" "bench_thread_cpu" [@@noalloc]
external user : unit -> (float [@unboxed]) = "bench_user_byte" "bench_user" [@@noalloc]
external resident_bytes : unit -> int = "bench_resident_bytes" [@@noalloc]
external trim : unit -> unit = "bench_trim" [@@noalloc]
external mappings : unit -> int = "bench_mappings" [@@noalloc]
external mark : unit -> unit = "bench_mark" [@@noalloc] (* where callgrind cuts what it counts *)

external marks : unit -> bool = "bench_marks" [@@noalloc]

(* Begins a cycle, and goes on until roots have been marked: what exists now is old, and in the snapshot. A small heap
   without much to mark may be marked from beginning to end within one step; after a thousand that is left alone. *)
let begin_marking () =
  Gc.full_major ();
  ignore (Gc.major_slice 1);
  let next step = marks () || (step (); marks ()) in
  let rec go left =
    if
      left > 0
      && not
        (next (fun () -> ignore (Gc.major_slice 10_000))
         || next (fun () -> ignore (Sys.opaque_identity (Array.make 5_000 0))) (* a small heap idles for a while *)
         || next Gc.minor)
    then go (left - 1)
  in
  go 1000

let metric name value unit = Printf.printf "%s\t%.9g\t%s\n%!" name value unit

let argument i ~default = if Array.length Sys.argv > i then Sys.argv.(i) else default
let int_argument i ~default = int_of_string (argument i ~default:(string_of_int default))

let fail format = Printf.ksprintf (fun message -> prerr_endline message; exit 1) format

let median samples =
  let sorted = List.sort compare samples in
  List.nth sorted (List.length sorted / 2)

(* The processor time of one operation, when [f n] does [n] of them: f is called for at least [seconds]. The clock: that
   of the process, or that of the thread where others run beside it. *)
let ns_per_operation ?(clock = cpu) ~seconds ~chunk f =
  let start = clock () in
  let rec go operations =
    f chunk;
    let elapsed = clock () -. start in
    if elapsed < seconds then go (operations + chunk) else elapsed *. 1e9 /. float (operations + chunk)
  in
  go 0

(* The cost of one of the [per] parts of an operation, when [f n] does [n] operations. Mode "time": the median of
   [measurements]. Mode "count": the program runs under callgrind, [count] operations lie between two marks, and the
   line says how many parts of operations these are. *)
let operation ?(measurements = 5) ~mode ~seconds ~chunk ~count ~per name f =
  match mode with
  | "count" ->
    f count;
    mark ();
    f count;
    mark ();
    metric name (float (count * per)) "marked"
  | "time" ->
    f 1;
    let sample _ = ns_per_operation ~seconds ~chunk f /. float per in
    metric name (median (List.init measurements sample)) "ns"
  | mode -> fail "time or count, not %s" mode

(* The counters of the GC, for the raw data. *)
let gc_metrics () =
  let s = Gc.quick_stat () in
  metric "gc: minor collections" (float s.minor_collections) "";
  metric "gc: major collections" (float s.major_collections) "";
  metric "gc: minor words" s.minor_words "words";
  metric "gc: promoted words" s.promoted_words "words";
  metric "gc: top heap" (float (s.top_heap_words * 8)) "B"

(* Runs a single-threaded workload and reports its time. Processor time is the figure to compare: it does not count what
   other programs of the machine do. User time leaves out what the system does, mostly handing out memory. Where [run]
   makes several copies of the same work, on as many domains, both are those of one copy. *)
let timed ?(copies = 1) run =
  let wall0 = wall () and cpu0 = cpu () and user0 = user () in
  let result = run () in
  let wall1 = wall () and cpu1 = cpu () and user1 = user () in
  metric "time" ((cpu1 -. cpu0) /. float copies) "s";
  metric "user time" ((user1 -. user0) /. float copies) "s";
  metric "wall" (wall1 -. wall0) "s";
  if copies > 1 then metric "wall per copy" ((wall1 -. wall0) /. float copies) "s";
  gc_metrics ();
  result

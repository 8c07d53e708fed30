(* SPDX-License-Identifier: MIT *)
(* crowd: many more domains than processors. In a ring, each makes roots, hands them to its neighbour, and reads and
   deletes what it is handed, round after round, waiting for its turn without spinning. Then each makes roots that it
   leaves behind, and ends; the first domain collects, deletes them, and makes as many again. Reports time for a root,
   the longest round, memory, and what those pay who come after the ended domains. Arguments: domains, roots of all
   domains together in each part. *)

let batch_size = 100

(* One batch at a time; whoever comes too early sleeps. *)
type 'a handover = { lock : Mutex.t; changed : Condition.t; mutable batch : 'a Cell.t array option }

let handover () = { lock = Mutex.create (); changed = Condition.create (); batch = None }

let rec wait_until h test = if not (test h.batch) then begin Condition.wait h.changed h.lock; wait_until h test end

let exchange h ~ready batch =
  Mutex.lock h.lock;
  wait_until h ready;
  let old = h.batch in
  h.batch <- batch;
  Condition.broadcast h.changed;
  Mutex.unlock h.lock;
  old

let put h batch = ignore (exchange h ~ready:Option.is_none (Some batch))
let take h = Option.get (exchange h ~ready:Option.is_some None)

let make_batch size = Array.init size (fun i -> Cell.create (ref i))
(* Values that were not there any more. A rival that loses some is measured nevertheless, and the report says so. *)
let lost = Atomic.make 0

let delete_batch =
  Array.iteri (fun i cell ->
      if !(Cell.get cell) <> i then Atomic.incr lost;
      Cell.delete cell)

let megabytes bytes = float bytes /. 1e6

let timed f =
  let start = Bench.wall () in
  let result = f () in
  (result, Bench.wall () -. start)

let () =
  let domains = Bench.int_argument 1 ~default:8 in
  let roots = Bench.int_argument 2 ~default:1_200_000 in
  let share = roots / domains in
  delete_batch (make_batch 1);
  Gc.full_major ();
  let resident = Bench.resident_bytes () in
  let growth () = megabytes (Bench.resident_bytes () - resident) in
  let ring = Array.init domains (fun _ -> handover ()) in
  let longest = Array.make domains 0. and left = Array.make domains [||] and peak = ref 0. in
  let pass id () =
    for _ = 1 to share / batch_size do
      let (), time =
        timed (fun () ->
            put ring.(id) (make_batch batch_size);
            delete_batch (take ring.((id + 1) mod domains)))
      in
      if time > longest.(id) then longest.(id) <- time
    done;
    if id = 0 then peak := growth ()
  in
  let everywhere f =
    let cpu = Bench.cpu () in
    let (), time = timed (fun () -> Domains.run_all (List.init domains f)) in
    (time, Bench.cpu () -. cpu)
  in
  let per_root seconds = seconds *. 1e9 /. float (share * domains) in
  let time, cpu = everywhere pass in
  Bench.metric "pass on" (per_root time) "ns";
  Bench.metric "pass on, processor time" (per_root cpu) "ns";
  Bench.metric "longest round" (Array.fold_left max 0. longest *. 1e3) "ms";
  Bench.metric "resident: while passing" !peak "MB";
  let time, _ = everywhere (fun id () -> left.(id) <- make_batch share) in
  Bench.metric "leave behind" (per_root time) "ns";
  let cpu name f =
    let start = Bench.cpu () in
    f ();
    Bench.metric name ((Bench.cpu () -. start) *. 1e3) "ms"
  in
  cpu "first minor collection after they ended" Gc.minor;
  cpu "full major after they ended" Gc.full_major;
  cpu "deletion of what they left" (fun () -> Array.iter delete_batch left);
  Gc.full_major ();
  Gc.full_major ();
  Bench.metric "resident: left roots deleted" (growth ()) "MB";
  cpu "as many again by the first domain" (fun () -> delete_batch (make_batch roots));
  Gc.compact ();
  Bench.metric "resident: at the end, compacted" (growth ()) "MB";
  Bench.metric "mappings at the end" (float (Bench.mappings ())) "";
  Bench.metric "values lost" (float (Atomic.get lost)) "";
  Bench.gc_metrics ()

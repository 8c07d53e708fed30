(* SPDX-License-Identifier: MIT *)
(* observers: foreign code that keeps a million values in sight without holding them. Reports the time of each
   operation, of a minor and of a full major collection beside them, and the longest step of a program that allocates.
   Arguments: observers, measurements, whether a thread without the lock deletes them, too ("thread" or
   "no-thread"). *)

let measurements = Bench.int_argument 2 ~default:5
let by_thread = Bench.argument 3 ~default:"thread" = "thread"

let timed f =
  let start = Bench.cpu () in
  f ();
  Bench.cpu () -. start

let metric name unit scale samples = Bench.metric name (Bench.median samples *. scale) unit

let () =
  let count = Bench.int_argument 1 ~default:1_000_000 / 1024 * 1024 in
  let each name samples = metric name "ns" (1e9 /. float count) samples in
  let repeat f = List.init measurements (fun _ -> f ()) in
  let old = Array.init 1024 (fun i -> ref i) in
  Watcher.make count;
  Gc.full_major ();
  let fill_old () = for i = 0 to (count / 1024) - 1 do Watcher.fill (i * 1024) old done in
  each "create" (repeat (fun () -> let t = timed fill_old in Watcher.delete_all (); t));
  each "create and delete, 1,024 at a time" (repeat (fun () -> timed (fun () -> Watcher.turn (count / 1024) old)));
  (* a value each, young; and what the next minor collection does beside promoting them *)
  let fresh () = Array.init 1024 (fun i -> ref i) in
  let young () =
    let create = ref 0. and minor = ref 0. in
    for i = 0 to (count / 1024) - 1 do
      let values = fresh () in
      create := !create +. timed (fun () -> Watcher.fill (i * 1024) values);
      minor := !minor +. timed Gc.minor;
      ignore (Sys.opaque_identity values)
    done;
    Watcher.delete_all ();
    (!create, !minor)
  in
  let alone = repeat (fun () -> (* the same without observers *)
    let minor = ref 0. in
    for _ = 1 to count / 1024 do
      let values = fresh () in
      minor := !minor +. timed Gc.minor;
      ignore (Sys.opaque_identity values)
    done;
    !minor)
  in
  let held = repeat young in
  each "create, young" (List.map fst held);
  each "minor collection for a young one, less that without" (List.map (fun (_, m) -> m -. Bench.median alone) held);
  fill_old ();
  let checked what expected f = if f () <> expected then Bench.fail "%s: wrong number" what in
  each "look up, alive" (repeat (fun () -> timed (fun () -> checked "look up" count Watcher.alive)));
  each "look up and root, alive" (repeat (fun () -> timed (fun () -> checked "root" count Watcher.root_each)));
  let minor () = timed (fun () -> for _ = 1 to 1000 do ignore (Sys.opaque_identity (ref 0)); Gc.minor () done) in
  metric "minor collection" "us" 1e3 (repeat minor);
  metric "full major" "ms" 1e3 (repeat (fun () -> timed Gc.full_major));
  let window = Array.make 65_536 [] in
  let finish = (Gc.quick_stat ()).major_collections + 10 in
  Steps.start ();
  let steps = ref 0 and over = ref false in
  while not !over do
    for _ = 1 to 128 do let n = Rng.next () in window.(n land 65_535) <- [ n; n; n ] done;
    Steps.step ();
    incr steps;
    if !steps land 127 = 0 then begin
      over := (Gc.quick_stat ()).major_collections >= finish;
      Steps.resume ()
    end
  done;
  Steps.metrics "step";
  each "delete" (repeat (fun () -> let t = timed Watcher.delete_all in fill_old (); t));
  if by_thread then
    each "delete, thread" (repeat (fun () -> let t = Watcher.delete_by_thread () in fill_old (); t));
  ignore (Sys.opaque_identity (old, window));
  Watcher.delete_all ();
  (* values that die *)
  for i = 0 to (count / 1024) - 1 do Watcher.fill (i * 1024) (fresh ()) done;
  Gc.full_major ();
  let dead = Watcher.alive () in
  if dead > 0 && dead < count then Bench.fail "%d are alive" dead;
  if dead = 0 then each "look up, dead" (repeat (fun () -> timed (fun () -> checked "dead" 0 Watcher.alive)))

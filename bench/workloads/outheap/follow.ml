(* SPDX-License-Identifier: MIT *)
(* Does resident memory follow the data, without a call? follow KIND
   work     a table of 1.5 million entries is dropped; ordinary work for 10 s, which promotes nothing
   idle     the same, and the program sleeps for 6 s
   sparse   2 % of the entries survive, scattered; the program sleeps for 6 s
   running  the same, with ordinary work for 10 s
   phases   the table is made and dropped 20 times, with half a second of work after each: memory between the peaks
   rebuild  the same with a full major collection after each: processor time *)
let kind = Bench.argument 1 ~default:"work"
let entries = Bench.int_argument 2 ~default:1_500_000
let megabytes () = Heap.megabytes (Bench.resident_bytes ())
let table = ref (Hashtbl.create 1)

let build () =
  let t = Hashtbl.create entries in
  for i = 1 to entries do
    Hashtbl.replace t i (string_of_int i)
  done;
  table := t

let keep_some () =
  let kept = ref [] in
  Hashtbl.iter (fun k v -> if k mod 50 = 0 then kept := (k, v) :: !kept) !table;
  table := Hashtbl.create 1;
  !kept

let work seconds =
  let until = Unix.gettimeofday () +. seconds in
  while Unix.gettimeofday () < until do
    ignore (Sys.opaque_identity (List.fold_left ( + ) 0 (List.init 1000 Fun.id)))
  done

let () =
  let cpu = Bench.cpu () in
  let kept = ref [] in
  (match kind with
  | "work" | "idle" | "sparse" | "running" ->
      build ();
      Bench.metric "resident: full" (megabytes ()) "MB";
      if kind = "sparse" || kind = "running" then kept := keep_some () else table := Hashtbl.create 1;
      if kind = "work" || kind = "running" then work 10. else Unix.sleepf 6.;
      Bench.metric "resident: later" (megabytes ()) "MB"
  | "phases" ->
      let sum = ref 0. in
      for _ = 1 to 20 do
        build ();
        table := Hashtbl.create 1;
        work 0.5;
        sum := !sum +. megabytes ()
      done;
      Bench.metric "resident: between peaks" (!sum /. 20.) "MB";
      work 5.;
      Bench.metric "resident: 5 s later" (megabytes ()) "MB"
  | _ ->
      for _ = 1 to 20 do
        build ();
        table := Hashtbl.create 1;
        Gc.full_major ()
      done);
  Bench.metric "processor time" (Bench.cpu () -. cpu) "s";
  ignore (Sys.opaque_identity !kept)

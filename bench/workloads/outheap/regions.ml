(* SPDX-License-Identifier: MIT *)
(* What regions give: the same data in the heap, and in a region (BENCH_DATA=region); for workers, also read by each
   (BENCH_DATA=marshal). Each step is a process.   regions STEP [ENTRIES] *)
module R = Outheap_region
module M = Map.Make (String)

external occupy : int -> bool = "regions_occupy"
external evict : Obj.t -> unit = "regions_evict"
external faults : unit -> int = "regions_faults" [@@noalloc]
external sum_words : int -> int -> int = "regions_sum_words" [@@noalloc]

type entry = { name : string; numbers : int list; weight : float; other : (int * string) option }

let step = Sys.argv.(1)
let in_region = Sys.getenv_opt "BENCH_DATA" = Some "region"
let by_each = Sys.getenv_opt "BENCH_DATA" = Some "marshal"
let entries = Bench.int_argument 2 ~default:1_000_000

let build () =
  let m = ref M.empty in
  for i = 1 to entries do
    let name = Printf.sprintf "key%08x" (Rng.below 0x3fffffff) in
    let other = if i land 1 = 0 then Some (i, "x" ^ name) else None in
    m := M.add name { name; numbers = [ i; i + 1; i + 2 ]; weight = float i; other } !m
  done;
  !m

let unwrap = function Ok x -> x | Error e -> failwith (R.error_to_string e)
let opaque = Sys.opaque_identity

(* The data, and what has to be kept for them. *)
let data v = if in_region then R.get (unwrap (R.copy v)) else v

let timed f =
  let start = Bench.wall () in
  let x = f () in
  (x, (Bench.wall () -. start) *. 1e3)

let median f =
  let times = Array.init 7 (fun _ -> snd (timed f)) in
  Array.sort compare times;
  times.(3)

(* In a process of its own. *)
let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      f ();
      flush_all ();
      Unix._exit 0
  | pid -> if snd (Unix.waitpid [] pid) <> WEXITED 0 then Bench.fail "a process failed"

let memory field = Heap.proc_kilobytes "/proc/self/smaps_rollup" field
let schema : entry M.t R.schema = R.schema ~name:"map" ~version:1
let sum m = M.fold (fun _ e n -> n + List.length e.numbers + String.length e.name) m 0

let full_major () =
  let m = data (build ()) in
  Gc.compact ();
  Bench.metric "full major" (median Gc.full_major) "ms";
  Bench.metric "resident" (float (memory "Rss:") /. 1e3) "MB";
  (* what a child that collects has for itself *)
  in_child (fun () ->
      let before = memory "Private_Dirty:" in
      Gc.full_major ();
      Bench.metric "private memory of a forked child" (float (memory "Private_Dirty:" - before) /. 1e3) "MB");
  ignore (opaque m)

let copying () =
  let m = build () in
  let list = List.init (20 * entries) (fun i -> i) in
  Gc.full_major ();
  if in_region then (
    Bench.metric "copy of a map" (snd (timed (fun () -> unwrap (R.copy m)))) "ms";
    Bench.metric "copy of a list" (snd (timed (fun () -> unwrap (R.copy list)))) "ms";
    Bench.metric "copy of a map, maximal sharing" (snd (timed (fun () -> unwrap (R.copy ~sharing:`Max m)))) "ms")
  else
    let there_and_back v () = (Marshal.from_string (Marshal.to_string v []) 0 : 'a) in
    let map () = ignore (opaque (there_and_back m ())) and list () = ignore (opaque (there_and_back list ())) in
    Bench.metric "copy of a map" (snd (timed map)) "ms";
    Bench.metric "copy of a list" (snd (timed list)) "ms"

let path = "regions.image"

let write m =
  if in_region then unwrap (R.save schema ~path m)
  else Out_channel.with_open_bin path (fun c -> Marshal.to_channel c m [])

let save () =
  let m = build () in
  Bench.metric "save" (snd (timed (fun () -> write m))) "ms"

let load () : entry M.t =
  if in_region then R.get (unwrap (R.map schema ~path ()))
  else In_channel.with_open_bin path (fun c -> Marshal.from_channel c)

(* An image whose place is taken is relocated. *)
let take_place_of image =
  let read c = In_channel.seek c 24L; In_channel.really_input_string c 8 in
  let base = In_channel.with_open_bin image read in
  if not (occupy (Int64.to_int (String.get_int64_le (Option.get base) 0) / 2)) then failwith "occupy"

let loading () =
  save ();
  in_child (fun () ->
      let m, t = timed load in
      Bench.metric "load" t "ms";
      let n, t' = timed (fun () -> sum m) in
      ignore (opaque n);
      Bench.metric "load and read all" (t +. t') "ms";
      if not in_region then Bench.metric "load, relocated" t "ms" (* at no fixed address *));
  if in_region then
    in_child (fun () ->
        take_place_of path;
        Bench.metric "load, relocated" (snd (timed load)) "ms");
  Sys.remove path

(* Eight workers and their parent: what each reads, and what they have together. *)
let workers () =
  if in_region || by_each then in_child (fun () -> write (build ())); (* another process makes the file *)
  let with_keys m = (m, Array.of_seq (Seq.map fst (M.to_seq m))) in
  let common = if by_each then (M.empty, [||]) else with_keys (if in_region then load () else build ()) in
  Gc.compact ();
  let start = Bench.wall () in
  flush_all ();
  let work me =
    let m, keys = if by_each then with_keys (load ()) else common in
    let kept = Array.make 20_000 [] and found = ref 0 in
    for i = 0 to 500_000 do
      kept.(i mod 20_000) <- [ i; i + 1; i + 2 ];
      found := !found + List.length (M.find keys.((i * 7919 * (me + 1)) mod Array.length keys) m).numbers
    done;
    ignore (opaque (kept, !found))
  in
  let ready, tell = Unix.pipe () and go, release = Unix.pipe () in
  let pids =
    List.init 8 (fun me ->
        match Unix.fork () with
        | 0 ->
            work me;
            Gc.full_major ();
            ignore (Unix.write tell (Bytes.make 1 'r') 0 1);
            ignore (Unix.read go (Bytes.create 1) 0 1);
            Unix._exit 0
        | pid -> pid)
  in
  List.iter (fun _ -> ignore (Unix.read ready (Bytes.create 1) 0 1)) pids;
  Bench.metric "eight workers: time" ((Bench.wall () -. start) *. 1e3) "ms";
  let pss pid = Heap.proc_kilobytes (Printf.sprintf "/proc/%s/smaps_rollup" pid) "Pss:" in
  let sum = List.fold_left (fun n pid -> n + pss (string_of_int pid)) (pss "self") pids in
  Bench.metric "eight workers: sum of Pss" (float sum /. 1e3) "MB";
  ignore (Unix.write release (Bytes.make 8 'g') 0 8);
  List.iter (fun pid -> ignore (Unix.waitpid [] pid)) pids;
  if Sys.file_exists path then Sys.remove path;
  ignore (opaque common)

(* A million pointers to an image whose pages were evicted: page faults of a full major. With each runtime the data are
   in a region. *)
let evicted () =
  let m =
    unwrap (R.save schema ~path (build ()));
    R.get (unwrap (R.map schema ~path ()))
  in
  Sys.remove path;
  let values = Array.of_seq (Seq.map snd (M.to_seq m)) in
  Gc.compact ();
  evict (Obj.repr values.(0));
  let before = faults () in
  Gc.full_major ();
  Bench.metric "page faults" (float (faults () - before)) "";
  ignore (opaque (m, values))

(* How long another domain is stopped at most, by what makes a copy of the data. *)
let waits () =
  let m = build () in
  let go = Atomic.make true and longest = Atomic.make 0. in
  let other =
    Par.spawn (fun () ->
        let last = ref (Bench.wall ()) in
        while Atomic.get go do
          let now = Bench.wall () in
          if now -. !last > Atomic.get longest then Atomic.set longest (now -. !last);
          last := now
        done)
  in
  let measure what f =
    Gc.full_major ();
    Unix.sleepf 0.01;
    Atomic.set longest 0.;
    ignore (opaque (f ()));
    Bench.metric ("longest wait: " ^ what) (Atomic.get longest *. 1e3) "ms"
  in
  if in_region then (
    measure "copy" (fun () -> ignore (unwrap (R.copy m)));
    measure "copy, maximal sharing" (fun () -> ignore (unwrap (R.copy ~sharing:`Max m))))
  else measure "copy" (fun () -> ignore (Marshal.from_string (Marshal.to_string m []) 0 : entry M.t));
  measure "save" (fun () -> write m);
  Sys.remove path;
  Atomic.set go false;
  Par.join other;
  ignore (opaque m)

(* Cells of an array that are changed, at random: the array is in the heap, or in a tracked region. *)
let changing () =
  let cells = Array.init entries (fun i -> Some i) and stores = 4 * entries in
  let cells = if in_region then R.get (unwrap (R.copy ~writes:`Track cells)) else cells in
  let old = Array.init 1024 (fun i -> Some (-i)) in
  Gc.full_major ();
  let store what f =
    let (), time = timed (fun () -> for i = 1 to stores do cells.(Rng.below entries) <- f i done) in
    Bench.metric what (time *. 1e6 /. float stores) "ns"
  in
  store "store of a number" (fun _ -> opaque None);
  store "store of an old value" (fun i -> old.(i land 1023));
  store "store of a new value" (fun i -> Some i);
  Bench.metric "full major, all cells changed" (median Gc.full_major) "ms";
  ignore (opaque (cells, old))

(* Many small values, each in a region of its own: what each costs a cycle, and how long it takes to ask for one. *)
let many () =
  List.iter
    (fun count ->
      let what = Printf.sprintf "%s, %d regions" in
      let made = List.init count (fun i -> if in_region then Some (unwrap (R.copy (ref i))) else None) in
      let first = match made with Some r :: _ -> R.get r | _ -> ref 0 in
      if in_region then (
        let ask () = for _ = 1 to 10_000 do ignore (opaque (R.is_in_region (opaque (Obj.repr first)))) done in
        Bench.metric (what "is_in_region" count) (median ask *. 1e2) "ns");
      Gc.full_major ();
      Bench.metric (what "full major" count) (median Gc.full_major) "ms";
      let values = List.mapi (fun i r -> match r with Some r -> R.get r | None -> ref i) made in
      Gc.full_major ();
      Bench.metric (what "full major with pointers" count) (median Gc.full_major) "ms";
      ignore (opaque (made, values)))
    [ 1; 100; 32_000 ]

(* What is made and dropped, 800 KB at a time; and small values, as many as there are entries. *)
let dropping () =
  let large = Bytes.make 800_000 'x' and small = ref 1 in
  let drop v copy = ignore (opaque (if in_region then R.get (unwrap (R.copy v)) else copy v)) in
  let (), t = timed (fun () -> for _ = 1 to 5_000 do drop large Bytes.copy done) in
  Bench.metric "5,000 of 800 KB: each" (t /. 5.) "us";
  Bench.metric "5,000 of 800 KB: peak" (Heap.peak_resident ()) "MB";
  let (), t = timed (fun () -> for _ = 1 to entries do drop small (fun r -> ref !r) done) in
  Bench.metric "small ones: each" (t *. 1e3 /. float entries) "us";
  Bench.metric "small ones: peak" (Heap.peak_resident ()) "MB"

(* The data of Coq's library, as Marshal has them in a file for each, and in one file; and as images. *)
let theories () =
  let files = Vo_files.all () in
  let value path = List.map snd (Vo_files.read path) in
  let schema_of n : Obj.t list R.schema = R.schema ~name:(Printf.sprintf "theory %d" n) ~version:1 in
  let together : Obj.t list list R.schema = R.schema ~name:"theories" ~version:1 and one = "theories.file" in
  let image n = Printf.sprintf "theory%d.image" n in
  in_child (fun () ->
      let all = List.map value files in
      if in_region then (
        List.iteri (fun n v -> unwrap (R.save ~sharing:`Max (schema_of n) ~path:(image n) v)) all;
        unwrap (R.save ~sharing:`Max together ~path:one all))
      else Out_channel.with_open_bin one (fun c -> Marshal.to_channel c all []));
  (* All words are read once. Those that Marshal has just written cost nothing more. *)
  let read root =
    let i = R.info (R.region root) in
    ignore (opaque (sum_words i.address i.bytes))
  in
  let load_one () = unwrap (R.map together ~path:one ()) in
  in_child (fun () ->
      let map n _ = unwrap (R.map (schema_of n) ~path:(image n) ()) in
      let t, t' =
        if in_region then
          let all, t = timed (fun () -> List.mapi map files) in
          (t, snd (timed (fun () -> List.iter read all)))
        else
          let all, t = timed (fun () -> List.map value files) in
          (t, snd (timed (fun () -> ignore (opaque all))))
      in
      Bench.metric "load, a file for each" t "ms";
      Bench.metric "load and read all, a file for each" (t +. t') "ms";
      Bench.metric "resident" (float (memory "Rss:") /. 1e3) "MB");
  in_child (fun () ->
      let from_one c = ignore (opaque (Marshal.from_channel c : Obj.t)) in
      let t, t' =
        if in_region then
          let root, t = timed load_one in
          (t, snd (timed (fun () -> read root)))
        else (snd (timed (fun () -> In_channel.with_open_bin one from_one)), 0.)
      in
      Bench.metric "load, one file" t "ms";
      Bench.metric "load and read all, one file" (t +. t') "ms";
      if not in_region then Bench.metric "load, one file, relocated" t "ms" (* has no place of its own *));
  if in_region then
    in_child (fun () ->
        take_place_of one;
        Bench.metric "load, one file, relocated" (snd (timed load_one)) "ms");
  Sys.remove one;
  if in_region then List.iteri (fun n _ -> Sys.remove (image n)) files

(* The same data, copied: with the sharing they have, and with all of it. Marshal merges nothing. *)
let merging () =
  let all = List.map (fun path -> List.map snd (Vo_files.read path)) (Vo_files.all ()) in
  Gc.full_major ();
  let words v = float (Obj.reachable_words (Obj.repr v)) /. 1e6 in
  if in_region then (
    let copy what sharing =
      let root, t = timed (fun () -> unwrap (R.copy ~sharing all)) in
      Bench.metric ("copy" ^ what) t "ms";
      Bench.metric ("words" ^ what) (float (R.info (R.region root)).words /. 1e6) "M"
    in
    copy "" `Keep;
    copy ", maximal sharing" `Max)
  else
    let v, t = timed (fun () -> (Marshal.from_string (Marshal.to_string all []) 0 : Obj.t list list)) in
    List.iter
      (fun what ->
        Bench.metric ("copy" ^ what) t "ms";
        Bench.metric ("words" ^ what) (words v) "M")
      [ ""; ", maximal sharing" ]

let () =
  match step with
  | "theories" -> theories ()
  | "merging" -> merging ()
  | "changing" -> changing ()
  | "many" -> many ()
  | "dropping" -> dropping ()
  | "waits" -> waits ()
  | "full-major" -> full_major ()
  | "copying" -> copying ()
  | "loading" -> loading ()
  | "workers" -> workers ()
  | "evicted" -> evicted ()
  | _ -> failwith "no such step"

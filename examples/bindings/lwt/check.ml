(* What users of lwt's libev engine and of its jobs rely on; each line that it prints has been found to be so. *)
let check what ok = if ok then print_endline what else (prerr_endline ("not so: " ^ what); exit 1)

let run_until engine f =
  let tries = ref 0 in
  while not (f ()) && !tries < 100_000 do incr tries; engine#iter true done

(* Only the watchers hold the closures, and those hold blocks of the heap, which moves meanwhile. *)
let timers () =
  let engine = new Lwt_engine.libev () in
  let sum = ref 0 and fired = ref 0 and n = 5_000 in
  for i = 1 to n do
    let held = Sys.opaque_identity (ref i) in
    ignore (engine#on_timer 0. false (fun event -> incr fired; sum := !sum + !held; Lwt_engine.stop_event event))
  done;
  Gc.compact ();
  run_until engine (fun () -> !fired >= n);
  check "timers call their closures after a compaction" (!fired = n && !sum = n * (n + 1) / 2);
  let ticks = ref 0 in
  let event = engine#on_timer 0.0001 true (fun _ -> incr ticks; if !ticks land 7 = 0 then Gc.full_major ()) in
  run_until engine (fun () -> !ticks >= 50);
  Lwt_engine.stop_event event;
  check "a timer that repeats keeps its closure over major collections" (!ticks >= 50);
  engine#destroy

let released () =
  let engine = new Lwt_engine.libev () in
  let n = 5_000 and collected = ref 0 in
  let start i =
    let held = Sys.opaque_identity (ref i) in
    Gc.finalise (fun _ -> incr collected) held;
    engine#on_timer 3600. false (fun _ -> decr held) in
  let events = ref (List.init n start) in
  Gc.full_major ();
  check "timers that wait keep their closures" (!collected = 0);
  List.iter Lwt_engine.stop_event !events;
  events := [];
  for _ = 1 to 3 do Gc.full_major () done;
  check "closures of stopped timers are collected" (!collected = n);
  (* Stopped by the collector: a finaliser stops the timer of what was forgotten. *)
  for i = 1 to n do
    let event = start i in
    Gc.finalise_last (fun () -> Lwt_engine.stop_event event) (Sys.opaque_identity (ref i))
  done;
  for _ = 1 to 4 do Gc.full_major () done;
  check "timers are stopped in finalisers" (!collected = 2 * n);
  engine#destroy

let watchers () =
  let engine = new Lwt_engine.libev () in
  let n = 100 and seen = ref 0 in
  let pairs = List.init n (fun i -> i, Unix.pipe ()) in
  let events = List.map (fun (i, (read, _)) ->
    let held = Sys.opaque_identity (ref i) and buffer = Bytes.create 1 in
    engine#on_readable read (fun event ->
      ignore (Unix.read read buffer 0 1);
      if Bytes.get_uint8 buffer 0 = !held then incr seen;
      Lwt_engine.stop_event event)) pairs in
  Gc.compact ();
  List.iter (fun (i, (_, write)) -> ignore (Unix.write write (Bytes.make 1 (Char.chr i)) 0 1)) pairs;
  run_until engine (fun () -> !seen >= n);
  check "watchers of descriptors call their closures" (List.length events = n && !seen = n);
  List.iter (fun (_, (a, b)) -> Unix.close a; Unix.close b) pairs;
  engine#destroy

(* What can be read is there already, so the job starts at once; the buffer moves before the main loop takes its result,
   and the bytes must go where it is then. *)
let jobs () =
  let read, write = Unix.pipe () in
  let input = Lwt_unix.of_unix_file_descr ~blocking:true read and good = ref 0 and n = 200 in
  for i = 1 to n do
    let byte = Char.chr (i land 127) in
    let buffer = Bytes.make 32 '?' in
    ignore (Unix.write write (Bytes.make 32 byte) 0 32);
    let wait = Lwt_unix.with_async_detach (fun () -> Lwt_unix.read input buffer 0 32) in
    if i land 15 = 0 then Gc.compact () else Gc.minor ();
    if Lwt_main.run wait = 32 && Bytes.for_all (fun c -> c = byte) buffer then incr good
  done;
  let vectored = ref 0 in
  for _ = 1 to n do
    let buffers = List.init 4 (fun _ -> Bytes.make 8 '?') and vectors = Lwt_unix.IO_vectors.create () in
    List.iter (fun b -> Lwt_unix.IO_vectors.append_bytes vectors b 0 8) buffers;
    ignore (Unix.write write (Bytes.make 32 'v') 0 32);
    let wait = Lwt_unix.with_async_detach (fun () -> Lwt_unix.readv input vectors) in
    Gc.minor ();
    if Lwt_main.run wait = 32 && List.for_all (Bytes.for_all (fun c -> c = 'v')) buffers then incr vectored
  done;
  check "jobs read into buffers that have moved" (!good = n);
  check "and into vectors of them" (!vectored = n);
  Unix.close read; Unix.close write

let () = timers (); released (); watchers (); jobs ()

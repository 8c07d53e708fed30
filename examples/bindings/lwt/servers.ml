(* Measures lwt's libev engine; prints lines `NAME FIGURE UNIT`.   servers.exe [TIMERS [CONNECTIONS]]

   The longest pause is the longest time between two looks at the clock of a loop that only allocates. *)
open Lwt.Infix

let argument i default = if Array.length Sys.argv > i then int_of_string Sys.argv.(i) else default
let timers = argument 1 100_000
let connections = argument 2 400
let now = Unix.gettimeofday
let say name figure unit = Printf.printf "%s %.4g %s\n%!" name figure unit

(* Allocates as a program does, with survivors, until some major cycles have ended. *)
let longest_pause cycles =
  let ring = Array.make 50_000 [] and cycle () = (Gc.quick_stat ()).major_collections in
  let last_cycle = cycle () + cycles and i = ref 0 and longest = ref 0. and last = ref (now ()) in
  let begin_ = !last in
  while cycle () < last_cycle && now () -. begin_ < 20. do
    last := now ();
    for _ = 1 to 1000 do
      incr i;
      ring.(!i mod 50_000) <- [ !i; !i; !i ];
      if !i land 15 = 0 then begin
        let t = now () in
        if t -. !last > !longest then longest := t -. !last;
        last := t
      end
    done
  done;
  !longest *. 1e3

let minor_median () =
  let all = Array.init 300 (fun _ ->
    for i = 1 to 10_000 do ignore (Sys.opaque_identity (ref i)) done;
    let begin_ = now () in
    Gc.minor (); (now () -. begin_) *. 1e6) in
  Array.sort compare all; all.(150)

(* Timers as a server has them, one for each request, most of which are stopped before their time. *)
let measure_timers () =
  let engine = new Lwt_engine.libev () in
  let fired = ref 0 in
  let begin_ = now () in
  let all = Array.init timers (fun i -> engine#on_timer (3600. +. float i) false (fun _ -> incr fired)) in
  let made = now () in
  say "timer-create" ((made -. begin_) *. 1e9 /. float timers) "ns";
  Gc.full_major ();
  say "timers-minor-median" (minor_median ()) "us";
  say "timers-longest-pause" (longest_pause 5) "ms";
  let begin_ = now () in
  Gc.full_major ();
  say "timers-full-major" ((now () -. begin_) *. 1e3) "ms";
  let begin_ = now () in
  let step = 61_953 in
  for i = 0 to timers - 1 do Lwt_engine.stop_event all.(i * step mod timers) done;
  say "timer-stop" ((now () -. begin_) *. 1e9 /. float timers) "ns";
  let begin_ = now () in
  for i = 1 to timers do
    Lwt_engine.stop_event (engine#on_timer (3600. +. float i) false (fun _ -> incr fired))
  done;
  say "timer-create-stop" ((now () -. begin_) *. 1e9 /. float timers) "ns";
  for _ = 1 to timers do ignore (engine#on_timer 0. false (fun e -> incr fired; Lwt_engine.stop_event e)) done;
  let begin_ = now () in
  while !fired < timers do engine#iter true done;
  say "timer-fire" ((now () -. begin_) *. 1e9 /. float timers) "ns";
  engine#destroy

(* Connections that all wait for the other end again and again: a watcher each time. *)
let measure_connections () =
  Lwt_engine.set (new Lwt_engine.libev ());
  let rounds = 200 and message = Bytes.make 16 'x' in
  let begin_ = now () in
  let rec serve fd k =
    if k = 0 then Lwt_unix.close fd
    else
      let buffer = Bytes.create 16 in
      Lwt_unix.read fd buffer 0 16 >>= fun n -> Lwt_unix.write fd buffer 0 n >>= fun _ -> serve fd (k - 1) in
  let rec ask fd k =
    if k = 0 then Lwt_unix.close fd
    else
      let buffer = Bytes.create 16 in
      Lwt_unix.write fd message 0 16 >>= fun _ -> Lwt_unix.read fd buffer 0 16 >>= fun n ->
      assert (n = 16); ask fd (k - 1) in
  Lwt_main.run (Lwt.join (List.concat (List.init connections (fun _ ->
    let a, b = Lwt_unix.socketpair Unix.PF_UNIX Unix.SOCK_STREAM 0 in
    [ serve a rounds; ask b rounds ]))));
  say "message" ((now () -. begin_) *. 1e9 /. float (connections * rounds)) "ns"

(* Reads in threads of the pool: a root for each buffer, over its time in the pool. *)
let measure_jobs () =
  let path = Filename.temp_file "lwt" "jobs" in
  let out = open_out path in
  output_string out (String.make 4096 'y'); close_out out;
  let fd = Unix.openfile path [ Unix.O_RDONLY ] 0 in
  let file = Lwt_unix.of_unix_file_descr ~blocking:true fd and count = 5_000 in
  let begin_ = now () in
  let rec reads k =
    if k = 0 then Lwt.return_unit
    else
      let buffer = Bytes.make 64 'n' in
      if k mod 100 = 0 then Gc.minor ();
      Lwt_unix.pread file buffer ~file_offset:(k mod 4000) 0 64 >>= fun n ->
      assert (n = 64 && Bytes.for_all (fun c -> c = 'y') buffer); reads (k - 1) in
  Lwt_main.run (Lwt.join (List.init 4 (fun _ -> reads (count / 4))));
  say "job-pread" ((now () -. begin_) *. 1e9 /. float count) "ns";
  Unix.close fd; Sys.remove path

let () = measure_timers (); measure_connections (); measure_jobs ()

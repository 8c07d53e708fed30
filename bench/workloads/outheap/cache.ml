(* SPDX-License-Identifier: MIT *)
(* A cache server, and its measurement with full memory, where half of the requests replace an entry.
   cache serve STORE MOST SOCKET FOLDER   until SIGTERM; STORE: owned, hashtbl, bigarray, none, or lmdb (in that folder)
   cache measure ENTRIES REQUESTS RATE SECONDS   the store: BENCH_LINEAR=linear (owned), bigarray, lmdb, redis, none; or
                                                 hashtbl
   cache rate SOCKET ENTRIES RATE SECONDS   the latency of a server that runs, after all entries have been written
   cache histogram   of the numbers of the input, one a line: what Cache_histogram says of them *)
let serve () =
  let most = Bench.int_argument 3 ~default:0 in
  Cache_server.run (Cache_stores.make Sys.argv.(2) ~folder:Sys.argv.(5) ~most) Sys.argv.(4)

module H = Cache_histogram

(* --- measuring ---------------------------------------------------------------------------------------------------- *)

type server = { pid : int; path : string; folder : string }

let named = function "linear" -> "owned" | ("bigarray" | "lmdb" | "redis" | "none") as name -> name | _ -> "hashtbl"

(* The server has a processor for itself, and its clients have another one, where there are two. *)
external processor : last:bool -> int = "cache_processor" [@@noalloc]
external run_on : int -> bool = "cache_run_on" [@@noalloc]

let apart f =
  let ours = processor ~last:false and its = processor ~last:true in
  if ours < 0 then (f (), false)
  else
    let there = run_on its in
    let result = f () in
    (result, run_on ours && there)

let start name ~most =
  let folder = Filename.temp_file "cache" "" in
  Sys.remove folder;
  Unix.mkdir folder 0o700;
  let path = Filename.concat folder "socket" in
  let command =
    if name = "redis" then
      [| "redis-server"; "--port"; "0"; "--unixsocket"; path; "--save"; ""; "--appendonly"; "no"; "--dir"; folder;
         "--loglevel"; "warning" |]
    else [| Sys.executable_name; "serve"; name; string_of_int most; path; folder |]
  in
  let silent = Unix.openfile "/dev/null" [ O_RDWR ] 0 in
  let pid, is_apart = apart (fun () -> Unix.create_process command.(0) command silent silent Unix.stderr) in
  Unix.close silent;
  let rec await tries =
    match Cache_load.ask path [ "PING" ] with
    | _ -> ()
    | exception Unix.Unix_error _ when tries > 0 && fst (Unix.waitpid [ WNOHANG ] pid) = 0 ->
        Unix.sleepf 0.05;
        await (tries - 1)
    | exception Unix.Unix_error (e, _, _) -> Bench.fail "%s does not listen: %s" command.(0) (Unix.error_message e)
  in
  await 400;
  Bench.metric "server and client apart" (if is_apart then 1. else 0.) "";
  { pid; path; folder }

let stop s =
  Unix.kill s.pid Sys.sigterm;
  ignore (Unix.waitpid [] s.pid);
  Array.iter (fun f -> Sys.remove (Filename.concat s.folder f)) (Sys.readdir s.folder);
  Unix.rmdir s.folder

let memory s name kind =
  Bench.metric name (float (Heap.proc_kilobytes (Printf.sprintf "/proc/%d/status" s.pid) kind) /. 1e3) "MB"

(* Seconds of a processor that the server has used; its name has no spaces. *)
let processor_time s =
  let text = In_channel.with_open_bin (Printf.sprintf "/proc/%d/stat" s.pid) In_channel.input_all in
  let fields = Array.of_list (String.split_on_char ' ' text) in
  float (int_of_string fields.(13) + int_of_string fields.(14)) /. 100.

(* Microseconds for each request of a kind, with so many on their way in each of 16 connections. *)
let redis_benchmark s ~entries ~requests ~pipeline =
  let n = string_of_int in
  let arguments = [ "-n"; n requests; "-c"; "16"; "-P"; n pipeline; "-r"; n entries; "-d"; "32"; "-t"; "set,get" ] in
  let found = Resp.benchmark s.path arguments () in
  List.iter
    (fun kind ->
      Bench.metric (Printf.sprintf "%s, %d at once" kind (16 * pipeline)) (1e6 /. List.assoc kind found "rps") "us")
    [ "SET"; "GET" ]

let milliseconds name h =
  List.iter (fun (share, s) -> Bench.metric (name ^ share) (float (H.at h s) /. 1e6) "ms") H.shares

(* What the server says of its own times; Redis does not. *)
let of_server path =
  match Cache_load.ask path [ "INFO"; "latency" ] with
  | Resp.Bulk text ->
      List.iter
        (fun line ->
          match String.split_on_char ':' (String.trim line) with
          | [ (("service" | "handled") as name); figures ] ->
              List.iter
                (fun (share, n) ->
                  if List.mem_assoc share H.shares then Bench.metric (name ^ ", " ^ share) (float n /. 1e6) "ms")
                (H.of_string figures)
          | _ -> ())
        (String.split_on_char '\n' text)
  | _ -> ()

(* Requests at a rate for so many seconds; all entries are there. *)
let at_rate path ~entries ~rate ~seconds =
  ignore (Cache_load.ask path [ "CONFIG"; "RESETSTAT" ]);
  let requests = max 1 (int_of_float (rate *. seconds)) in
  let latencies, late = Cache_load.at_rate path ~entries ~requests ~rate ~connections:16 in
  milliseconds "latency, " latencies;
  Bench.metric "the client was late, 99.9 %" (float (H.at late 0.999) /. 1e6) "ms";
  Bench.metric "the client was late, longest" (float (H.at late 1.) /. 1e6) "ms";
  of_server path;
  requests

let rate () =
  let path = Sys.argv.(2) and entries = Bench.int_argument 3 ~default:0 in
  ignore (Cache_load.fill path ~entries);
  ignore (at_rate path ~entries ~rate:(float_of_string Sys.argv.(4)) ~seconds:(float_of_string Sys.argv.(5)))

let histogram () =
  let h = H.create () in
  (try
     while true do
       H.add h (int_of_string (String.trim (input_line stdin)))
     done
   with End_of_file -> ());
  print_endline (H.to_string h)

let measure () =
  let entries = Bench.int_argument 2 ~default:100_000 and requests = Bench.int_argument 3 ~default:200_000 in
  let rate = float (Bench.int_argument 4 ~default:20_000) and seconds = float (Bench.int_argument 5 ~default:20) in
  let name = named (Option.value (Sys.getenv_opt "BENCH_LINEAR") ~default:"") in
  let s = start name ~most:entries in
  let began = Bench.wall () in
  let longest = Cache_load.fill s.path ~entries in
  Bench.metric "fill, each" ((Bench.wall () -. began) *. 1e6 /. float entries) "us";
  Bench.metric "fill, longest wait" (longest *. 1e3) "ms";
  memory s "resident: filled" "VmRSS:";
  (* so that half of the entries have been replaced, by random ones, before anything is counted *)
  redis_benchmark s ~entries ~requests:(max requests (entries / 2)) ~pipeline:16;
  redis_benchmark s ~entries ~requests ~pipeline:1;
  ignore (Cache_load.fill s.path ~entries);
  let before = processor_time s in
  let requests = at_rate s.path ~entries ~rate ~seconds in
  Bench.metric "processor time, each" ((processor_time s -. before) *. 1e6 /. float requests) "us";
  memory s "resident: under load" "VmRSS:";
  memory s "peak resident" "VmHWM:";
  (match Cache_load.ask s.path [ "DBSIZE" ] with
  | Resp.Integer n when n = if name = "none" then 0 else entries -> ()
  | other -> Bench.fail "there are %s entries, and should be %d" (Cache_load.described other) entries);
  stop s

let () =
  match Bench.argument 1 ~default:"" with
  | "serve" -> serve ()
  | "measure" -> measure ()
  | "rate" -> rate ()
  | "histogram" -> histogram ()
  | other -> Bench.fail "no step %s" other

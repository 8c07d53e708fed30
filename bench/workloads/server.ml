(* SPDX-License-Identifier: MIT *)
(* server: an event loop in C that speaks the Redis protocol and calls OCaml closures, under redis-benchmark. Roots hold
   the closures, the state of each connection, the records of a table of C, and each reply from when it is made until it
   is sent. Arguments: requests of each kind, connections, requests on the way in each, keys. *)

type session = { mutable requests : int }
type record = { mutable data : string; mutable reads : int; mutable writes : int }

external on : string -> (session -> string array -> string) -> unit = "server_on" (* to be called for a command *)
external on_connect : (unit -> session) -> unit = "server_on_connect"
external find : string -> record option = "server_find"
external store : string -> record -> unit = "server_store"
external listen : unit -> string = "server_listen" (* the path of the socket *)
external run : string array -> string = "server_run" (* serves until this program ends; what it printed *)
external requests_served : unit -> int = "server_requests" [@@noalloc]
external close : unit -> unit = "server_close"

let bulk s = String.concat "" [ "$"; string_of_int (String.length s); "\r\n"; s; "\r\n" ]
let null = "$-1\r\n"
let ok = "+OK\r\n"
let integer n = ":" ^ string_of_int n ^ "\r\n"
let wrong_arguments = "-ERR wrong number of arguments\r\n"

let set session args =
  session.requests <- session.requests + 1;
  match args with
  | [| _; key; data |] ->
    (match find key with
     | None -> store key { data; reads = 0; writes = 1 }
     | Some r -> store key { r with data; writes = r.writes + 1 });
    ok
  | _ -> wrong_arguments

let get session args =
  session.requests <- session.requests + 1;
  match args with
  | [| _; key |] ->
    (match find key with
     | None -> null
     | Some r ->
       r.reads <- r.reads + 1;
       bulk r.data)
  | _ -> wrong_arguments

let increment session args =
  session.requests <- session.requests + 1;
  match args with
  | [| _; key |] ->
    let n = match find key with None -> Some 0 | Some r -> int_of_string_opt r.data in
    (match n with
     | None -> "-ERR value is not an integer or out of range\r\n"
     | Some n ->
       store key { data = string_of_int (n + 1); reads = 0; writes = 1 };
       integer (n + 1))
  | _ -> wrong_arguments

let ping _ args = match args with [| _; text |] -> bulk text | _ -> "+PONG\r\n"

(* redis-benchmark asks for two settings before it begins. *)
let config _ args =
  match args with
  | [| _; _; name |] -> "*2\r\n" ^ bulk name ^ bulk ""
  | _ -> wrong_arguments

(* A line of redis-benchmark's table: fields in quotes, with commas between them. *)
let fields line = List.map (fun field -> String.trim (String.concat "" (String.split_on_char '"' field)))
  (String.split_on_char ',' line)

let report header line =
  match fields line with
  | kind :: figures ->
    let figure name =
      let rec look names figures =
        match (names, figures) with
        | n :: _, f :: _ when n = name -> float_of_string f
        | _ :: names, _ :: figures -> look names figures
        | _ -> Bench.fail "redis-benchmark does not report %s" name
      in
      look (List.tl header) figures
    in
    Bench.metric (kind ^ ": requests per second") (figure "rps") "1/s";
    Bench.metric (kind ^ ": median latency") (figure "p50_latency_ms") "ms";
    Bench.metric (kind ^ ": 95th percentile of latency") (figure "p95_latency_ms") "ms";
    Bench.metric (kind ^ ": 99th percentile of latency") (figure "p99_latency_ms") "ms";
    Bench.metric (kind ^ ": greatest latency") (figure "max_latency_ms") "ms"
  | [] -> ()

let () =
  let requests = Bench.int_argument 1 ~default:500_000 and connections = Bench.int_argument 2 ~default:50 in
  let pipeline = Bench.int_argument 3 ~default:16 and keys = Bench.int_argument 4 ~default:100_000 in
  on_connect (fun () -> { requests = 0 });
  List.iter (fun (name, f) -> on name f)
    [ ("SET", set); ("GET", get); ("INCR", increment); ("PING", ping); ("CONFIG", config) ];
  let socket = listen () in
  let n = string_of_int in
  let cpu = Bench.cpu () in
  let output =
    run [| "redis-benchmark"; "-s"; socket; "-t"; "set,get"; "-n"; n requests; "-c"; n connections; "-P"; n pipeline;
           "-r"; n keys;
           "-d"; "64"; "--csv" |]
  in
  let cpu = Bench.cpu () -. cpu in
  (match List.filter (fun line -> String.trim line <> "") (String.split_on_char '\n' output) with
   | header :: (_ :: _ as lines) -> List.iter (report (fields header)) lines
   | _ -> Bench.fail "redis-benchmark (Debian: the package redis-tools) gives no figures: %S" output);
  if requests_served () < 2 * requests then Bench.fail "only %d requests came" (requests_served ());
  Bench.metric "server's processor time per request" (cpu *. 1e9 /. float (requests_served ())) "ns";
  Bench.gc_metrics ();
  close ()

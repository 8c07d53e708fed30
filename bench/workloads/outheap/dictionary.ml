(* SPDX-License-Identifier: MIT *)
(* dictionary: a server of the WordNet database with eight forked workers, under redis-benchmark. Its data are in the
   heap, read by the parent before it forks (BENCH_DATA=heap), or by each worker (marshal), or in an image that all map
   (region). Under load, every worker changes to a new edition.
   dictionary REQUESTS [CONNECTIONS]   WORDNET is the folder of the database. *)
module R = Outheap_region
module M = Map.Make (String)

type synset = { kind : char; words : string list; gloss : string; mutable related : (string * synset) list }
type entry = { lemma : string; senses : synset list }
type dictionary = { edition : int; lemmas : string array; entries : entry M.t }

let workers = 8

(* --- the database: one line for a lemma, one for a set of synonyms ------------------------------------------------ *)

let lines folder name f =
  In_channel.with_open_bin (Filename.concat folder name) (fun c ->
      let rec go () =
        match In_channel.input_line c with
        | Some line ->
          if line <> "" && line.[0] <> ' ' then f line; (* the licence is indented *)
          go ()
        | None -> ()
      in
      go ())

let fields text = List.filter (( <> ) "") (String.split_on_char ' ' text)
let rec drop n l = if n = 0 then l else drop (n - 1) (List.tl l)
let adjective kind = if kind = 's' then 'a' else kind (* "satellites" are in the file of adjectives *)

let rec words n = function
  | word :: _ :: rest when n > 0 ->
    let these, rest = words (n - 1) rest in
    (word :: these, rest)
  | rest -> ([], rest)

let rec pointers n = function
  | symbol :: offset :: kind :: _ :: rest when n > 0 -> (symbol, (adjective kind.[0], offset)) :: pointers (n - 1) rest
  | _ -> []

let read_database folder edition =
  let synsets = Hashtbl.create 200_000 in
  let files = [ ('n', "noun"); ('v', "verb"); ('a', "adj"); ('r', "adv") ] in
  List.iter
    (fun (kind, file) ->
      lines folder ("data." ^ file) (fun line ->
          let bar = String.index line '|' in
          let gloss = String.trim (String.sub line (bar + 1) (String.length line - bar - 1)) in
          match fields (String.sub line 0 bar) with
          | offset :: _ :: _ :: count :: rest ->
            let words, rest = words (int_of_string ("0x" ^ count)) rest in
            let to_others = pointers (int_of_string (List.hd rest)) (List.tl rest) in
            Hashtbl.replace synsets (kind, offset) ({ kind; words; gloss; related = [] }, to_others)
          | _ -> failwith line))
    files;
  let find key = Option.map fst (Hashtbl.find_opt synsets key) in
  Hashtbl.iter
    (fun _ (s, to_others) ->
      s.related <- List.filter_map (fun (symbol, key) -> Option.map (fun s -> (symbol, s)) (find key)) to_others)
    synsets;
  let entries = ref M.empty in
  List.iter
    (fun (kind, file) ->
      lines folder ("index." ^ file) (fun line ->
          match fields line with
          | lemma :: _ :: _ :: count :: rest ->
            let offsets = drop (int_of_string count + 2) rest in
            let senses = List.filter_map (fun offset -> find (kind, offset)) offsets in
            let more = function
              | None -> Some { lemma; senses }
              | Some e -> Some { e with senses = e.senses @ senses }
            in
            entries := M.update lemma more !entries
          | _ -> failwith line))
    files;
  { edition; lemmas = Array.of_seq (Seq.map fst (M.to_seq !entries)); entries = !entries }

(* What is answered: all meanings, their synonyms, and the words that they are related to. *)
let article d n =
  let text = Buffer.create 500 in
  let e = M.find d.lemmas.(n mod Array.length d.lemmas) d.entries in
  Buffer.add_string text e.lemma;
  List.iter
    (fun s ->
      Printf.bprintf text "\n%c %s: %s" s.kind (String.concat ", " s.words) s.gloss;
      List.iter (fun (symbol, other) -> Printf.bprintf text "\n  %s %s" symbol (List.hd other.words)) s.related)
    e.senses;
  Buffer.contents text

(* --- where the data come from ------------------------------------------------------------------------------------- *)

let from = Option.value (Sys.getenv_opt "BENCH_DATA") ~default:"heap"
let schema : dictionary R.schema = R.schema ~name:"wordnet" ~version:1
let file edition = Printf.sprintf "dictionary-%d.%s" edition (if from = "region" then "image" else "marshalled")
let unwrap = function Ok x -> x | Error e -> failwith (R.error_to_string e)

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
    f ();
    Unix._exit 0
  | pid -> if snd (Unix.waitpid [] pid) <> WEXITED 0 then failwith "a child process failed"

let save edition =
  let d = read_database (Sys.getenv "WORDNET") edition in
  if from = "region" then unwrap (R.save schema ~path:(file edition) d)
  else Out_channel.with_open_bin (file edition) (fun c -> Marshal.to_channel c d [])

let load edition : dictionary =
  if from = "region" then R.get (unwrap (R.map schema ~path:(file edition) ()))
  else In_channel.with_open_bin (file edition) (fun c -> Marshal.from_channel c)

(* --- a worker ----------------------------------------------------------------------------------------------------- *)

type connection = { fd : Unix.file_descr; input : Resp.input; replies : Buffer.t }

let kept = 4096 (* of the latest articles *)

let work listener ~ready ~orders ~most dictionary =
  let d = ref dictionary and latest = Array.make kept "" and served = ref 0 in
  let answer b = function
    | [ "GET"; n ] ->
      let text = article !d (int_of_string n) in
      latest.(!served mod kept) <- text;
      incr served;
      Resp.bulk b text
    | "CONFIG" :: _ -> Resp.array b [ "save"; "" ]
    | _ -> Resp.line b '-' "ERR unknown command"
  in
  let receive c = (* false: it has ended *)
    Resp.receive c.input c.fd > 0
    && begin
         let rec serve () =
           match Resp.request c.input with
           | Some words ->
             answer c.replies words;
             serve ()
           | None -> Resp.flush c.replies c.fd
         in
         serve ();
         true
       end
  in
  let buffer = Bytes.create 1 in
  let obey () =
    match Unix.read orders buffer 0 1 with
    | 0 -> Unix._exit 0
    | _ ->
      d := load (!d.edition + 1);
      Resp.write_all ready "r" 0
  in
  ignore (article !d 1);
  Resp.write_all ready "r" 0;
  let rec loop connections =
    let full = List.length connections >= most in
    let watched = orders :: (if full then [] else [ listener ]) @ List.map (fun c -> c.fd) connections in
    let readable, _, _ = Unix.select watched [] [] (-1.) in
    if List.mem orders readable then obey ();
    let connections =
      List.filter
        (fun c ->
          let lives = (not (List.mem c.fd readable)) || receive c in
          if not lives then Unix.close c.fd;
          lives)
        connections
    in
    match if List.mem listener readable then Some (fst (Unix.accept ~cloexec:true listener)) else None with
    | Some fd -> loop ({ fd; input = Resp.input (); replies = Buffer.create 4096 } :: connections)
    | None -> loop connections
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK), _, _) -> loop connections
  in
  loop []

(* --- the parent --------------------------------------------------------------------------------------------------- *)

type worker = { pid : int; is_ready : Unix.file_descr; give_orders : Unix.file_descr }

let await w = if Unix.read w.is_ready (Bytes.create 1) 0 1 <> 1 then failwith "a worker has ended"

(* The parent's data, until the workers have them: a worker must be able to drop them. *)
let common = ref None

let start listener ~most =
  if from <> "marshal" then common := Some (load 1);
  let start_one others =
    let is_ready, ready = Unix.pipe ~cloexec:true () and orders, give_orders = Unix.pipe ~cloexec:true () in
    flush_all ();
    match Unix.fork () with
    | 0 ->
      List.iter (fun w -> Unix.close w.give_orders) others;
      Unix.close is_ready;
      Unix.close give_orders;
      let dictionary = match !common with Some d -> d | None -> load 1 in
      common := None;
      work listener ~ready ~orders ~most dictionary
    | pid ->
      Unix.close ready;
      Unix.close orders;
      { pid; is_ready; give_orders }
  in
  let all = List.fold_left (fun others _ -> start_one others :: others) [] (List.init workers Fun.id) in
  List.iter await all;
  common := None;
  all

let pss workers =
  let of_one pid = Heap.proc_kilobytes (Printf.sprintf "/proc/%s/smaps_rollup" pid) "Pss:" in
  float (List.fold_left (fun n w -> n + of_one (string_of_int w.pid)) (of_one "self") workers) /. 1e3

let load_generator path ~requests ~connections =
  let n = string_of_int in
  let ended =
    Resp.benchmark path [ "-n"; n requests; "-c"; n connections; "-r"; "1000000"; "GET"; "__rand_int__" ]
  in
  fun () -> snd (List.hd (ended ()))

let () =
  let requests = Bench.int_argument 1 ~default:200_000 and connections = Bench.int_argument 2 ~default:16 in
  Sys.set_signal Sys.sigpipe Sys.Signal_ignore;
  in_child (fun () -> save 1);
  in_child (fun () -> save 2);
  let path = Filename.temp_file "dictionary" ".socket" in
  Sys.remove path;
  let listener = Unix.socket ~cloexec:true PF_UNIX SOCK_STREAM 0 in
  Unix.bind listener (ADDR_UNIX path);
  Unix.listen listener 128;
  Unix.set_nonblock listener;
  let began = Bench.wall () in
  let all = start listener ~most:((connections / workers) + 1) in
  Bench.metric "start" ((Bench.wall () -. began) *. 1e3) "ms";
  Bench.metric "sum of Pss: started" (pss all) "MB";
  let figure = load_generator path ~requests ~connections () in
  Bench.metric "time per request" (1e6 /. figure "rps") "us";
  Bench.metric "99th percentile of latency" (figure "p99_latency_ms") "ms";
  Bench.metric "greatest latency" (figure "max_latency_ms") "ms";
  Bench.metric "sum of Pss: under load" (pss all) "MB";
  (* A new edition, one worker after the other. *)
  let figures = load_generator path ~requests:(2 * requests) ~connections in
  Unix.sleepf 0.3;
  let began = Bench.wall () in
  List.iter
    (fun w ->
      Resp.write_all w.give_orders "2" 0;
      await w)
    all;
  Bench.metric "replacement: time" ((Bench.wall () -. began) *. 1e3) "ms";
  let figure = figures () in
  Bench.metric "replacement: 99th percentile of latency" (figure "p99_latency_ms") "ms";
  Bench.metric "replacement: greatest latency" (figure "max_latency_ms") "ms";
  Bench.metric "sum of Pss: replaced" (pss all) "MB";
  List.iter (fun w -> Unix.close w.give_orders) all;
  List.iter (fun w -> ignore (Unix.waitpid [] w.pid)) all;
  List.iter (fun e -> Sys.remove (file e)) [ 1; 2 ];
  Sys.remove path

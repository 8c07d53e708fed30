(* SPDX-License-Identifier: MIT *)
(* index: a hash table of C over the words of a real text. Its values are OCaml records (where a word stands) and, in a
   second table, OCaml closures (called when a word is met), held by roots. The tables are filled, updated, queried and
   evicted from while OCaml code runs. With several domains, each does it all, with tables of its own. Reports ns per
   word. Arguments: the file with the text, passes over it, domains. *)

type table

external create : buckets:int -> most:int -> table = "index_table_create"
external put : table -> string -> 'a -> unit = "index_table_put"
external clear : table -> unit = "index_table_clear"
external load : string -> unit = "index_load"
external scan : table -> table -> (string -> int -> 'a) -> ('a -> int -> 'a) -> unit = "index_scan"

type posting = { word : string; count : int; last_places : int list }

let rec keep n = function x :: rest when n > 0 -> x :: keep (n - 1) rest | _ -> []

let run passes =
  let postings = create ~buckets:32768 ~most:20_000 and handlers = create ~buckets:4096 ~most:2_000 in
  let words = ref 0 and fresh = ref 0 and called = ref 0 in
  let handler word =
    let calls = ref 0 in
    fun place ->
      incr calls;
      called := !called + min 1 (String.length word + place + !calls)
  in
  let first word place =
    incr words;
    incr fresh;
    if !fresh land 7 = 0 then put handlers word (handler word);
    { word; count = 1; last_places = [ place ] }
  in
  let again p place =
    incr words;
    { p with count = p.count + 1; last_places = place :: keep 3 p.last_places }
  in
  for _ = 1 to passes do
    scan postings handlers first again
  done;
  clear postings;
  clear handlers;
  (!words, !fresh, !called)

let read_file name =
  let channel = open_in_bin name in
  let contents = really_input_string channel (in_channel_length channel) in
  close_in channel;
  contents

let () =
  load (read_file Sys.argv.(1));
  let passes = Bench.int_argument 2 ~default:3 and domains = Bench.int_argument 3 ~default:1 in
  let found = Array.make domains (0, 0, 0) in
  let start = Bench.cpu () in
  Bench.timed ~copies:domains (fun () -> Domains.copies domains (fun i -> found.(i) <- run passes));
  let words, fresh, called = found.(0) in
  Bench.metric "per word" ((Bench.cpu () -. start) *. 1e9 /. float (words * domains)) "ns";
  Bench.metric "words" (float words) "";
  Bench.metric "words new to the table" (float fresh) "";
  Bench.metric "handlers called" (float called) ""

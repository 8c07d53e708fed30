(* SPDX-License-Identifier: MIT *)
(* Redis' protocol, version 2, as redis-benchmark and these servers speak it: requests are arrays of strings. What is
   read comes in pieces. *)

exception Incomplete

(* 0 <= from <= until <= length of bytes: what was received and not understood yet. *)
type input = { mutable bytes : Bytes.t; mutable from : int; mutable until : int }

let input () = { bytes = Bytes.create 65536; from = 0; until = 0 }
let at_once = 65536

(* Reads what has come, from a descriptor; the number of bytes, 0 at the end. *)
let receive i fd =
  if Bytes.length i.bytes - i.until < at_once then begin
    let held = i.until - i.from in
    let bytes = if 2 * (held + at_once) <= Bytes.length i.bytes then i.bytes else Bytes.create (2 * (held + at_once)) in
    Bytes.blit i.bytes i.from bytes 0 held;
    i.bytes <- bytes;
    i.from <- 0;
    i.until <- held
  end;
  match Unix.read fd i.bytes i.until at_once with
  | n ->
      i.until <- i.until + n;
      n
  | exception Unix.Unix_error ((ECONNRESET | EPIPE), _, _) -> 0

let byte i at = if at < i.until then Bytes.get i.bytes at else raise_notrace Incomplete

(* The number at [at], and what follows its line. *)
let number i at =
  let rec go n k =
    match byte i k with
    | '0' .. '9' as c -> go ((10 * n) + Char.code c - 48) (k + 1)
    | '\r' when byte i (k + 1) = '\n' -> (n, k + 2)
    | _ -> failwith "not the Redis protocol"
  in
  if byte i at = '-' then
    let n, next = go 0 (at + 1) in
    (-n, next)
  else go 0 at

(* The string whose length is at [at], after its mark, and what follows it; nothing for a length of -1. *)
let text i at =
  match number i at with
  | n, at when n < 0 -> (None, at)
  | n, at ->
      ignore (byte i (at + n + 1));
      (Some (Bytes.sub_string i.bytes at n), at + n + 2)

(* What [f] finds from the first byte on, if all of it has come. *)
let next i f =
  match f i.from with
  | found, at ->
      i.from <- at;
      Some found
  | exception Incomplete -> None

let request i =
  next i (fun at ->
      if byte i at <> '*' then failwith "not the Redis protocol";
      let rec words n at found =
        if n = 0 then (List.rev found, at)
        else if byte i at <> '$' then failwith "not the Redis protocol"
        else
          let word, at = text i (at + 1) in
          words (n - 1) at (Option.get word :: found)
      in
      let n, at = number i (at + 1) in
      words n at [])

type reply = Simple of string | Error of string | Integer of int | Bulk of string | Nothing

let reply i =
  next i (fun at ->
      let line () =
        let rec ending k = if byte i k = '\n' then k else ending (k + 1) in
        let last = ending at in
        (Bytes.sub_string i.bytes (at + 1) (last - at - 2), last + 1)
      in
      match byte i at with
      | '$' ->
          let text, at = text i (at + 1) in
          ((match text with Some text -> Bulk text | None -> Nothing), at)
      | ':' ->
          let n, at = number i (at + 1) in
          (Integer n, at)
      | mark ->
          let text, at = line () in
          ((if mark = '+' then Simple text else Error text), at))

(* --- what is sent ------------------------------------------------------------------------------------------------- *)

let line b mark text =
  Buffer.add_char b mark;
  Buffer.add_string b text;
  Buffer.add_string b "\r\n"

let bulk b text =
  line b '$' (string_of_int (String.length text));
  Buffer.add_string b text;
  Buffer.add_string b "\r\n"

let array b words =
  line b '*' (string_of_int (List.length words));
  List.iter (bulk b) words

let rec write_all fd text at =
  if at < String.length text then write_all fd text (at + Unix.write_substring fd text at (String.length text - at))

(* Sends what was collected. *)
let flush b fd =
  let text = Buffer.contents b in
  Buffer.clear b;
  try write_all fd text 0 with Unix.Unix_error ((ECONNRESET | EPIPE), _, _) -> ()

(* Starts redis-benchmark with these arguments on a server that listens at [path]. The function that is returned waits
   for its end: each test, and its figures by name. *)
let benchmark path arguments =
  let output, its_output = Unix.pipe ~cloexec:true () in
  let command = Array.of_list ("redis-benchmark" :: "-s" :: path :: "--csv" :: arguments) in
  let pid = Unix.create_process command.(0) command Unix.stdin its_output Unix.stderr in
  Unix.close its_output;
  fun () ->
    let text = In_channel.input_all (Unix.in_channel_of_descr output) in
    if snd (Unix.waitpid [] pid) <> WEXITED 0 then failwith "redis-benchmark failed";
    let fields row =
      List.map (fun f -> String.concat "" (String.split_on_char '"' f)) (String.split_on_char ',' (String.trim row))
    in
    (* "test","rps","avg_latency_ms",…: names, then figures *)
    match List.map fields (List.filter (( <> ) "") (String.split_on_char '\n' text)) with
    | ("test" :: names) :: (_ :: _ as rows) ->
        List.map
          (fun row -> (List.hd row, fun name -> float_of_string (List.assoc name (List.combine names (List.tl row)))))
          rows
    | _ -> failwith ("redis-benchmark (Debian: the package redis-tools) gives no figures: " ^ text)

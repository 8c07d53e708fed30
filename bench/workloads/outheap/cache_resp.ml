(* SPDX-License-Identifier: MIT *)
(* Redis' protocol, version 2: requests as arrays of strings or as lines, and replies; what is read comes in pieces. *)

exception Malformed of string

let longest_string = 64 * 1024 * 1024
let longest_line = 64 * 1024
let most_words = 1024 * 1024

(* 0 <= from <= until <= length of bytes: what was received and not understood yet. *)
type input = { mutable bytes : Bytes.t; mutable from : int; mutable until : int }

let input () = { bytes = Bytes.create 16384; from = 0; until = 0 }

(* Makes room for [n] bytes at [until]. *)
let make_room i n =
  if Bytes.length i.bytes - i.until < n then begin
    let held = i.until - i.from in
    let bytes = if 2 * (held + n) <= Bytes.length i.bytes then i.bytes else Bytes.create (2 * (held + n)) in
    Bytes.blit i.bytes i.from bytes 0 held;
    i.bytes <- bytes;
    i.from <- 0;
    i.until <- held
  end

let rec newline bytes at until =
  if at >= until then -1 else if Bytes.unsafe_get bytes at = '\n' then at else newline bytes (at + 1) until

(* Where the line at [at] ends with its newline; -1: not all of it has come. *)
let line_end i at =
  let last = newline i.bytes at i.until in
  if (if last < 0 then i.until else last) - at > longest_line then raise (Malformed "a line is too long");
  last

(* Before the end of a line, which is "\n" or "\r\n". *)
let before_end i at last = if last > at && Bytes.get i.bytes (last - 1) = '\r' then last - 1 else last

(* The number between two places. *)
let number i at last ~what =
  let wrong () = raise (Malformed ("no number where " ^ what ^ " should be")) in
  let negative = at < last && Bytes.get i.bytes at = '-' in
  let first = if negative then at + 1 else at in
  if first >= last || last - first > 15 then wrong ();
  let n = ref 0 in
  for k = first to last - 1 do
    match Bytes.get i.bytes k with '0' .. '9' as c -> n := (10 * !n) + Char.code c - 48 | _ -> wrong ()
  done;
  if negative then - !n else !n

(* The string of [n] bytes at [at], and what follows it. *)
let ended_string i at n =
  if Bytes.get i.bytes (at + n) <> '\r' || Bytes.get i.bytes (at + n + 1) <> '\n' then
    raise (Malformed "a string is longer than it was said to be");
  Bytes.sub_string i.bytes at n

let words_of_line i =
  let last = line_end i i.from in
  if last < 0 then None
  else begin
    let line = Bytes.sub_string i.bytes i.from (before_end i i.from last - i.from) in
    i.from <- last + 1;
    Some (List.filter (( <> ) "") (String.split_on_char ' ' line))
  end

(* The next request, if all of it has come: the name of a command and its arguments; nothing for an empty line.
   @raise Malformed: nothing that comes after that means anything. *)
let request i =
  if i.from >= i.until then None
  else if Bytes.get i.bytes i.from <> '*' then words_of_line i
  else
    let last = line_end i i.from in
    if last < 0 then None
    else begin
      let count = number i (i.from + 1) (before_end i i.from last) ~what:"the number of words" in
      if count > most_words then raise (Malformed "too many words");
      let rec words n at found =
        if n <= 0 then begin
          i.from <- at;
          Some (List.rev found)
        end
        else if at >= i.until then None
        else if Bytes.get i.bytes at <> '$' then
          raise (Malformed (Printf.sprintf "%C where '$' should be" (Bytes.get i.bytes at)))
        else
          let last = line_end i at in
          if last < 0 then None
          else begin
            let length = number i (at + 1) (before_end i at last) ~what:"the length of a word" in
            if length < 0 || length > longest_string then raise (Malformed "the length of a word is out of range");
            let at = last + 1 in
            if at + length + 2 > i.until then None
            else words (n - 1) (at + length + 2) (ended_string i at length :: found)
          end
      in
      words count (last + 1) []
    end

(* --- replies ------------------------------------------------------------------------------------------------------ *)

let end_line b = Buffer.add_string b "\r\n"

let simple b text =
  Buffer.add_char b '+';
  Buffer.add_string b text;
  end_line b

(* The text begins with a code: ERR, and some others. *)
let error b text =
  Buffer.add_char b '-';
  String.iter (fun c -> Buffer.add_char b (if c < ' ' then ' ' else c)) text;
  end_line b

let counted b mark n =
  Buffer.add_char b mark;
  Buffer.add_string b (string_of_int n);
  end_line b

let integer b n = counted b ':' n
let array_of b n = counted b '*' n

let bulk b text =
  counted b '$' (String.length text);
  Buffer.add_string b text;
  end_line b

let nothing b = Buffer.add_string b "$-1\r\n"

(* A request, as clients write them. *)
let command b words =
  array_of b (List.length words);
  List.iter (bulk b) words

type reply = Simple of string | Error of string | Integer of int | Bulk of string | Nothing

(* The next reply, if all of it has come; arrays are not understood. *)
let reply i =
  if i.from >= i.until then None
  else
    let last = line_end i i.from in
    if last < 0 then None
    else begin
      let first = i.from + 1 and ending = before_end i i.from last in
      let text () = Bytes.sub_string i.bytes first (ending - first) in
      let at = last + 1 in
      let found reply =
        i.from <- at;
        Some reply
      in
      match Bytes.get i.bytes i.from with
      | '+' -> found (Simple (text ()))
      | '-' -> found (Error (text ()))
      | ':' -> found (Integer (number i first ending ~what:"a number"))
      | '$' ->
          let length = number i first ending ~what:"the length of a reply" in
          if length < 0 then found Nothing
          else if at + length + 2 > i.until then None
          else begin
            let text = ended_string i at length in
            i.from <- at + length + 2;
            Some (Bulk text)
          end
      | c -> raise (Malformed (Printf.sprintf "%C where a reply should be" c))
    end

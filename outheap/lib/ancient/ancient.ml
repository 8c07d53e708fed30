(* SPDX-License-Identifier: MIT *)
module R = Outheap_region

type 'a ancient = { mutable root : 'a R.root option }
type info = { i_size : int }

let fail = function
  | (R.Refused _ | R.Unsupported _) as e -> invalid_arg (R.error_to_string e)
  | e -> failwith (R.error_to_string e)

let unwrap = function Ok x -> x | Error e -> fail e
let size root = { i_size = (R.info (R.region root)).words * (Sys.word_size / 8) }

let mark_info v =
  let root = unwrap (R.copy ~closures:true v) in
  ({ root = Some root }, size root)

let mark v = fst (mark_info v)
let root a = match a.root with Some r -> r | None -> invalid_arg "deleted"
let follow a = try R.get (root a) with R.Deleted -> invalid_arg "deleted"

let delete a =
  ignore (root a);
  a.root <- None

let is_ancient v = R.is_in_region (Obj.repr v)
let address_of v = R.address (Obj.repr v)

(* A file begins with 64 KiB: a mark, and from byte 4,096 on a table of 1,024 entries of 16 bytes, which say where an
   image begins and how long it is. Then come the images, each at a multiple of 64 KiB. *)
type md = { file : Unix.file_descr; mutable attached : bool }

let page = 65536
let max_key = 1023
let table = 4096
let mark_text = "outheap.ancient 1\n"
let images : 'a. unit -> 'a R.schema = fun () -> R.schema ~name:"ancient" ~version:1

let rec read_all file bytes from n =
  if n > 0 then
    match Unix.read file bytes from n with
    | 0 -> failwith "Ancient: the file ends too early"
    | m -> read_all file bytes (from + m) (n - m)

let read_at file offset n =
  let bytes = Bytes.create n in
  ignore (Unix.LargeFile.lseek file (Int64.of_int offset) Unix.SEEK_SET);
  read_all file bytes 0 n;
  bytes

let write_at file offset bytes n =
  ignore (Unix.LargeFile.lseek file (Int64.of_int offset) Unix.SEEK_SET);
  if Unix.write file bytes 0 n <> n then failwith "Ancient: the file cannot be written"

let size_of file = Int64.to_int (Unix.LargeFile.fstat file).st_size

let attach file _ =
  if size_of file = 0 then (
    Unix.ftruncate file page;
    write_at file 0 (Bytes.of_string mark_text) (String.length mark_text));
  if size_of file < page || Bytes.to_string (read_at file 0 (String.length mark_text)) <> mark_text then
    failwith "Ancient: not a file of this library";
  { file; attached = true }

let check md key =
  if not md.attached then invalid_arg "detached";
  if key < 0 || key > max_key then invalid_arg "key out of range"

let detach md =
  if md.attached then Unix.close md.file;
  md.attached <- false

(* A name of the file, by which it can be opened a second time. *)
let path_of md = Printf.sprintf "/proc/self/fd/%d" (Obj.magic (md.file : Unix.file_descr) : int)

let get md key =
  check md key;
  let entry = read_at md.file (table + (16 * key)) 16 in
  let offset = Int64.to_int (Bytes.get_int64_le entry 0) in
  if offset = 0 then raise Not_found;
  { root = Some (unwrap (R.map_part (images ()) ~path:(path_of md) ~offset ())) }

let share_info md key v =
  check md key;
  let temporary = Filename.temp_file "ancient" ".image" in
  let append () =
    unwrap (R.save (images ()) ~path:temporary v);
    let source = Unix.openfile temporary [ Unix.O_RDONLY; Unix.O_CLOEXEC ] 0 in
    Fun.protect ~finally:(fun () -> Unix.close source) @@ fun () ->
    let offset = (size_of md.file + page - 1) / page * page and length = size_of source in
    let rec copy at =
      if at < length then (
        let n = min (1 lsl 20) (length - at) in
        write_at md.file (offset + at) (read_at source at n) n;
        copy (at + n))
    in
    copy 0;
    let entry = Bytes.create 16 in
    Bytes.set_int64_le entry 0 (Int64.of_int offset);
    Bytes.set_int64_le entry 8 (Int64.of_int length);
    write_at md.file (table + (16 * key)) entry 16
  in
  Fun.protect ~finally:(fun () -> Sys.remove temporary) append;
  let a = get md key in
  (a, size (root a))

let share md key v = fst (share_info md key v)

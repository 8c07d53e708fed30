(* SPDX-License-Identifier: MIT *)
(* The data of Coq's compiled files (.vo), read without Coq. The environment variable COQ_THEORIES names the folder.
   A file is: the magic number "Coq!", a version, the place of a list of segments; each segment is a value of
   Marshal. Numbers are big-endian. *)
let number c bytes =
  let n = ref 0 in
  for _ = 1 to bytes do n := (!n lsl 8) lor input_byte c done;
  !n

let segment_of c =
  let name = really_input_string c (number c 4) in
  let at = number c 8 in
  let _length = number c 8 and _digest = really_input_string c 16 in
  (name, at)

(* The values of a file, each with the name of its segment; those alone that `wanted` wants are read. *)
let read ?(wanted = fun _ -> true) path : (string * Obj.t) list =
  In_channel.with_open_bin path (fun c ->
      if really_input_string c 4 <> "Coq!" then failwith (path ^ " is no compiled file of Coq");
      let _version = number c 4 in
      seek_in c (number c 8);
      let segments = List.init (number c 4) (fun _ -> segment_of c) in
      let value (name, at) = seek_in c at; (name, (Marshal.from_channel c : Obj.t)) in
      List.map value (List.filter (fun (name, _) -> wanted name) segments))

(* The files of a folder and of those in it, ordered by name. *)
let rec below folder =
  let file name =
    let path = Filename.concat folder name in
    if Sys.is_directory path then below path else if Filename.check_suffix name ".vo" then [ path ] else []
  in
  List.concat_map file (List.sort compare (Array.to_list (Sys.readdir folder)))

let folder () = Sys.getenv "COQ_THEORIES"
let all () = below (folder ())

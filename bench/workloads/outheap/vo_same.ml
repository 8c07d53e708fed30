(* SPDX-License-Identifier: MIT *)
(* Do compiled files of Coq (.vo) have the same contents, whatever they share?
     vo_same FOLDER OTHER    compares the files that both folders have, and those in their folders
   Equal blocks get the same number, from the leaves up; files are the same if their roots are. Exit code 1: some
   differ, or there are none. *)

type shape = Fields of int * int list | Bytes of int * string

let numbers : (shape, int) Hashtbl.t = Hashtbl.create 1_000_000

let number shape =
  match Hashtbl.find_opt numbers shape with
  | Some n -> n
  | None ->
      let n = Hashtbl.length numbers in
      Hashtbl.add numbers shape n; n

(* Blocks do not move while their addresses are in use: they have left the minor heap, and nothing compacts. *)
let address (v : Obj.t) = (Obj.magic v : int) lsr 1

let bytes v =
  let n = Obj.size v in
  if Obj.tag v = Obj.string_tag then (Obj.obj v : string)
  else if Obj.tag v = Obj.custom_tag then Marshal.to_string v []
  else String.concat " " (List.init n (fun i -> Nativeint.to_string (Obj.raw_field v i)))

let root (v : Obj.t) =
  Gc.full_major ();
  let known = Hashtbl.create 100_000 in
  (* Immediates are odd, blocks even. *)
  let rec go v =
    if Obj.is_int v then (2 * (Obj.obj v : int)) + 1
    else
      match Hashtbl.find_opt known (address v) with
      | Some n -> n
      | None ->
          let tag = Obj.tag v in
          let shape =
            if tag >= Obj.no_scan_tag then Bytes (tag, bytes v)
            else Fields (tag, List.init (Obj.size v) (fun i -> go (Obj.field v i)))
          in
          let n = 2 * number shape in
          Hashtbl.add known (address v) n; n
  in
  go v

let () =
  let folder = Sys.argv.(1) and other = Sys.argv.(2) in
  let same = ref 0 and different = ref 0 in
  let compare_files path =
    let rest = String.sub path (String.length folder) (String.length path - String.length folder) in
    if Sys.file_exists (other ^ rest) then
      List.iter2
        (fun (name, a) (name', b) ->
          if name = name' && root a = root b then incr same
          else (
            incr different;
            Printf.printf "%s: the segments %s differ\n%!" rest name))
        (Vo_files.read path)
        (Vo_files.read (other ^ rest))
  in
  List.iter compare_files (Vo_files.below folder);
  Printf.printf "%d segments are the same, %d differ\n" !same !different;
  if !different > 0 || !same = 0 then exit 1

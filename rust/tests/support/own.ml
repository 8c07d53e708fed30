(* SPDX-License-Identifier: MIT *)
(* What the tests of values and memory that Rust shares with OCaml find here. src/own.rs gives each name its type. *)

open Bigarray

let show : type a b c. (a, b, c) Genarray.t -> int list -> string =
 fun a index ->
  let x = Genarray.get a (Array.of_list index) in
  match Genarray.kind a with
  | Float32 -> Printf.sprintf "%g" x
  | Float64 -> Printf.sprintf "%g" x
  | Int8_signed -> string_of_int x
  | Int8_unsigned -> string_of_int x
  | Int16_signed -> string_of_int x
  | Int16_unsigned -> string_of_int x
  | Int32 -> Int32.to_string x
  | Int64 -> Int64.to_string x
  | Int -> string_of_int x
  | Nativeint -> Nativeint.to_string x
  | Complex32 -> Printf.sprintf "%g+%gi" x.re x.im
  | Complex64 -> Printf.sprintf "%g+%gi" x.re x.im
  | Char -> String.make 1 x
  | _ -> Printf.sprintf "%g" (Obj.magic x : float)

let () =
  let r = Callback.register in
  r "own_compare" (fun a b -> compare a b);
  r "own_equal" (fun a b -> a = b);
  r "own_hash" (fun a -> Hashtbl.hash a);
  r "own_copy" (fun a -> Marshal.from_string (Marshal.to_string a []) 0);
  r "own_marshal" (fun a -> Marshal.to_string a []);
  r "own_unmarshal" (fun s -> Marshal.from_string s 0);
  r "own_box" (fun a -> ref a);
  r "own_forget" (fun cell -> cell := Obj.repr 0);
  r "own_sort" (fun l -> List.sort compare l);
  (* Kinds and layouts are numbered as in C. *)
  r "own_create" (fun kind layout dims -> Genarray.create (Obj.magic kind) (Obj.magic layout) (Array.of_list dims));
  r "own_show" show;
  r "own_copy_element" (fun a from into ->
      Genarray.set a (Array.of_list into) (Genarray.get a (Array.of_list from)));
  r "own_dims" (fun a -> Array.to_list (Genarray.dims a));
  r "own_sub" (fun layout a first len ->
      if layout = 0 then Genarray.sub_left a first len else Obj.magic (Genarray.sub_right (Obj.magic a) first len));
  r "own_array1" array1_of_genarray;
  r "own_map" (fun path pos ->
      let file = Unix.openfile path [ Unix.O_RDWR ] 0 in
      let a = Unix.map_file file ~pos:(Int64.of_int pos) Int32 c_layout true [| 4 |] in
      Unix.close file; a);
  r "own_count" (fun (a : (int, int_elt, c_layout) Array1.t) n ->
      for i = 1 to n do a.{0} <- i; a.{1} <- a.{0} done);
  r "own_bytes" Bytes.of_string

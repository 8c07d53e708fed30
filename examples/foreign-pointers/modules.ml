(* SPDX-License-Identifier: MIT *)
(* Modules of LLVM whose contents OCaml's data refer to, while the collector promotes, marks and compacts. Prints
   `whole`.  modules.exe FUNCTIONS *)

open Llvm

let count = int_of_string Sys.argv.(1)
let name i = Printf.sprintf "f%d" i

type made = { number : int; func : llvalue; sum : llvalue; block : llbasicblock }

let () =
  let context = create_context () in
  let m = create_module context "values" in
  let i64 = i64_type context in
  let make number =
    let func = define_function (name number) (function_type i64 [| i64 |]) m in
    let block = entry_block func in
    let builder = builder_at_end context block in
    let sum = build_add (param func 0) (const_int i64 number) "sum" builder in
    ignore (build_ret sum builder);
    { number; func; sum; block }
  in
  let all = List.init count make in
  for _ = 1 to 3 do
    Gc.full_major ()
  done;
  Gc.compact ();
  let same { number; func; sum; block } =
    value_name func = name number
    && entry_block func == block
    && operand sum 0 == param func 0
    && int64_of_const (operand sum 1) = Some (Int64.of_int number)
  in
  if not (List.for_all same all) then failwith "a value has changed";
  (* What they lead to is gone; nobody asks for it again, but the collector meets the pointers. *)
  dispose_module m;
  dispose_context context;
  Gc.full_major ();
  if List.length (Sys.opaque_identity all) <> count then failwith "the list has changed";
  print_endline "whole"

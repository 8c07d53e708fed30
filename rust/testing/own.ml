(* SPDX-License-Identifier: MIT *)
(* What the tests of values and memory that Rust shares with OCaml find here. src/own.rs gives each name its type. *)

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
  r "own_thread" (fun work -> Thread.join (Thread.create work ()))

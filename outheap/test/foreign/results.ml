(* SPDX-License-Identifier: MIT *)
(* Foreign pointers as results of OCaml code that C or the runtime has called, and in what exceptions and effects carry.
   The runtime marks the result of a callback that is an exception by its second lowest bit. *)

(* An address at this distance from a multiple of 8, in memory that cannot be read. *)
external address : int -> Obj.t = "foreign_address"

(* Calls it, by caml_callback_exn and by caml_callback; what came back is the address, or an exception. *)
external call_exn : (unit -> Obj.t) -> Obj.t -> string = "foreign_call_exn"
external call : (unit -> Obj.t) -> Obj.t = "foreign_call"

exception Carried of Obj.t

let hide = Sys.opaque_identity
let result_of p f = match f () with q when q == p -> "the pointer" | _ -> "another" | exception _ -> "an exception"

let exceptions p =
  let raised () = try raise (hide (Carried p)) with Carried q -> q in
  let in_c () = try call (fun () -> raise (Carried p)) with Carried q -> q in
  [ "carried by an exception", raised; "carried through C", in_c ]

let ways p =
  let f () = hide p in
  [ "caml_callback", (fun () -> call (hide f));
    "an OCaml call", (fun () -> (hide f) ());
    "in a block", (fun () -> match call (fun () -> Obj.repr (Some p)) |> Obj.obj with Some q -> q | None -> hide p) ]
  @ exceptions p @ Results_more.ways p

let run distance =
  let p = address distance in
  Printf.printf "caml_callback_exn: %s\n" (call_exn (fun () -> hide p) p);
  List.iter (fun (what, way) -> Printf.printf "%s: %s\n" what (result_of p way)) (ways p);
  Gc.full_major ()

(* SPDX-License-Identifier: MIT *)
(* One test for each failure that was found in version 0.4.0 by running it, and for the faults that a design like ours
   could have in their place. README.md has the table of which of them fail on 0.4.0. *)

open Root

external holders : int -> unit = "r_holders"
external holder : int -> Obj.t = "r_holder"
external give : int -> Root.t -> bool = "r_give" [@@noalloc]
external take : int -> Root.t = "r_take" [@@noalloc]
external deleted_by_finalisers : unit -> int = "r_deleted_by_finalisers"
external modify_in_finalisers : bool -> unit = "r_modify_in_finalisers" [@@noalloc]
external misuse : string -> Root.t -> unit = "r_misuse"
external arm : int -> int -> unit = "o_arm" [@@noalloc]
external disarm : unit -> unit = "o_disarm" [@@noalloc]
external rearm : int -> unit = "o_rearm" [@@noalloc]
external failures : unit -> int = "o_failures"
external kernel : int -> bool -> unit = "o_kernel" [@@noalloc]
external given : unit -> int = "o_given" [@@noalloc]
external expect_enomem : unit -> unit = "o_expect_enomem" [@@noalloc]

let text i = "value " ^ string_of_int i
let make n = Array.init n (fun i -> create_or_fail (text i))

let is_text r i =
  let v : Obj.t = get r in
  Obj.is_block v && Obj.tag v = Obj.string_tag && String.equal (Obj.obj v) (text i)

let check what roots =
  let bad = ref 0 in
  Array.iteri (fun i r -> if r <> none && not (is_text r i) then incr bad) roots;
  if !bad > 0 then fail "%s: %d of %d roots lost their values" what !bad (Array.length roots)

let delete_all roots = Array.iter (fun r -> if r <> none then delete r) roots

let churn n =
  for i = 1 to n do
    ignore (Sys.opaque_identity (text i))
  done

let in_domain f =
  let result = ref None in
  Par.join (Par.spawn (fun () -> result := Some (f ())));
  match !result with Some x -> x | None -> fail "a domain gave no result"

(* SPDX-License-Identifier: MIT *)
(* Linked before systhreads: the tests late-collection, late-setup and late-create use the library before systhreads
   is initialised. *)

let early = Array.length Sys.argv = 2 && List.mem Sys.argv.(1) [ "late-collection"; "late-setup"; "late-create" ]

(* Not by a creation: 0.4.0 initialises systhreads here, and that runs the GC. *)
let () = if early then ignore (Root.setup ())
let make n = if early then Array.init n (fun i -> Root.create (string_of_int i)) else [||]
let roots = make 100

(* One of two is deleted at once, so that the library is eager to use the pools of the others for new roots; and the
   next minor collection is to be short. *)
let doomed =
  let all = make (2 * Root.scale 500_000) in
  Array.iteri (fun i r -> if i land 1 = 1 then Root.delete r) all;
  if early then Gc.full_major ();
  Array.init (Array.length all / 2) (fun i -> all.(2 * i))

(* SPDX-License-Identifier: MIT *)
(* A fault of the OCaml runtime, without this library: ocaml/ocaml#14495, repaired in January 2026; OCaml 5.4.1 and
   before have it.

     ocamlfind ocamlopt moving_closures.ml -o moving_closures && ./moving_closures 800

   One domain stores closures of mutually recursive functions into an old array. The pointers to the second function are
   infix pointers: the header before them is a word inside the block. A minor collection writes the new address of such
   a closure into the array when it has allocated the block, and copies the words later. Meanwhile another domain, which
   has finished its part of the minor collection and marks while it waits, comes to the array, and takes what an
   earlier block left in that word for a header. The earlier blocks are tuples here that hold a number which looks like
   the header of a very large block, unmarked in one cycle of three.

   OCaml 5.4.1, 2 cores: segmentation fault in do_some_marking, in an opportunistic slice, in 13 of 14 runs of 8
   seconds; in none of 14 with a runtime that copies these words before it announces the block. *)

let rounds = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 2000
let size = 400_000
let cells : (int -> string) array = Array.make size (fun _ -> "")
let baits = Array.make 4000 (0, 0, 0, 0, 0, 0)
let heavy : int list array = Array.make 2000 []
let light : int ref array = Array.make 8000 (ref 0)
let finished = Atomic.make 0

let infix i =
  let s = Sys.opaque_identity (string_of_int i) in
  let rec f n = if n = 0 then s else g (n - 1) and g n = if n = 0 then s ^ "!" else f (n - 1) in
  ignore (Sys.opaque_identity (Obj.repr f));
  g

(* The remembered set is shared out in the order of the stores: this domain gets the closures and the lists, the other
   one the references, and is done long before. *)
let writer () =
  let x = ref 12345 in
  let random bound =
    x := (!x * 0x1851f42d4c957f2d) + 1;
    (!x lsr 20) mod bound
  in
  for _ = 1 to rounds do
    for i = 1 to 2000 do cells.(random size) <- infix i done;
    for i = 0 to 3999 do baits.(i) <- (i, i, (1 lsl 49) lor (i mod 3 lsl 7), i, i, i) done;
    for i = 0 to 1999 do heavy.(i) <- List.init 20 (fun k -> i + k) done;
    for i = 0 to 7999 do light.(i) <- ref i done;
    Gc.minor ();
    Atomic.incr finished
  done

let () =
  Gc.set { (Gc.get ()) with space_overhead = 40 };
  let d = Domain.spawn writer in
  while Atomic.get finished < rounds do
    for _ = 1 to 1000 do ignore (Sys.opaque_identity (ref 0)) done
  done;
  Domain.join d;
  Printf.printf "%d rounds, %d major cycles\n%!" (Atomic.get finished) (Gc.quick_stat ()).major_collections

(* SPDX-License-Identifier: MIT *)
(* OCaml inside a shared object that some other program loads (embedded_stubs.c). *)
external create : 'a -> int = "e_create" [@@noalloc]
external get : int -> 'a = "e_get" [@@noalloc]
external modify : int -> 'a -> int = "e_modify" [@@noalloc]
external delete : int -> unit = "e_delete" [@@noalloc]
external delete_nolock : int -> unit = "e_delete_nolock"

let text i = string_of_int (i * 7919)

(* The number of roots that hold something else than they should; values of ended roots that stay count, too. *)
let work () =
  let n = 3000 and wrong = ref 0 in
  let roots = Array.init n (fun i -> create (text i)) in
  let weak = Weak.create n in
  let check () = Array.iteri (fun i r -> if r = 0 || (get r : string) <> text i then incr wrong) roots in
  Gc.full_major ();
  for i = 0 to n - 1 do
    Weak.set weak i (Some (get roots.(i) : string));
    if i land 1 = 0 then delete roots.(i) else delete_nolock roots.(i);
    roots.(i) <- create (text i)
  done;
  check ();
  for i = 0 to n - 1 do roots.(i) <- modify roots.(i) (text i) done;
  for _ = 1 to 3 do Gc.full_major () done;
  Gc.compact ();
  check ();
  for i = 0 to n - 1 do if Weak.check weak i then incr wrong done;
  Array.iter delete roots;
  !wrong

let () = Callback.register "work" work

(* SPDX-License-Identifier: MIT *)
external push : int -> string -> bool = "queue_push"
external pop : string -> string = "queue_pop"
external clear : unit -> unit = "queue_clear"

let () =
  for i = 1 to 100_000 do
    assert (push (i * 7919 mod 100_003) (string_of_int (i * 7919 mod 100_003)))
  done;
  Gc.compact ();
  let first = pop "none" in
  let second = pop "none" in
  assert (int_of_string first > int_of_string second);
  for _ = 1 to 1000 do
    ignore (pop "none")
  done;
  clear ();
  Gc.full_major ();
  assert (pop "none" = "none");
  Printf.printf "%s, %s, then empty\n" first second

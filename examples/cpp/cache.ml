(* SPDX-License-Identifier: MIT *)
external set : string -> 'a -> unit = "cache_set"
external find : string -> 'a option = "cache_find"
external remove : string -> bool = "cache_remove"

let () =
  for i = 1 to 10_000 do
    set (string_of_int (i mod 100)) (List.init (i mod 7) string_of_int)
  done;
  Gc.compact ();
  for i = 0 to 49 do
    assert (remove (string_of_int i))
  done;
  Gc.full_major ();
  assert (find "7" = None);
  assert (not (remove "7"));
  assert (find "99" = Some (List.init (9999 mod 7) string_of_int));
  Printf.printf "99 -> %s\n" (String.concat " " (Option.get (find "99")))

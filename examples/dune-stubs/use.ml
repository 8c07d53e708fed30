(* SPDX-License-Identifier: MIT *)
let () =
  Memo.store 1 (String.concat "" [ "o"; "n"; "e" ]);
  Gc.compact ();
  assert (Memo.find 1 = Some "one");
  assert ((Boxroot.stats ()).create_slow > 0);
  print_endline "plugin: ok"

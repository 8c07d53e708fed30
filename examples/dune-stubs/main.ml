(* SPDX-License-Identifier: MIT *)
let () =
  for i = 0 to 9999 do
    Memo.store i (string_of_int i)
  done;
  ignore (Memo.swap_last (Obj.repr [ "kept" ]));
  Gc.compact ();
  assert (Memo.find 9999 = Some "9999");
  assert (Memo.find 0 = None);
  assert (Obj.obj (Memo.swap_last (Obj.repr ())) = [ "kept" ]);
  assert (Boxroot.status () = Boxroot.Running && Boxroot.setup () = Ok ());
  let s = Boxroot.stats () in
  assert (s.create_slow > 0 && s.pools_in_use > 0 && s.pool_bytes > s.pool_capacity);
  Printf.printf "slow creations: %d\n" s.create_slow;
  Boxroot.print_stats ();
  print_endline "dune-stubs: ok"

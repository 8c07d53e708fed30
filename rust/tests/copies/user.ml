(* SPDX-License-Identifier: MIT *)
(* Two Rust libraries of the same source in one program. *)
let fresh s = String.init (String.length s) (String.get s)
let invalid f = match f () with _ -> false | exception Invalid_argument _ -> true
let panics text f =
  match f () with _ -> false | exception Ocaml_boxroot.Rust_panic p -> p.message = text
let run () =
  assert (One.text (One.mine "a") = "a" && Two.text (Two.mine "b") = "b");
  assert (invalid (fun () -> One.text (Obj.magic (Two.mine "x"))));
  assert (invalid (fun () -> Two.text (Obj.magic (One.mine "x"))));
  assert (match One.fail "1" with _ -> false | exception One.Mistake "1" -> true);
  assert (match Two.fail "2" with _ -> false | exception Two.Mistake "2" -> true);
  for n = 1 to 100 do
    assert (panics (Printf.sprintf "in two: %d" n) (fun () -> One.call (fun () -> Two.explode n)));
    assert (panics (Printf.sprintf "in one: %d" n) (fun () -> Two.call (fun () -> One.explode n)));
    assert (Two.call (fun () -> One.call (fun () -> n)) = n);
    assert (match Two.call (fun () -> One.call (fun () -> raise Not_found)) with
      | _ -> false | exception Not_found -> true);
    assert (One.released (fun () -> Two.released (fun () -> One.call (fun () -> n))) = n)
  done;
  (* The other copy sees that the lock is held. *)
  assert (One.attached () && Two.attached ());
  assert (One.call (fun () -> Bool.to_int (Two.attached ())) = 1);
  assert (Two.released (fun () -> Bool.to_int (One.attached ())) = 1);
  One.keep (fresh "kept by one");
  Two.keep (fresh "kept by two");
  Gc.compact ();
  assert (One.kept () = Some "kept by one" && Two.kept () = Some "kept by two");
  let work () =
    for n = 1 to 20 do
      assert (One.released (fun () -> Thread.yield (); Two.call (fun () -> n)) = n);
      assert (Two.released (fun () -> Thread.yield (); One.call (fun () -> n)) = n)
    done
  in
  List.iter Thread.join (List.init 3 (fun _ -> Thread.create work ()));
  print_endline "copies: ok"

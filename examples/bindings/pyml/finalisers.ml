(* Python objects which hold OCaml values, and of which some are replaced after each major collection. The collector
   drops the old ones, and so ends roots in the middle of its work: where it looks for room for a value that it found
   through a root, it sweeps, and calls finalisers. With OCaml 5.0 to 5.3 and without the patch it comes to wait for
   itself: the system ends this program after a while.    finalisers.exe [SECONDS] *)
let () =
  ignore (Unix.alarm (if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 60));
  Py.initialize ~interpreter:"/usr/bin/python3" ();
  let wrap, unwrap = Py.Capsule.make "held" in
  let held = Array.init 30_000 wrap in
  for round = 1 to 30 do
    let each f = Array.iteri (fun k _ -> if (k + round) mod 3 = 0 then held.(k) <- f k) held in
    each (fun _ -> Py.none);
    Gc.major ();
    each wrap;
    Gc.minor ();
    Array.iteri (fun k object_ -> assert (unwrap object_ = k)) held
  done;
  print_endline "all are there"

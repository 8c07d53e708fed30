(* Handles with callbacks, of which some are dropped and get new ones, which are promoted. A handle's finaliser ends the
   root of its callback. Where the collector looks for room for a young callback that it found through a root, it
   sweeps, and calls finalisers: with OCaml 5.0 to 5.3 and without the patch it comes to wait for itself, and the system
   ends this program after a while. Such a callback must have the size of a handle's block: in bytecode a function
   without free variables has.    finalisers.bc.exe [SECONDS] *)
let n = 5_000

let () =
  ignore (Unix.alarm (if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 60));
  let held = Array.make n None in
  let call h = NBD.set_debug_callback h (fun _ _ -> 0) in
  for round = 1 to 30 do
    Array.iteri (fun k h -> if h = None then held.(k) <- Some (NBD.create ())) held;
    Array.iter (Option.iter call) held;
    Gc.full_major ();
    Array.iteri (fun k _ -> if (k + round) mod 3 = 0 then held.(k) <- None) held;
    (* what was dropped while the collector marks dies in the next cycle, and is swept in the one after *)
    Gc.major ();
    Gc.major ();
    Array.iter (Option.iter call) held;
    Gc.minor ()
  done;
  print_endline "all are there"

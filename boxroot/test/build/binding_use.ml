(* SPDX-License-Identifier: MIT *)
(* Uses Binding: its roots must hold their values through minor collections, major ones and compactions, and let them go
   when they are deleted. *)
let n = 20_000
let make round i = (round * i, string_of_int i)

let check what round wanted =
  for i = 0 to n - 1 do
    if wanted i && Binding.kept i <> make round i then failwith (Printf.sprintf "%s: root %d" what i)
  done

let () =
  Binding.size n;
  for round = 1 to 4 do
    for i = 0 to n - 1 do
      Binding.keep i (make round i);
      if i mod 1000 = 0 then Gc.minor ()
    done;
    Gc.minor ();
    check "minor collection" round (fun _ -> true);
    Gc.full_major ();
    check "major collection" round (fun _ -> true);
    for i = 0 to n - 1 do
      if i mod 2 = 0 then Binding.drop i
    done;
    Gc.compact ();
    check "compaction" round (fun i -> i mod 2 = 1);
    let expected = List.init (n / 2) (fun i -> make round ((2 * i) + 1)) in
    if Binding.list () <> expected then failwith "list"
  done;
  if Binding.pools () = 0 then failwith "the roots are not of this library";
  let last = Sys.opaque_identity (ref (Array.make 10 0)) in
  Binding.observe !last;
  Gc.full_major ();
  if not (Binding.is_alive ()) then failwith "a weak root of a value that is alive";
  Binding.keep 0 !last;
  last := [||];
  Gc.full_major ();
  if not (Binding.is_alive ()) then failwith "a value that only a root keeps";
  Binding.drop 0;
  (* a deletion while the collector marks keeps the value until the next cycle *)
  Gc.full_major ();
  Gc.full_major ();
  if Binding.is_alive () then failwith "a value that nothing keeps";
  print_endline "binding: ok"

(* SPDX-License-Identifier: MIT *)
(* The random test on one thread, then on four threads at once. *)
let () =
  Client.run ~seed:1 ~first:0 ~keys:3000 ~steps:200_000;
  let threads =
    List.init 4 (fun i ->
        Thread.create (fun () -> Client.run ~seed:(10 + i) ~first:(10_000 * i) ~keys:500 ~steps:30_000) ())
  in
  List.iter Thread.join threads;
  Gc.full_major ();
  if Client.count () <> 0 then failwith "roots left";
  print_endline "roots: ok"

(* SPDX-License-Identifier: MIT *)
(* The random test on three domains at once. *)
let () =
  let domains =
    List.init 3 (fun i ->
        Domain.spawn (fun () -> Client.run ~seed:(20 + i) ~first:(10_000 * i) ~keys:1000 ~steps:10_000))
  in
  List.iter Domain.join domains;
  Gc.full_major ();
  if Client.count () <> 0 then failwith "roots left";
  print_endline "domains: ok"

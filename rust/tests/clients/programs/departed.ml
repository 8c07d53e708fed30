(* SPDX-License-Identifier: MIT *)
(* Domains that end and leave their roots to others, who read and drop them. *)
let rounds = 30
let each = 300

let () =
  for round = 0 to rounds - 1 do
    Domain.join (Domain.spawn (fun () -> for i = 0 to each - 1 do Client.(keep ((each * round) + i) (make i)) done));
    if round mod 7 = 0 then Gc.full_major ()
  done;
  for k = 0 to (rounds * each) - 1 do
    Client.(check "left by a domain" (make (k mod each)) (get k));
    if k mod 2 = 0 then Client.drop k
  done;
  Domain.join (Domain.spawn (fun () -> for k = 0 to (rounds * each) - 1 do if k mod 2 = 1 then Client.drop k done));
  Gc.full_major ();
  if Client.count () <> 0 then failwith "roots left";
  print_endline "departed: ok"

(* SPDX-License-Identifier: MIT *)
(* Threads of one domain: one that waits for a part of a table lets the others run, among them the one that has it. *)
open Linear_checks
module S = Linear_sharded.Counts.Sharded

let threads () =
  let t = S.create ~shards:1 () in
  let inside = Atomic.make false and waits = Atomic.make 0 and found = Atomic.make (-1) in
  let slow v =
    Atomic.set inside true;
    while Atomic.get waits < 3 do Thread.delay 0.001 done;
    Thread.delay 0.05;
    Some (1 + Option.value v ~default:0)
  in
  let holder = Thread.create (fun () -> S.update 1 slow t) () in
  while not (Atomic.get inside) do Thread.delay 0.001 done;
  let waiting =
    List.init 3 (fun _ ->
        Thread.create
          (fun () ->
            Atomic.incr waits;
            Option.iter (Atomic.set found) (S.find 1 t))
          ())
  in
  let turns = ref 0 in
  while Atomic.get found < 0 do
    incr turns;
    Thread.delay 0.001
  done;
  check "others have run meanwhile" (!turns > 5);
  List.iter Thread.join (holder :: waiting);
  check "after the change" (Atomic.get found = 1 && S.find 1 t = Some 1);
  (* Many changes, whose threads take turns in the middle of them. *)
  let one_more v = Thread.yield (); Some (1 + Option.value v ~default:0) in
  let many () = for _ = 1 to 200 do S.update 2 one_more t done in
  List.init 4 (fun _ -> Thread.create many ()) |> List.iter Thread.join;
  check "none is lost" (S.find 2 t = Some 800);
  S.close t

(* SPDX-License-Identifier: MIT *)
(* Threads of one domain: one that waits for a part of a table lets the others run, among them the one that has it. *)
open Linear_checks
module S = Linear_sharded.Counts.Sharded

let in_turn () =
  let t = S.create ~shards:1 () in
  let inside = Atomic.make false and waits = Atomic.make 0 and found = Atomic.make (-1) and turns = Atomic.make 0 in
  let slow v =
    Atomic.set inside true;
    while Atomic.get waits < 3 do Thread.delay 0.001 done;
    let enough = Atomic.get turns + 20 in
    while Atomic.get turns < enough do Thread.delay 0.001 done;
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
  while Atomic.get found < 0 do
    Atomic.incr turns;
    Thread.delay 0.001
  done;
  List.iter Thread.join (holder :: waiting);
  check "after the change" (Atomic.get found = 1 && S.find 1 t = Some 1);
  (* Many changes, whose threads take turns in the middle of them. *)
  let one_more v = Thread.yield (); Some (1 + Option.value v ~default:0) in
  let many () = for _ = 1 to 200 do S.update 2 one_more t done in
  List.init 4 (fun _ -> Thread.create many ()) |> List.iter Thread.join;
  check "none is lost" (S.find 2 t = Some 800);
  S.close t

(* A thread or domain that ends in the middle of a change, by whatever exception, leaves the part to others. *)
let ended_inside () =
  let t = S.create ~shards:1 () in
  let ends =
    [
      (fun () -> raise Stop); (fun () -> raise Out_of_memory); (fun () -> raise Thread.Exit);
      (fun () -> raise Stack_overflow);
    ]
  in
  let quiet f = try f () with Stop | Out_of_memory | Stack_overflow -> () in
  List.iteri
    (fun i end_ ->
      S.replace 1 i t;
      let inside () = quiet (fun () -> S.update 1 (fun _ -> end_ (); Some 1000) t) in
      Thread.join (Thread.create inside ());
      check "others find what there was" (S.find 1 t = Some i);
      if i <> 2 then begin
        (Linear_domains.spawn inside) ();
        check "and after a domain" (S.find 1 t = Some i)
      end;
      S.update 1 (fun v -> Option.map (fun v -> v + 1) v) t;
      check "it can be changed" (S.find 1 t = Some (i + 1)))
    ends;
  S.close t

(* A child of a process in which another thread has a part: that one is locked, the others can be used; and who waits
   for it in the child can be killed. Before there are domains. *)
let forked_meanwhile () =
  let t = S.create ~shards:64 () in
  for k = 0 to 999 do S.replace k k t done;
  (* Who has a part is refused it. *)
  let keys = List.init 1010 Fun.id and beside = ref [] in
  let is_beside k = match S.mem k t with _ -> false | exception L.Borrowed -> true in
  S.update 5 (fun v -> beside := List.filter is_beside keys; v) t;
  let others = List.filter (fun k -> not (List.mem k !beside)) keys in
  check "some are beside it" (List.mem 5 !beside && List.length others > 800);
  let inside = Atomic.make false and released = Atomic.make false in
  let hold v =
    Atomic.set inside true;
    while not (Atomic.get released) do Thread.delay 0.001 done;
    v
  in
  let holder = Thread.create (fun () -> S.update 5 hold t) () in
  while not (Atomic.get inside) do Thread.delay 0.001 done;
  let used =
    in_child (fun () ->
        ignore (Unix.alarm 60);
        let good k = S.find k t = if k < 1000 then Some k else None in
        let before = List.for_all good others in
        List.iter (fun k -> S.update k (fun _ -> Some (-1)) t) others;
        let after = List.for_all (fun k -> S.find k t = Some (-1)) others in
        if before && after && S.length t >= List.length others then 7 else 1)
  in
  check "the other parts" (used = Unix.WEXITED 7);
  let waits =
    in_child (fun () ->
        Sys.set_signal Sys.sigalrm Sys.Signal_default;
        ignore (Unix.alarm 1);
        ignore (S.find 5 t);
        1)
  in
  check "the part that is locked" (waits = Unix.WSIGNALED Sys.sigalrm);
  Atomic.set released true;
  Thread.join holder;
  check "the parent" (List.for_all (fun k -> S.find k t = if k < 1000 then Some k else None) keys);
  S.close t

let threads () =
  in_turn ();
  forked_meanwhile ();
  ended_inside ()

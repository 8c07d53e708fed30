(* SPDX-License-Identifier: MIT *)
(* Model-based random tester. Players (one per domain or thread) do random operations on roots; each keeps, in plain
   integers, what every root that it owns must hold. After each step some of them are checked, and all of them every so
   often.

     model --seed N --steps N [--domains N] [--threads N] [--lives N] [--idle-main] [--full-every N] [--no-restart]
     [--no-ephemerons] [--trace]

   With one domain and one thread, the same seed does the same again. *)

open Values
open Model_player
open Model_roots
open Model_step

let running : Par.domain list ref = ref []

let life label seed count =
  let one t () =
    let label = if t = 0 then label else Printf.sprintf "%s.%d" label t in
    let p = player label (seed + (t * 7919)) in
    if not (alone ()) then Printf.printf "player %s: seed %d\n%!" label p.seed;
    inherit_some p 500;
    play p (count / !threads);
    p
  in
  let others = List.init (!threads - 1) (fun t -> Thread.create (fun () -> bequeath (one (t + 1) ())) ()) in
  let p = one 0 () in
  List.iter Thread.join others;
  p

(* A domain plays, starts its successor, and ends with its roots left to whoever comes. *)
let rec dynasty d generation () =
  let p = life (Printf.sprintf "%d/%d" d generation) (mix ((!seed * 64) + (generation * 8) + d) land 0xffffff)
    (!steps / !lives) in
  if generation + 1 < !lives then start d (generation + 1);
  if generation land 1 = 0 then begin
    (* in the middle of a cycle, with young roots *)
    ignore (Gc.major_slice 10);
    for _ = 1 to 20 do create p done
  end;
  bequeath p

and start d generation =
  let domain = Par.spawn (dynasty d generation) in
  locked (fun () -> running := domain :: !running)

let rec join_all () =
  match
    locked (fun () ->
        match !running with
        | [] -> None
        | d :: rest ->
            running := rest;
            Some d)
  with
  | None -> ()
  | Some d ->
      Par.join d;
      join_all ()

let settle p =
  let rec go n =
    let r, _ = born () in
    if r <> Root.none then begin
      Root.delete r;
      go n
    end
    else if customs_alive () > 0 then
      if n = 0 then complain p (Printf.sprintf "%d custom blocks are never collected although no root is left"
                                (customs_alive ()))
      else begin
        Root.delete_elsewhere_done ();
        ignore (Root.pools_in_use ());
        Gc.full_major ();
        go (n - 1)
      end
  in
  go 30

let () =
  Arg.parse
    [ ("--seed", Arg.Set_int seed, "N"); ("--steps", Arg.Set_int steps, "N per domain");
      ("--domains", Arg.Set_int domains, "N");
      ("--threads", Arg.Set_int threads, "N per domain"); ("--lives", Arg.Set_int lives, "N domains after one another");
      ("--idle-main", Arg.Set idle_main, " the main domain does not use the library");
      ("--full-every", Arg.Set_int full_every, "N steps");
      ("--no-restart", Arg.Clear restarts, " no boxroot_teardown in mid-course");
      ("--no-ephemerons", Arg.Clear ephemerons,
       " no weak pointers: the runtime of OCaml 5 can fail on them when domains end");
      ("--trace", Arg.Set trace, " print each step") ]
    (fun s -> raise (Arg.Bad s))
    "model";
  if !seed = 0 then begin
    Random.self_init ();
    seed := 1 + Random.bits ()
  end;
  if (!domains > 1 || !lives > 1 || !idle_main) && not Par.multicore then Root.skip "needs OCaml 5";
  Printf.printf "model --seed %d --steps %d --domains %d --threads %d --lives %d%s --full-every %d\n%!" !seed !steps
    !domains !threads !lives
    (String.concat ""
       [ (if !idle_main then " --idle-main" else ""); (if !restarts then "" else " --no-restart");
         (if !ephemerons then "" else " --no-ephemerons") ])
    !full_every;
  for d = 1 to !domains - 1 do start d 0 done;
  if !idle_main then start 0 0 else bequeath (life "0/0" !seed !steps);
  join_all ();
  (* What is left must be whole, wherever it came from, and go when it is given up. *)
  let p = player "end" !seed in
  p.doing <- "final check";
  Array.iteri (fun i x -> match x with Some x -> mailbox.(i) <- None; legacy := x :: !legacy | None -> ()) mailbox;
  let count = List.length !legacy in
  let last f =
    while !legacy <> [] do
      inherit_some p room;
      f ();
      while p.n > 0 do delete p (p.n - 1) done
    done
  in
  let rest = !legacy in
  Gc.full_major ();
  let check_rest () =
    List.iter
      (fun x ->
        p.n <- 0;
        unpack p x;
        check p 0)
      rest;
    p.n <- 0
  in
  check_rest ();
  Root.compact ();
  check_rest ();
  last (fun () -> check_all p);
  settle p;
  Gc.full_major ();
  Gc.full_major ();
  let left = Root.pools_in_use () in
  Printf.printf "done: %d roots were left to the end, %d pools in use after\n%!" count left;
  if left > 64 + (8 * !domains * !lives) then
    complain p (Printf.sprintf "%d pools are in use although no root is left" left)

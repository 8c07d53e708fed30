(* SPDX-License-Identifier: MIT *)
(* OCaml starts tasks in Rust, and waits for promises; Rust completes them from its own threads. *)

let () =
  (* A hundred tasks at once, on three threads; none of them waits in a thread. *)
  let start = Unix.gettimeofday () in
  let promises =
    List.init 100 (fun i ->
        let promise, resolve = Promise.create () in
        Tasks.shout (Printf.sprintf "word %d" i) 50 resolve;
        promise)
  in
  Gc.compact ();
  List.iteri (fun i p -> assert (Promise.await p = Printf.sprintf "WORD %d" i)) promises;
  let time = Unix.gettimeofday () -. start in
  assert (time < 4.0);
  (* Values of a type that Rust does not know, through tasks that hold them across pauses. *)
  let promise, resolve = Promise.create () in
  let seen = ref [] in
  Tasks.relay (List.init 20 (fun i -> [ Some (float_of_int i) ])) (fun x ->
      seen := x :: !seen;
      if x = [ Some 10. ] then raise Exit (* printed by Rust; the task goes on *)
      else if x = [ Some 19. ] then resolve (List.length !seen));
  for _ = 1 to 20 do Gc.full_major (); Thread.yield () done;
  assert (Promise.await promise = 20);
  Printf.printf "100 tasks of 50 ms, and 20 callbacks: %.0f ms\n" (1000. *. time)

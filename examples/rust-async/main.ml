(* SPDX-License-Identifier: MIT *)
(* OCaml starts tasks in Rust, and waits for promises; Rust completes them from its own threads. *)

let () =
  (* A hundred tasks at once, on three threads; none of them waits in a thread. *)
  let promises =
    List.init 100 (fun i ->
        let promise, resolve = Promise.create () in
        Tasks.shout (Printf.sprintf "word %d" i) 50 resolve;
        promise)
  in
  while Tasks.sleepers () < 100 do Thread.yield () done;
  Gc.compact ();
  Tasks.pass 49;
  assert (Tasks.sleepers () = 100);
  Tasks.pass 1;
  List.iteri (fun i p -> assert (Promise.await p = Printf.sprintf "WORD %d" i)) promises;
  (* Values of a type that Rust does not know, through tasks that hold them across pauses. *)
  let promise, resolve = Promise.create () in
  let seen = ref [] in
  Tasks.relay (List.init 20 (fun i -> [ Some (float_of_int i) ])) (fun x ->
      seen := x :: !seen;
      if x = [ Some 10. ] then raise Exit (* printed by Rust; the task goes on *)
      else if x = [ Some 19. ] then resolve (List.length !seen));
  while not (Promise.is_completed promise) do Tasks.pass 1; Gc.full_major (); Thread.yield () done;
  assert (Promise.await promise = 20);
  print_endline "100 tasks of 50 ms, and 20 callbacks"

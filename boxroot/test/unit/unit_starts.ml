(* SPDX-License-Identifier: MIT *)
(* Whoever comes first: domains, threads, threads of C; fork. *)

open Root
open Unit_common

let use what =
  let roots = make 700 in
  collect ();
  check what roots;
  Array.iteri (fun i r -> if i land 1 = 0 then (delete r; roots.(i) <- none)) roots;
  roots

let first_is_a_domain () =
  let roots = ref [||] in
  Par.join (Par.spawn (fun () -> roots := use "in the first domain"));
  collect ();
  check "of a domain that ended" !roots;
  let mine = use "in the main domain" in
  delete_all mine;
  delete_all !roots

let first_is_a_thread () =
  let roots = ref [||] in
  let other = Thread.create (fun () -> for _ = 1 to 50 do churn (); Thread.yield () done) () in
  Thread.join (Thread.create (fun () -> roots := use "in the first thread") ());
  collect ();
  check "of a thread that ended" !roots;
  let mine = use "in the main thread" in
  Thread.join other;
  delete_all mine;
  delete_all !roots

let first_is_a_thread_of_c () =
  ignore (Thread.create ignore ());
  registered_thread 1;
  let mine = use "in the main thread" in
  registered_thread 3;
  check "of the main thread" mine;
  delete_all mine

let threads_before_first_use () =
  (* threads that wait, run and sleep while the library is being set up *)
  let go = Atomic.make false and begun = Atomic.make 0 and bad = Atomic.make 0 in
  let worker i () =
    while not (Atomic.get go) do
      if i land 1 = 0 then Thread.yield () else nap 100
    done;
    let mine = ref [||] in
    for turn = 1 to 10 do
      if turn = 2 then Atomic.incr begun;
      delete_all !mine;
      mine := make 50;
      if i land 2 = 0 then nap 10 else Thread.yield ();
      minor ();
      Array.iteri (fun i r -> if (get r : string) <> text i then Atomic.incr bad) !mine
    done;
    delete_all !mine
  in
  let ts = List.init 6 (fun i -> Thread.create (worker i) ()) in
  Thread.yield ();
  let mine = make 10 in
  Atomic.set go true;
  while Atomic.get begun < 6 do nap 100 done;
  ignore (eperm_blocking none);
  ignore (eperm_thread none);
  List.iter Thread.join ts;
  if Atomic.get bad > 0 then fail "%d roots of threads lost their values" (Atomic.get bad);
  check "main" mine;
  ignore (eperm_blocking none)

let registered () =
  ignore (Thread.create ignore ());
  let mine = make 100 in
  let stop = Atomic.make false in
  let t = Thread.create (fun () -> while not (Atomic.get stop) do delete_all (make 100); Thread.yield () done) () in
  registered_thread (scale 100);
  Atomic.set stop true;
  Thread.join t;
  Gc.full_major ();
  check "main" mine

let in_child f =
  flush_all ();
  match Unix.fork () with
  | 0 ->
      (try f ()
       with e ->
         prerr_endline ("in the child: " ^ Printexc.to_string e);
         exit_now 1);
      exit_now 0
  | pid -> (
      match snd (Unix.waitpid [] pid) with
      | Unix.WEXITED 0 -> ()
      | Unix.WEXITED n -> fail "a forked process ended with code %d" n
      | Unix.WSIGNALED n | Unix.WSTOPPED n -> fail "a forked process ended with signal %d" n)

let fork () =
  let roots = make 3000 in
  minor ();
  ignore (Gc.major_slice 20);
  in_child (fun () ->
      check "in the child" roots;
      Array.iteri (fun i r -> if i land 1 = 0 then (delete r; roots.(i) <- none)) roots;
      collect ();
      check "in the child" roots;
      let more = use "in the child" in
      (* TSan takes the mutexes that the runtime creates again in the child for those of the parent *)
      if Par.multicore && not (is_tsan ()) then Par.join (Par.spawn (fun () ->
        delete_all (use "in a domain of the child")));
      delete_all more;
      delete_all roots;
      teardown ());
  collect ();
  check "in the parent" roots;
  delete_all roots

let fork_while_deleting () =
  let mine = make 1000 in
  for round = 1 to scale 20 do
    start_deleting 20_000;
    if round land 1 = 0 then nap 10;
    in_child (fun () ->
        (* the thread that deletes is not here; it may have been in the middle of a deletion *)
        Gc.full_major ();
        let more = use "in the child" in
        Gc.full_major ();
        check "in the child" more;
        check "in the child" mine);
    stop_deleting ()
  done;
  Gc.full_major ();
  check "in the parent" mine

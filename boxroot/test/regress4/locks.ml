(* SPDX-License-Identifier: MIT *)
(* OCaml 4.14: who holds the lock? Everything that gets past the library's hooks on blocking sections: other libraries
   that replace them, yields, the ends of threads. *)

open Root

external remember : unit -> unit = "l_remember" [@@noalloc]
external replace : int -> unit = "l_replace" [@@noalloc]
external replacements : unit -> int = "l_replacements" [@@noalloc]
external wrap : int -> unit = "l_wrap" [@@noalloc]
external unwrap : int -> unit = "l_unwrap" [@@noalloc]
external fill : int -> unit = "l_fill" [@@noalloc]
external one_processor : unit -> unit = "l_one_processor" [@@noalloc]
external delete_all_nolock : Root.t array -> unit = "l_delete_all_nolock"
external die_with : how:int -> nap:int -> Root.t array -> unit = "l_die_with"
external die_creating : how:int -> int -> unit = "l_die_creating"
external created : unit -> int = "l_created" [@@noalloc]
external dead : unit -> int = "l_dead" [@@noalloc]
external registered : mode:int -> int = "l_registered"
external exhaust_keys : unit -> int = "l_exhaust_keys" [@@noalloc]
external limit_files : bool -> unit = "l_limit_files" [@@noalloc]
external remote_deletions : unit -> int = "l_remote_deletions" [@@noalloc]

(* systhreads' hooks are in now, and nobody else's, also in the tests of which early.ml was the first user of the
   library *)
let () = remember ()

let text i = string_of_int i
(* Pools of few roots make each of them expensive. *)
let many n = if pool_capacity () < 1000 then n / 20 else n

let make n = Array.init n (fun i -> create_or_fail (text i))
let delete_all = Array.iter delete

let check what roots =
  Array.iteri (fun i r -> if get r <> text i then fail "%s: root %d holds %S" what i (get r)) roots

(* No two roots are the same cell, and each holds its value. *)
let check_distinct what roots =
  check what roots;
  let seen = Hashtbl.create (Array.length roots) in
  Array.iteri
    (fun i (r : Root.t) ->
      if Hashtbl.mem seen r then fail "%s: root %d has been handed out twice" what i;
      Hashtbl.add seen r ())
    roots

(* Ways to make the library look at the hooks. OCaml 4.14 makes no minor collection when nothing was allocated. *)
let by_collection () =
  ignore (Sys.opaque_identity (ref 0));
  Gc.minor ()
let by_setup () = if not (setup ()) then fail "boxroot_setup failed"
let by_creation () = delete_all (make (3 * pool_capacity ()))

(* Creations and deletions until `until ()`, by the holder of the lock. *)
let churn what until =
  let n = ref 0 in
  while not (until ()) || !n < 3 do
    incr n;
    let roots = make 5000 in
    if !n land 7 = 0 then by_collection ();
    if !n land 63 = 0 then Gc.full_major ();
    if !n land 15 = 0 then check_distinct what roots else check what roots;
    delete_all roots
  done

let expect_no_lock () = ignore (eperm_blocking none)

(* Nearly all roots are deleted: a slot that has been lost keeps its pool in use. In the checked build those deleted
   last do too, while they are in quarantine: others take their place there first, from few pools. *)
let expect_empty () =
  if is_checked () then
    for _ = 1 to 2 do delete_all (Array.init 5000 (fun i -> create_or_fail i)); Gc.full_major () done;
  Gc.full_major ();
  Gc.full_major ();
  let n = pools_in_use () in
  if n > 10 + (100 / pool_capacity ()) then fail "%d pools are in use when all roots have been deleted" n

(* --- hooks -------------------------------------------------------------------------------------------------------- *)

let noticing = [ by_collection; by_setup; by_creation ]

(* Wrapped, restored, wrapped, restored; something that makes the library look at the hooks after each step, or not. *)
let wrapped_and_restored () =
  ignore (Thread.create ignore ());
  let roots = make 100 in
  List.iter
    (fun after_wrap ->
      List.iter
        (fun after_unwrap ->
          for _ = 1 to 5 do
            wrap 0;
            ignore (make 10);
            after_wrap ();
            expect_no_lock ();
            unwrap 0;
            after_unwrap ();
            expect_no_lock ();
            nap 1
          done)
        (noticing @ [ ignore ]))
    (noticing @ [ ignore ]);
  check "after the hooks were wrapped and restored" roots

(* Two such libraries that do not end in the order in which they began. *)
let wrapped_by_two () =
  ignore (Thread.create ignore ());
  let roots = make 100 in
  List.iter
    (fun step ->
      for _ = 1 to 3 do
        List.iter
          (fun (act, who) ->
            act who;
            step ();
            nap 1;
            expect_no_lock ())
          [ (wrap, 0); (wrap, 1); (unwrap, 0); (unwrap, 1) ];
        (* that leaves hooks in of which their library believes that they are out *)
        replace 0;
        step ()
      done)
    noticing;
  check "after the hooks were wrapped by two" roots

(* Libraries that do not chain, each with functions of its own. After each a thread in a blocking section must not
   count as holder. *)
let replaced_often () =
  ignore (Thread.create ignore ());
  let roots = make 100 in
  for i = 0 to min 24 (replacements ()) - 1 do
    replace i;
    List.iter (fun notice -> if i mod 3 <> 0 || notice == by_setup then notice ()) noticing;
    expect_no_lock ();
    ignore (eperm_thread none);
    nap 10
  done;
  check "after many replacements" roots

(* A thread in a blocking section deletes roots; the hooks were replaced while it held the lock. Meanwhile another one
   finds that out, and uses the library. Between `prepare` and the blocking section nothing may make the first thread
   look at the hooks. *)
let beside_deletions ~prepare ~notice doomed =
  let running = Atomic.make true and ready = Atomic.make false in
  let other =
    Thread.create
      (fun () ->
        while not (Atomic.get ready) do Thread.yield () done;
        notice ();
        churn "beside deletions without the lock" (fun () -> not (Atomic.get running)))
      ()
  in
  prepare ();
  Atomic.set ready true;
  delete_all_nolock doomed;
  Atomic.set running false;
  Thread.join other

let race ~replace ~notice ~rounds =
  for round = 1 to scale rounds do
    let doomed = make (many 300_000) in
    beside_deletions ~notice doomed ~prepare:(fun () ->
        if round land 1 = 0 then nap 10;
        delete (create_or_fail 1);
        replace round)
  done;
  expect_empty ()

let replaced_under_deletions notice () =
  ignore (Thread.create ignore ());
  race ~replace:(fun _ -> replace 0) ~notice ~rounds:20

(* With one processor the thread is interrupted in the middle of a deletion, and the other one must not go on before
   that is done. *)
let replaced_on_one_processor () =
  one_processor ();
  ignore (Thread.create ignore ());
  for _ = 1 to scale 30 do
    let all = make (2 * many 300_000) in
    Array.iteri (fun i r -> if i land 1 = 0 then delete r) all;
    let doomed = Array.init (many 300_000) (fun i -> all.((2 * i) + 1)) in
    Gc.minor ();
    beside_deletions doomed
      ~notice:(fun () ->
        by_setup ();
        fill 200_000)
      ~prepare:(fun () ->
        delete (create_or_fail 1);
        replace 0)
  done;
  expect_empty ()

(* More of them than the library can be in front of. *)
let replaced_beyond_measure () =
  ignore (Thread.create ignore ());
  for i = 0 to replacements () - 1 do
    replace i;
    by_collection ()
  done;
  race ~replace:(fun i -> replace (i mod replacements ())) ~notice:by_collection ~rounds:20

(* early.ml made roots before systhreads replaced the hooks; this thread has held the lock ever since, and has not
   looked at the hooks. *)
let late_systhreads notice () =
  beside_deletions ~prepare:ignore ~notice Early.doomed;
  churn "afterwards" (fun () -> true);
  check "made before systhreads" Early.roots;
  expect_empty ();
  expect_no_lock ()

(* It happens once in a process. *)
let repeated name () =
  for _ = 1 to scale 10 do
    match Unix.system (Filename.quote_command Sys.executable_name [ name ]) with
    | Unix.WEXITED 0 -> ()
    | _ -> fail "%s %s failed" Sys.executable_name name
  done

(* --- yields ------------------------------------------------------------------------------------------------------- *)

let yields () =
  let kept = make 100 in
  let worker k =
    for i = 1 to scale 3000 do
      let roots = make 50 in
      Thread.yield ();
      check "after a yield" roots;
      if (i + k) land 3 = 0 then Array.iter delete_nolock roots else delete_all roots;
      if i land 255 = 0 then Gc.minor ()
    done
  in
  let threads = List.init 3 (fun k -> Thread.create worker k) in
  worker 7;
  List.iter Thread.join threads;
  check "after yields" kept;
  expect_no_lock ();
  ignore (eperm_thread none)

let yielding_until ?(before = ignore) stop =
  let rec go () = if not (Atomic.get stop) then (delete_all (make 100); Thread.yield (); go ()) in
  Thread.create (fun () -> before (); go ()) ()

(* After a yield the inline paths come back. *)
let yields_cost () =
  if not (is_rival () || is_checked ()) then begin
    let stop = Atomic.make false in
    let other = yielding_until stop in
    let before = remote_deletions () in
    let n = 200 in
    for _ = 1 to n do
      Thread.yield ();
      delete_all (make 1000)
    done;
    let remote = remote_deletions () - before in
    Atomic.set stop true;
    Thread.join other;
    if remote > n * 300 then fail "%d deletions of %d took the path for other threads" remote (n * 1000)
  end

let yields_and_fork () =
  let stop = Atomic.make false in
  (* The runtime's threads allocate when they start, and AddressSanitizer's allocator is not prepared for a fork beside
     that: a child would wait for a lock for ever. That they have started is seen when this thread goes on beside one
     that does not yield: the thread of ticks has interrupted it. *)
  let there = Atomic.make false and interrupted = Atomic.make false in
  let spin () =
    Atomic.set there true;
    while not (Atomic.get interrupted) do ignore (Sys.opaque_identity (ref 0)) done
  in
  let other = yielding_until ~before:spin stop in
  while not (Atomic.get there) do Thread.yield () done;
  Atomic.set interrupted true;
  let kept = make 1000 in
  for _ = 1 to scale 50 do
    Thread.yield ();
    match Unix.fork () with
    | 0 ->
        Thread.join (Thread.create (fun () -> churn "in the child's thread" (fun () -> true)) ());
        churn "in the child" (fun () -> true);
        check "in the child" kept;
        exit_now 0
    | pid -> ( match Unix.waitpid [] pid with _, Unix.WEXITED 0 -> () | _ -> fail "the child failed")
  done;
  Atomic.set stop true;
  Thread.join other

(* --- the ends of threads ------------------------------------------------------------------------------------------ *)

(* Destructors of thread-local data delete roots after the thread has released the lock. how: 0: a destructor of a
   pthread key, 1: as C++ and Rust register them. *)
let thread_end ~how ~exits ~nap_ms () =
  ignore (Thread.create ignore ());
  let ended = dead () in
  let rounds = scale 40 in
  for round = 1 to rounds do
    let doomed = make 50_000 in
    let t =
      Thread.create
        (fun () ->
          if round land 1 = 0 then Gc.minor ();
          die_with ~how ~nap:nap_ms doomed;
          delete (create_or_fail 1);
          if exits then Thread.exit ())
        ()
    in
    Thread.join t;
    churn "beside the destructors of a thread" (fun () -> dead () >= ended + round)
  done;
  churn "in the end" (fun () -> true);
  expect_empty ()

(* They try to create roots. `use`: what the thread did before; `exits`: it ended by Thread.exit. *)
let thread_end_creates ~how ~exits ~use () =
  ignore (Thread.create ignore ());
  delete (create_or_fail (text 0));
  let rounds = scale 200 in
  let rec deep n = if n = 0 then use () else begin deep (n - 1); ignore (Sys.opaque_identity n) end in
  for round = 1 to rounds do
    let started = Atomic.make false in
    let t =
      Thread.create
        (fun () ->
          Atomic.set started true;
          if round land 1 = 0 then deep (round land 31);
          die_creating ~how 300;
          if round land 2 = 0 then deep (round land 7);
          if exits then Thread.exit ())
        ()
    in
    if round land 4 = 0 then Thread.join t else churn "beside a thread that ends" (fun () -> Atomic.get started);
    churn "beside the destructors of a thread" (fun () -> dead () >= round)
  done;
  churn "in the end" (fun () -> true);
  if created () > 0 then fail "%d roots were created in destructors of %d threads" (created ()) rounds;
  expect_empty ()

let creates_and_deletes () = delete_all (make 200)
let blocks_too () = creates_and_deletes (); nap 1; creates_and_deletes ()

let many_threads () =
  for _ = 1 to scale 2000 do
    Thread.join (Thread.create (fun () -> delete_all (make 10)) ())
  done

(* --- creation where the truth is hard to find --------------------------------------------------------------------- *)

let check_registered ~mode () =
  let kept = if mode <> 0 then make 10 else [||] in
  ignore (Thread.create ignore ());
  if mode = 2 then replace 0;
  (match registered ~mode with 0 -> () | n -> fail "step %d failed on a registered thread" n);
  delete_all kept;
  churn "afterwards" (fun () -> true);
  expect_no_lock ()

let no_keys () =
  ignore (exhaust_keys ());
  ignore (Thread.create ignore ());
  let t = Thread.create (fun () -> delete_all (make 1000)) () in
  Thread.join t;
  churn "without keys" (fun () -> true);
  thread_end ~how:1 ~exits:false ~nap_ms:0 ();
  expect_no_lock ()

let no_files () =
  ignore (Thread.create ignore ());
  let yielding = Thread.create (fun () -> for _ = 1 to 100 do Thread.yield () done) () in
  limit_files true;
  let roots = make 100 in
  replace 0;
  nap 10;
  let more = make 100 in
  Thread.join yielding;
  limit_files false;
  check "made without file descriptors" roots;
  check "made without file descriptors" more;
  expect_no_lock ()

let once =
  [ ("late-collection", late_systhreads by_collection); ("late-setup", late_systhreads by_setup);
    ("late-create", late_systhreads by_creation) ]

let () =
  let listed = Array.length Sys.argv = 2 && Sys.argv.(1) = "--list" in
  Root.main
    ((if listed then [] else once)
    @ [ ("wrapped-and-restored", wrapped_and_restored); ("wrapped-by-two", wrapped_by_two);
      ("replaced-often", replaced_often);
      ("replaced-under-deletions", replaced_under_deletions by_collection);
      ("replaced-under-deletions-setup", replaced_under_deletions by_setup);
      ("replaced-under-deletions-create", replaced_under_deletions by_creation);
      ("replaced-on-one-processor", replaced_on_one_processor);
      ("replaced-beyond-measure", replaced_beyond_measure);
      ("late-systhreads", repeated "late-collection"); ("late-systhreads-setup", repeated "late-setup");
      ("late-systhreads-create", repeated "late-create"); ("yields", yields); ("yields-cost", yields_cost);
      ("yields-and-fork", yields_and_fork); ("thread-end-key", thread_end ~how:0 ~exits:false ~nap_ms:0);
      ("thread-end-cxx", thread_end ~how:1 ~exits:false ~nap_ms:0);
      ("thread-end-cxx-exit", thread_end ~how:1 ~exits:true ~nap_ms:0);
      ("thread-end-creates-key", thread_end_creates ~how:0 ~exits:false ~use:creates_and_deletes);
      ("thread-end-creates-cxx", thread_end_creates ~how:1 ~exits:false ~use:creates_and_deletes);
      ("thread-end-creates-blocking", thread_end_creates ~how:1 ~exits:false ~use:blocks_too);
      ("thread-end-creates-unused", thread_end_creates ~how:1 ~exits:false ~use:ignore);
      ("thread-end-creates-exit", thread_end_creates ~how:1 ~exits:true ~use:creates_and_deletes);
      ("thread-end-creates-exit-key", thread_end_creates ~how:0 ~exits:true ~use:ignore);
      ("thread-end-slow", thread_end ~how:1 ~exits:false ~nap_ms:2); ("many-threads", many_threads);
      ("registered-first-use", check_registered ~mode:0); ("registered", check_registered ~mode:1);
      ("registered-hooks-replaced", check_registered ~mode:2); ("no-keys", no_keys); ("no-files", no_files) ])

(* SPDX-License-Identifier: MIT *)
(* What the checked build promises: misuse is found although the slot could have been used again, the message names the
   places, deleted slots keep nothing alive and are used again at last, and the roots that are left are counted and
   reported. *)

open Root

external quarantine : unit -> int = "k_quarantine"
external report : unit -> int = "k_report"
external write : Root.t -> 'a -> unit = "k_write" [@@noalloc]
external reads_odd : Root.t -> bool = "k_read" [@@noalloc]
external create_here : 'a -> Root.t = "k_create" (* creations.c:101 *)
external create_there : 'a -> Root.t = "k_create_elsewhere" (* creations.c:102 *)
external create_by_pointer : 'a -> Root.t = "k_create_by_pointer"
external delete_here : Root.t -> unit = "k_delete" (* deletions.c:201 *)
external delete_there : Root.t -> unit = "k_delete_elsewhere" (* deletions.c:202 *)
external delete_thread : Root.t -> unit = "k_delete_thread" (* deletions.c:203 *)
external delete_twice_at_once : Root.t -> unit = "k_delete_twice_at_once"
external delete_by_pointer : Root.t -> unit = "k_delete_by_pointer"
type domain (* a handle, as an immediate *)
external domain_here : unit -> domain = "k_domain_here"
external create_in : domain -> 'a -> Root.t = "k_create_in" (* creations.c:103 *)
external create_in_thread : domain -> unit = "k_create_in_thread" (* creations.c:104 *)
external delete_in : domain -> Root.t -> unit = "k_delete_in" (* deletions.c:204 *)
external get_here : Root.t -> 'a = "k_get" (* uses.c:301 *)
external get_ref_here : Root.t -> int = "k_get_ref" (* uses.c:302 *)
external modify_here : Root.t -> 'a -> Root.t = "k_modify" (* uses.c:303 *)
external modify_nested : Root.t -> Root.t -> Root.t = "k_modify_nested" (* uses.c:305, with a get by pointer *)
external modify_void : Root.t -> 'a -> bool = "k_modify_void"
external get_thread : Root.t -> unit = "k_get_thread" (* uses.c:304 *)
external get_blocking : Root.t -> unit = "k_get_blocking" (* uses.c:304 *)
external end_at_exit : 'a -> unit = "k_end_at_exit"
external cxx_keep : 'a -> unit = "k_cxx_keep"
external cxx_create : 'a -> Root.t = "k_cxx_create" (* classes.cpp:401 *)
external cxx_get : Root.t -> 'a = "k_cxx_get" (* classes.cpp:402 *)
external cxx_delete : Root.t -> unit = "k_cxx_delete"

let text i = "value " ^ string_of_int i
let make n = Array.init n (fun i -> create_or_fail (text i))

let in_domain f =
  let result = ref None in
  Par.join (Par.spawn (fun () -> result := Some (f ())));
  match !result with Some x -> x | None -> fail "a domain gave no result"

(* --- misuse, with the slot free to be used again, and the places ------------------------------------------------ *)

(* Many roots are created, fewer are deleted than slots are kept back. *)
let go_on () =
  ignore (make 3000);
  let roots = make 3000 in
  for i = 0 to min 1000 (quarantine () - 1) - 1 do delete roots.(i) done;
  Gc.minor ();
  ignore (make 3000)

let gone delete () =
  let r = create_here (text 0) in
  delete r;
  go_on ();
  r

let old delete () =
  let r = create_here (text 0) in
  ignore (make 3000);
  Gc.full_major ();
  delete r;
  go_on ();
  r

(* moved by a modification: the root was old, the value is young *)
let moved () =
  let r = create_here (text 0) in
  Gc.full_major ();
  let moved = modify_here r (text 1) in
  if moved = r then fail "the root did not move";
  if not (String.equal (get moved) (text 1)) then fail "the value is another";
  r

let of_ended_domain () =
  let r = in_domain (fun () -> let r = create_here (text 0) in ignore (make 100); r) in
  Gc.full_major ();
  delete_here r;
  go_on ();
  r

(* Handles on the domain: what they create and delete is in the account like any other. *)
let by_handle delete () =
  let d = domain_here () in
  let r = create_in d (text 0) in
  delete d r;
  r

let at_101 = "created at creations.c:101"
let misuses =
  [ ("double-delete", gone delete_here, delete_there,
       [ "boxroot_delete: double delete"; "called at deletions.c:202"; at_101; "deleted at deletions.c:201" ]);
    ("double-delete-old", old delete_here, delete_there,
       [ "double delete"; "called at deletions.c:202"; at_101; "deleted at deletions.c:201" ]);
    ("double-delete-by-thread", gone delete_here, delete_thread,
       [ "double delete"; "called at deletions.c:203"; at_101; "deleted at deletions.c:201" ]);
    ("double-delete-of-thread", gone delete_thread, delete_here,
       [ "double delete"; "called at deletions.c:201"; at_101; "deleted at deletions.c:203" ]);
    ("double-delete-at-once", (fun () -> create_here 0), delete_twice_at_once,
       [ "double delete"; "called at deletions.c:203"; at_101 ]);
    ("get", gone delete_here, get_here,
       [ "boxroot_get: use after delete"; "called at uses.c:301"; at_101; "deleted at deletions.c:201" ]);
    ("get-old", old delete_thread, get_here,
       [ "boxroot_get: use after delete"; "called at uses.c:301"; at_101; "deleted at deletions.c:203" ]);
    ("get-ref", gone delete_here, (fun r -> ignore (get_ref_here r)),
       [ "boxroot_get_ref: use after delete"; "called at uses.c:302"; at_101 ]);
    ("get-on-thread", (fun () -> create_here 0), get_thread,
       [ "boxroot_get: use without the domain lock"; "called at uses.c:304"; at_101 ]);
    ("get-in-blocking-section", (fun () -> create_here 0), get_blocking,
       [ "boxroot_get: use without the domain lock"; "called at uses.c:304"; at_101 ]);
    ("modify", gone delete_here, (fun r -> ignore (modify_here r 0)),
       [ "boxroot_modify: use after delete"; "called at uses.c:303"; at_101 ]);
    ("nested-outer", gone delete_here, (fun r -> ignore (modify_nested r (create_there 0))),
       [ "boxroot_modify: use after delete"; "called at uses.c:305"; at_101 ]);
    ("nested-inner", gone delete_here, (fun r -> ignore (modify_nested (create_there 0) r)),
       [ "boxroot_get: use after delete"; "called at k_modify_nested in "; at_101 ]);
    ("moved-delete", moved, delete_here,
       [ "double delete"; "called at deletions.c:201"; at_101; "deleted at uses.c:303" ]);
    ("moved-get", moved, get_here, [ "use after delete"; "called at uses.c:301"; at_101; "deleted at uses.c:303" ]);
    ("by-pointer", (fun () -> let r = create_by_pointer 0 in delete_by_pointer r; r), delete_by_pointer,
     [ "double delete"; "called at k_delete_by_pointer in "; "created at k_create_by_pointer in ";
       "deleted at k_delete_by_pointer in " ]);
    ("handle-double-delete", by_handle delete_in, (fun r -> delete_in (domain_here ()) r),
       [ "boxroot_delete_in: double delete"; "called at deletions.c:204"; "created at creations.c:103";
         "deleted at deletions.c:204" ]);
    ("handle-get", by_handle (fun d r -> ignore d; delete_here r), get_here,
       [ "use after delete"; "called at uses.c:301"; "created at creations.c:103"; "deleted at deletions.c:201" ]);
    ("write", gone delete_here,
     (fun r -> write r 0; for i = 0 to quarantine () do delete (create_or_fail i) done; Gc.minor (); Gc.minor ()),
     [ "write after delete"; at_101; "deleted at deletions.c:201" ]) ]

let domain_misuses =
  [ ("handle-without-lock", (fun () -> none), (fun _ -> create_in_thread (domain_here ())),
       [ "boxroot_create_in: wrong handle"; "called at creations.c:104" ]);
    ("handle-of-another-domain", (fun () -> create_here 0),
       (fun r -> let d = domain_here () in in_domain (fun () -> delete_in d r)),
       [ "boxroot_delete_in: wrong handle"; "called at deletions.c:204" ]);
    ("handle-of-ended-domain", (fun () -> none), (fun _ -> ignore (create_in (in_domain domain_here) 0)),
       [ "boxroot_create_in: wrong handle"; "called at creations.c:103" ]);
    ("double-delete-ended-domain", of_ended_domain, delete_there,
       [ "double delete"; "called at deletions.c:202"; at_101; "deleted at deletions.c:201" ]);
    ("double-delete-by-domain", gone delete_here, (fun r -> in_domain (fun () -> delete_there r)),
       [ "double delete"; "called at deletions.c:202"; at_101 ]);
    ("double-delete-of-domain", gone (fun r -> in_domain (fun () -> delete_there r)), delete_here,
       [ "double delete"; at_101; "deleted at deletions.c:202" ]) ]

let cxx_misuses =
  [ ("cplusplus", (fun () -> let r = cxx_create 0 in cxx_delete r; r), cxx_get,
     [ "use after delete"; "called at classes.cpp:402"; "created at classes.cpp:401"; "deleted at k_cxx_delete in " ]) ]

let deleted_and_torn_down () =
  let r = create_here 0 in
  delete_here r;
  teardown ();
  r

(* A root from before a teardown stays void, also when the library is set up again. *)
let void_misuses =
  let before_teardown use () =
    let roots = Array.init 3000 (fun i -> create_here (text i)) in
    teardown ();
    if not (setup ()) then fail "set-up";
    use roots.(2990)
  in
  [ ("double-delete-torn-down", deleted_and_torn_down, delete_there,
       [ "double delete"; "called at deletions.c:202"; at_101; "deleted at deletions.c:201" ]);
    ("void-delete", before_teardown (fun r -> r), delete_here,
       [ "boxroot_delete: use after teardown"; at_101; "called at deletions.c:201" ]);
    ("void-get", before_teardown (fun r -> ignore (make 10); r), get_here,
       [ "boxroot_get: use after teardown"; at_101; "called at uses.c:301" ]) ]


(* Until the library is set up again what was torn down may be used; what was deleted before may not. *)
let void_until_set_up () =
  for round = 1 to 3 do
    let roots = Array.init 3000 (fun i -> create_here (text i)) in
    if round = 2 then Gc.full_major ();
    teardown ();
    for _ = 1 to 2 do
      Array.iter (fun r -> ignore (Sys.opaque_identity (get_here r : Obj.t))) roots;
      Array.iter (fun r -> if get_ref_here r = 0 then fail "no address") roots;
      Array.iter (fun r -> if modify_void r 0 then fail "boxroot_modify succeeded after teardown") roots;
      Array.iteri (fun i r -> if i land 1 = 0 then delete_here r else delete_thread r) roots
    done;
    if report () <> 0 then fail "roots are live after teardown";
    if not (setup ()) then fail "set-up"
  done

let has_cxx () =
  let r = cxx_create 0 in
  r <> none && (delete r; true)

let all_misuses = misuses @ (if Par.multicore then domain_misuses else []) @ cxx_misuses @ void_misuses
let misuse_tests =
  List.map
    (fun (name, _, _, parts) ->
      ( "misuse-" ^ name,
        fun () ->
          if name = "cplusplus" && not (has_cxx ()) then skip "no C++ compiler";
          Process.expect_fault ("do-" ^ name) parts ))
    all_misuses

let misuse_doers = List.map (fun (name, prepare, use, _) -> ("do-" ^ name, fun () -> use (prepare ()))) all_misuses

(* --- the quarantine --------------------------------------------------------------------------------------------- *)

let ways =
  [ delete; delete_nolock; delete_thread ] @ if Par.multicore then [ (fun r -> in_domain (fun () -> delete r)) ] else []

(* A deleted slot is not handed out while fewer deletions than the quarantine holds have followed. *)
let kept_back () =
  List.iter
    (fun way ->
      let r = create_or_fail (text 0) in
      way r;
      let n = ref 0 in
      while !n < quarantine () - 1 do
        let again = create_or_fail (text !n) in
        if again = r then fail "the slot was handed out after %d deletions" !n;
        way again;
        incr n
      done;
      Gc.minor ();
      for i = 1 to 10 * pool_capacity () do
        if create_or_fail (text i) = r then fail "the slot was handed out after %d deletions" !n
      done)
    (if quarantine () > 100 then [ delete; delete_thread ] else ways)

(* It is handed out at last: pools do not become more and more. *)
let used_again () =
  let slots = quarantine () + (2 * pool_capacity ()) in
  let rounds = (10 * slots) + 1000 in
  List.iter
    (fun way ->
      let start = pools_in_use () in
      for i = 1 to rounds do
        way (create_or_fail (text i));
        if i land 63 = 0 then Gc.minor ()
      done;
      let more = pools_in_use () - start in
      if more > (2 * quarantine () / pool_capacity ()) + 200 then
        fail "%d pools more after %d creations and deletions" more rounds)
    [ delete; delete_nolock ]

(* Its value is let go, in each way of deletion, whether the root was old or young, and also in the middle of
   marking. *)
let keeps_nothing_alive () =
  List.iteri
    (fun w way ->
      for slices = 0 to 5 do
        let n = min 400 (quarantine () - 2) in
        let finalised = ref 0 in
        let value i =
          let v = Sys.opaque_identity (ref i) in
          Gc.finalise (fun _ -> incr finalised) v;
          v
        in
        let roots = Array.init n (fun i -> create_or_fail (value i)) in
        let others = make 3000 in
        if slices > 0 then Gc.full_major ();
        for _ = 2 to slices do ignore (Gc.major_slice 1000) done;
        Array.iter way (if Par.multicore && w = 3 then Array.sub roots 0 (min n 20) else roots);
        let deleted = if Par.multicore && w = 3 then min n 20 else n in
        for _ = 1 to 4 do Gc.full_major () done;
        if !finalised <> deleted then fail "way %d, %d slices: %d of %d values were let go" w slices !finalised deleted;
        for i = 0 to deleted - 1 do if not (reads_odd roots.(i)) then
          fail "way %d: a deleted root holds a pointer" w done;
        Array.iteri (fun i r -> if not (String.equal (get r) (text i)) then fail "root %d lost its value" i) others;
        Array.iter delete others;
        for i = deleted to n - 1 do delete roots.(i) done
      done)
    ways

(* Slots in quarantine whose pools change their domain, or whose domain ends while another thread takes them out. *)
let across_domains () =
  if not Par.multicore then skip "needs OCaml 5";
  let n = max 50 (2 * quarantine ()) in
  let peak = ref 0 in
  for round = 1 to scale 60 do
    let left = in_domain (fun () ->
      let roots = make n in
      for i = 0 to (n / 2) - 1 do delete roots.(i) done;
      if round land 1 = 0 then Gc.minor ();
      Array.sub roots (n / 2) (n - (n / 2)))
    in
    let other = Par.spawn (fun () -> Array.iter delete (make n)) in
    let mine = make n in
    Array.iteri (fun i r -> if i land 1 = 0 then delete r else delete_nolock r) mine;
    Array.iter (fun r -> if round land 2 = 0 then delete r else delete_thread r) left;
    Par.join other;
    if round land 7 = 0 then Gc.full_major () else Gc.minor ();
    if round = 10 then peak := pools_in_use ()
  done;
  Gc.full_major ();
  if pools_in_use () > (3 * !peak) + 200 then fail "pools in use grew from %d to %d" !peak (pools_in_use ())

let torn_down_and_set_up () =
  for round = 1 to 20 do
    let roots = Array.init 2000 (fun i -> create_or_fail (text i)) in
    Array.iteri (fun i r -> match i land 3 with 0 -> delete r | 1 -> delete_nolock r | _ -> ()) roots;
    if round land 1 = 0 then Gc.full_major ();
    if round land 2 = 0 then Array.iteri (fun i r -> if i land 3 = 2 then delete_thread r) (Array.sub roots 0 100);
    teardown ();
    if not (setup ()) then fail "set-up";
    if report () <> 0 then fail "roots are live after a teardown"
  done

(* More than 4096 segments. *)
let many_segments () =
  let segments = 5200 in
  if pool_capacity () > 100 then skip "takes too much memory with large pools";
  if is_sanitized () then skip "takes too much memory under a sanitizer";
  let n = segments * 63 * pool_capacity () in
  let start = bytes_reserved () in
  let roots = Array.make n none in
  for i = 0 to n - 1 do roots.(i) <- create i; if roots.(i) = none then fail "no memory for root %d" i done;
  if bytes_reserved () - start < segments lsl 18 then fail "the roots fit into fewer segments";
  if report () <> n then fail "%d roots are live, of %d" (report ()) n;
  Gc.full_major ();
  Array.iteri (fun i r -> if get r <> i then fail "root %d lost its value" i) roots;
  Array.iteri (fun i r -> if i land 1 = 0 then delete r else delete_nolock r) roots;
  if report () <> 0 then fail "%d roots are live, of none" (report ());
  Gc.minor ();
  Array.iter delete (make 1000)

(* --- count and report ------------------------------------------------------------------------------------------- *)

let do_report () =
  ignore (Array.init 30 (fun i -> create_there i));
  let a = Array.init 20 (fun i -> create_here i) in
  ignore (create_by_pointer 0);
  for i = 0 to 9 do delete a.(i) done;
  delete_thread a.(10);
  a.(11) <- modify_here a.(11) (text 1);
  Gc.full_major ();
  a.(11) <- modify_here a.(11) (text 2);
  if Par.multicore then in_domain (fun () -> delete a.(12));
  let expected = 30 + 20 + 1 - 11 - if Par.multicore then 1 else 0 in
  let n = report () in
  if n <> expected then fail "%d roots are live, not %d" n expected

(* The calls that led there, on request. *)
let stacks () =
  match Process.run_self ~environment:[ "BOXROOT_STACKS=1" ] "do-double-delete" with
  | Unix.WSIGNALED _, said ->
      let has part = if not (Process.contains said part) then fail "expected \"%s\" in: %s" part said in
      has "boxroot:   created: k_create in ";
      has "boxroot:   deleted: k_delete in ";
      has ": main in ";
      if Process.contains said "bxr_" then fail "the library's own calls are in: %s" said
  | _, said -> fail "the fault was not detected: %s" said

let lines said = String.split_on_char '\n' said
let expect said line = if not (List.mem line (lines said)) then fail "expected the line \"%s\" in: %s" line said

let exits_well = function Unix.WEXITED 0, said -> said | _, said -> fail "%s" said

let reported () =
  let here = if Par.multicore then 8 else 9 in
  let said = exits_well (Process.run_self "do-report") in
  expect said (Printf.sprintf "boxroot: %d roots are live" (31 + here));
  expect said "boxroot:   30 created at creations.c:102";
  expect said (Printf.sprintf "boxroot:   %d created at creations.c:101" here);
  if not (Process.contains said "boxroot:   1 created at k_create_by_pointer in ") then
    fail "no creation through a pointer in: %s" said

let at_exit_reported () =
  let said = exits_well (Process.run_self ~environment:[ "BOXROOT_LEAKS=1" ] "do-leak") in
  expect said "boxroot: 3 roots are live at exit";
  expect said "boxroot:   2 created at creations.c:101";
  expect said "boxroot:   1 created at creations.c:102";
  let quiet what (environment, name) =
    let said = exits_well (Process.run_self ~environment name) in
    if Process.contains said "boxroot:" then fail "%s there is a report: %s" what said
  in
  quiet "Without the variable" ([], "do-leak");
  quiet "With the variable 0" ([ "BOXROOT_LEAKS=0" ], "do-leak");
  quiet "Without a root left" ([ "BOXROOT_LEAKS=1" ], "do-not-leak");
  let said = exits_well (Process.run_self ~environment:[ "BOXROOT_LEAKS=1" ] "do-leak-and-tear-down") in
  expect said "boxroot: 3 roots are live at teardown";
  if Process.contains said "at exit" then fail "void roots are live at exit: %s" said

(* Roots that the program ends at its exit are no leaks, whatever ends them. *)
let ended_at_exit () =
  let said = exits_well (Process.run_self ~environment:[ "BOXROOT_LEAKS=1" ] "do-end-at-exit") in
  if Process.contains said "boxroot:" then fail "roots that ended at the exit are reported: %s" said;
  let said = exits_well (Process.run_self ~environment:[ "BOXROOT_LEAKS=1" ] "do-end-some-at-exit") in
  expect said "boxroot: 1 root is live at exit"

let leak () =
  let a = create_here 0 and b = create_here 1 and c = create_here 2 in
  ignore (create_there 3);
  Gc.full_major ();
  delete_nolock b;
  ignore (a, c)

let leak_doers =
  [ ("do-end-at-exit", (fun () -> end_at_exit 1; if has_cxx () then cxx_keep 2));
    ("do-end-some-at-exit", (fun () -> end_at_exit 1; if has_cxx () then cxx_keep 2; ignore (create_there 3)));
    ("do-report", do_report); ("do-leak", leak); ("do-not-leak", fun () -> delete (create_here 0));
    ("do-leak-and-tear-down", fun () -> leak (); teardown ()) ]

let () =
  Root.main
    ([ ("kept-back", kept_back); ("used-again", used_again); ("keeps-nothing-alive", keeps_nothing_alive);
       ("across-domains", across_domains);
       ("torn-down-and-set-up", torn_down_and_set_up); ("many-segments", many_segments); ("reported", reported);
       ("reported-at-exit", at_exit_reported);
       ("ended-at-exit", ended_at_exit); ("void-until-set-up", void_until_set_up); ("stacks", stacks) ]
    @ misuse_tests @ if Process.is_rerun then misuse_doers @ leak_doers else [])

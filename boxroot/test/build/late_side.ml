(* SPDX-License-Identifier: MIT *)
(* The plug-in of late.ml. FIRST=thread: the first use of the library is that of the thread whose domain has ended. Then
   a domain with the same identity makes roots, which the thread deletes while the domain goes on. FIRST=deletion: they
   are few, so that the thread's first deletion finds their pool open, unless the library keeps it closed.
   FIRST=registered: a thread of C that comes later, and is registered with a domain, uses the library too. *)

external setup : unit -> bool = "a_setup"
external status : unit -> int = "a_status"
external create : 'a -> int = "a_create" [@@noalloc]
external get : int -> 'a = "a_get" [@@noalloc]
external delete : int -> unit = "a_delete" [@@noalloc]
external modify : int -> 'a -> int = "a_modify" [@@noalloc]
external act : int array -> unit = "late_act" (* the thread deletes these, and tries to create one *)
external acted : bool -> int = "late_acted" (* how many it created; true: waits until it is over *)

let text i = "value " ^ string_of_int i
let fail s = prerr_endline ("FAILED: " ^ s); exit 1
let created i = let r = create (text i) in if r = 0 then fail "creation failed"; r

let successor () =
  let n = 20_000 in
  let doomed = Array.init n created and own = Array.init n created in
  act doomed;
  for _ = 1 to 30 do
    for i = 0 to n - 1 do
      delete own.(i);
      own.(i) <- created i;
      if i land 7 = 0 then own.(i) <- modify own.(i) (text i)
    done;
    Array.iteri (fun i r -> if (get r : string) <> text i then fail "a root lost its value") own
  done;
  Array.iter delete own

external acted_at_once : unit -> unit = "late_acted_at_once" [@@noalloc]
external is_free : int -> bool = "late_is_free" [@@noalloc]

let successor_with_few () =
  let doomed = Array.init 10 created in
  act doomed;
  acted_at_once ();
  if Array.exists is_free doomed then fail "the thread has deleted a root as if it had the lock"

type owner
external owner : int -> owner = "late_owner"
external finalised : unit -> int = "late_finalised"
external sleep : unit -> unit = "late_sleep"
external sleeps : unit -> bool = "late_sleeps"
external go_on : unit -> unit = "late_go_on"

(* A domain waits outside OCaml, and the runtime's own thread runs its finalisers. *)
let by_the_backup_thread () =
  let n = 2000 in
  let d = Domain.spawn (fun () ->
      let r = created 0 and owners = ref (Array.init n owner) in
      Gc.full_major ();
      ignore (Sys.opaque_identity !owners);
      owners := [||];
      for i = 1 to n do ignore (owner i) done;
      sleep ();
      for _ = 1 to 3 do Gc.full_major () done;
      if (get r : string) <> text 0 then fail "a root lost its value";
      delete r)
  in
  while not (sleeps ()) do Domain.cpu_relax () done;
  for _ = 1 to 5 do Gc.full_major () done;
  let early = finalised () in
  go_on ();
  Domain.join d;
  for _ = 1 to 3 do Gc.full_major () done;
  if finalised () < 2 * n then fail "blocks were not finalised";
  Printf.printf "%d of %d finalised by the backup thread\n" early (2 * n)

external registered : int -> int = "late_registered"

let by_a_registered_thread () =
  if not (setup ()) then fail "set-up";
  let wrong = Domain.join (Domain.spawn (fun () -> registered (Domain.self () :> int))) in
  if wrong > 0 then fail (string_of_int wrong ^ " failures on a thread of C with the lock");
  act [||];
  if acted true > 0 then fail "creation succeeded on the thread of a domain that has ended"

let () =
  !Late_hook.before_use ();
  if Sys.getenv_opt "FIRST" = Some "registered" then by_a_registered_thread () else
  if Sys.getenv_opt "FIRST" = Some "backup" then begin
    by_the_backup_thread ();
    act [||];
    if acted true > 0 then fail "creation succeeded on the thread of a domain that has ended"
  end else
  if Sys.getenv_opt "FIRST" = Some "thread" then begin
    act [||];
    if acted true > 0 then fail "creation succeeded on the thread of a domain that has ended";
    if status () <> 0 then fail "set up by a creation that failed"
  end
  else begin
    if not (setup ()) then fail "set-up";
    let few = Sys.getenv_opt "FIRST" = Some "deletion" in
    Domain.join (Domain.spawn (if few then successor_with_few else successor));
    if acted true > 0 then fail "creation succeeded on the thread of a domain that has ended"
  end;
  Domain.join (Domain.spawn (fun () -> Array.iter delete (Array.init 10_000 created)));
  print_endline "done"

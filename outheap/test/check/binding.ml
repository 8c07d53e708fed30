(* binding FAULT [ROUNDS]: calls a function that has this fault, with values that are new each time; `right`: all of
   them without their faults. *)
external argument : string -> bool -> string * int = "b_argument"
external listen : (string -> int) -> bool -> unit = "b_listen"
external notify : unit -> int = "b_notify"
external inside : string -> bool -> int ref = "b_inside"
external unlocked : string -> bool -> int = "b_unlocked"
external refused : string -> bool -> int = "b_refused"
external store : string ref -> string -> bool -> unit = "b_store"
external fresh : int -> bool -> int * string = "b_fresh"
external return : string -> bool -> string ref = "b_return"
external results : (int -> string) -> bool -> int = "b_results"
external buffer : string list -> bool -> string array = "b_buffer"
external thread : (unit -> unit) -> bool -> unit = "b_thread"
type custom
external custom : string -> bool -> custom = "b_custom"
external unfilled : int -> bool -> string array = "b_unfilled"
external keep_old : (unit -> int) -> string -> unit = "b_keep_old"
external call_old : unit -> int = "b_call_old"
external read_old : unit -> int = "b_read_old"
external keep_large : string -> unit = "b_keep_large"
external read_large : unit -> int = "b_read_large"
external fill_large : int -> string array = "b_fill_large"
external twice : string -> unit = "b_twice"
external unknown : string -> unit = "b_unknown"
external assigned : string -> unit = "b_assigned"
external noalloc : int -> unit = "b_noalloc" [@@noalloc]

let text i = String.make (1 + (i mod 9)) 'a'
let old = ref ""
let kept = ref []
let called = ref 0

let allocate n = for i = 1 to n do ignore (Sys.opaque_identity (inside (text i) true)) done

let keep_old i =
  let k = Sys.opaque_identity i in
  let f () = k + 1 and s = text k in
  Gc.minor ();
  keep_old f s

let call fault right i =
  match fault with
  | "argument" -> ignore (Sys.opaque_identity (argument (text i) right))
  | "listener" ->
    let k = Sys.opaque_identity i in
    listen (fun s -> String.length s + k) right;
    assert (notify () = 5 + i)
  | "inside" -> assert (!(inside (text i) right) = 97)
  | "unlocked" -> assert (unlocked (text i) right = 1 + (i mod 9))
  | "refused" -> ignore (refused (text i) right)
  | "store" ->
    store old (text i) right;
    allocate 2;
    assert (String.length !old = 1 + (i mod 9))
  | "fresh" -> assert (fresh i right = (i, "second"))
  | "return" -> assert (!(return (text i) right) = text i)
  | "results" -> ignore (results (fun n -> text (n + i)) right)
  | "buffer" -> assert (Array.length (buffer [ text 1; text i ] right) = 2)
  | "thread" -> thread (fun () -> called := !called + i) right
  | "custom" ->
    kept := [ Sys.opaque_identity (custom (text i) right) ];
    allocate 2
  | "unfilled" -> assert ((unfilled i right).(399) = "x")
  | "old-function" ->
    keep_old i;
    allocate 500;
    assert (call_old () = i + 1)
  | "old-text" ->
    keep_old i;
    allocate 500;
    assert (read_old () = 1 + (i mod 9))
  | "domains" ->
    let work () = for i = 1 to 2000 do ignore (inside (text i) false) done in
    List.iter Domain.join (List.init 3 (fun _ -> Domain.spawn work))
  | "large-dead" | "large-alive" ->
    let s = String.make 100_000 'a' in
    keep_large s;
    allocate 200;
    assert (read_large () = 100_000);
    if fault = "large-alive" then ignore (Sys.opaque_identity s)
  | "large-new" -> assert ((fill_large 300).(299) = "x")
  | "twice" -> twice (text i)
  | "unknown" -> unknown (text i)
  | "assigned" -> assigned (text i)
  | "noalloc" -> noalloc i; ignore (Sys.opaque_identity (text i))
  | _ -> invalid_arg fault

let all =
  [ "argument"; "listener"; "inside"; "unlocked"; "refused"; "store"; "fresh"; "return"; "results"; "buffer"; "thread";
    "custom"; "unfilled" ]

let () =
  ignore (Thread.self ());
  let rounds = if Array.length Sys.argv > 2 then int_of_string Sys.argv.(2) else 50 in
  for i = 1 to rounds do
    match Sys.argv.(1) with
    | "right" -> List.iter (fun fault -> call fault true i) all
    | fault -> call fault false i
  done;
  kept := [];
  Gc.full_major ();
  print_endline "nothing noticed"

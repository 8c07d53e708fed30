(* SPDX-License-Identifier: MIT *)
(* Effects, which OCaml 5 has. *)

external rust : int -> int = "testing_rust"

type _ Effect.t += Ask : int Effect.t

let perform () = 1 + Effect.perform Ask

(* Answers what [f] asks with 10. *)
let handle f =
  Effect.Deep.try_with f ()
    { effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Ask -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k 10)
        | _ -> None) }

(* The continuation, as a value. *)
let continuation () =
  Effect.Deep.match_with (fun () -> Obj.repr (Effect.perform Ask)) ()
    { retc = Fun.id; exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Ask -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Obj.repr k)
        | _ -> None) }

(* So many signals come while the smallest fibers are busy. A handler that ran on a fiber's stack would overwrite what
   lies below it. *)
let beat n =
  let left = Atomic.make n in
  let timer s = ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = s; it_value = s }) in
  let spin seed =
    let x = ref (seed + 1) in
    for _ = 1 to 500 do x := !x * 48271 mod 2147483647 done;
    !x
  in
  let rec nest n =
    if n = 0 then spin 0 else handle (fun () -> let a = spin n in a lxor nest (n - 1) lxor spin (n + 1))
  in
  let expected = nest 40 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> Atomic.decr left));
  timer 0.0003;
  while Atomic.get left > 0 do
    if nest 40 <> expected then failwith "a fiber was overwritten";
    Gc.minor ()
  done;
  timer 0.

let () =
  Callback.register "beat" beat;
  Callback.register "continuation" continuation;
  Callback.register "perform" perform;
  (* The handler is above the frames of Rust: they hide it. *)
  Callback.register "perform_below" (fun n -> handle (fun () -> rust n));
  (* Here it is below them. *)
  Callback.register "handled" (fun n -> handle (fun () -> rust n + perform ()))

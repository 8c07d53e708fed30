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

let () =
  Callback.register "continuation" continuation;
  Callback.register "perform" perform;
  (* The handler is above the frames of Rust: they hide it. *)
  Callback.register "perform_below" (fun n -> handle (fun () -> rust n));
  (* Here it is below them. *)
  Callback.register "handled" (fun n -> handle (fun () -> rust n + perform ()))

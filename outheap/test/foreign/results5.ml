(* SPDX-License-Identifier: MIT *)
(* Results of domains, and what effects carry. *)
type _ Effect.t += Ask : Obj.t -> Obj.t Effect.t

let asked p () =
  let open Effect.Deep in
  match_with (fun () -> Effect.perform (Ask p)) ()
    { retc = Fun.id; exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Ask q -> Some (fun (k : (a, _) continuation) -> continue k q)
        | _ -> None) }

let ways p : (string * (unit -> Obj.t)) list =
  [ "a domain", (fun () -> Domain.join (Domain.spawn (fun () -> Sys.opaque_identity p)));
    "in a domain's block", (fun () -> fst (Domain.join (Domain.spawn (fun () -> (Sys.opaque_identity p, 0)))));
    "an effect", asked p ]

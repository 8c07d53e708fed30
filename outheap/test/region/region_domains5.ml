let spawn f = let d = Domain.spawn f in fun () -> Domain.join d
let recommended = 4

let run n work =
  let domains = List.init (n - 1) (fun i -> Domain.spawn (work (i + 1))) in
  work 0 ();
  List.iter Domain.join domains

(* [suspend f]: what goes on with [f] where it called [pause]. *)
type _ Effect.t += Pause : unit Effect.t

let pause () = Effect.perform Pause

let suspend f =
  let effc : type a. a Effect.t -> ((a, _) Effect.Deep.continuation -> _) option = function
    | Pause -> Some (fun k () -> Effect.Deep.continue k () ())
    | _ -> None
  in
  Effect.Deep.match_with f () { retc = (fun r () -> r); exnc = raise; effc }

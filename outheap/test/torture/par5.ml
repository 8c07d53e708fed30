(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml, for OCaml 5: domains and continuations. *)

let multicore = true

type domain = unit Domain.t
let spawn (f : unit -> unit) : domain = Domain.spawn f
let join (d : domain) = Domain.join d
let elsewhere f = Domain.join (Domain.spawn f)
let self () = (Domain.self () :> int)

type _ Effect.t += Wait : bool Effect.t
type state = Finished | Suspended of (bool, unit) Effect.Deep.continuation
type fiber = state ref

let suspend (f : (unit -> bool) -> unit) : fiber =
  let state = ref Finished in
  Effect.Deep.match_with (fun () -> f (fun () -> Effect.perform Wait)) ()
    { retc = (fun () -> state := Finished); exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Wait -> Some (fun (k : (a, _) Effect.Deep.continuation) -> state := Suspended k)
        | _ -> None) };
  state

let resume (state : fiber) again =
  match !state with
  | Finished -> ()
  | Suspended k -> state := Finished; Effect.Deep.continue k again

let local () =
  let key = Domain.DLS.new_key (fun () -> Obj.repr 0) in
  (fun () -> Domain.DLS.get key), (fun v -> Domain.DLS.set key v)

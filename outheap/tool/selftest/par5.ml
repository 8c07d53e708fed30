(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml, for OCaml 5: domains and continuations. Copied as par.ml to the tests of
   both products. *)

let multicore = true

type domain = unit Domain.t

let spawn (f : unit -> unit) : domain = Domain.spawn f
let join (d : domain) = Domain.join d

(* f's result, on another domain *)
let elsewhere f = Domain.join (Domain.spawn f)
let self () = (Domain.self () :> int)
let at_domain_exit f = Domain.at_exit f

open Effect
open Effect.Deep

type _ Effect.t += Ask : int Effect.t

type answer = Asked of (int, answer) continuation | Done of int

(* A suspended computation: given n it adds n to id and suspends again, forever. *)
let suspended id : Obj.t =
  let rec loop total =
    let local = string_of_int total in
    let n = perform Ask in
    if n < 0 then int_of_string local else loop (int_of_string local + n)
  in
  match
    match_with loop id
      { retc = (fun n -> Done n);
        exnc = raise;
        effc = (fun (type a) (e : a Effect.t) ->
          match e with Ask -> Some (fun (k : (a, _) continuation) -> Asked k) | _ -> None) }
  with
  | Asked k -> Obj.repr k
  | Done _ -> assert false

let has_continuations = true

(* Ends it and tells the total. *)
let finish (k : Obj.t) = match continue (Obj.obj k : (int, answer) continuation) (-1) with Done n -> n | Asked _ -> -1

(* Resumes it once; the continuation after that. *)
let resume (k : Obj.t) n : Obj.t =
  match continue (Obj.obj k : (int, answer) continuation) n with Asked k -> Obj.repr k | Done _ -> assert false

type _ Effect.t += Switch : string Effect.t

(* Calls f with a function that suspends f, and resumes it with "again". *)
let switching (f : (unit -> string) -> string) =
  match_with f
    (fun () -> perform Switch)
    { retc = Fun.id;
      exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Switch -> Some (fun (k : (a, _) continuation) -> Gc.minor (); continue k "again")
        | _ -> None) }

let relax () = Domain.cpu_relax ()

(* A fiber that waits, and goes on or ends when it is woken. *)
type _ Effect.t += Wait : bool Effect.t

type state = Finished | Suspended of (bool, unit) continuation
type fiber = state ref

let suspend (f : (unit -> bool) -> unit) : fiber =
  let state = ref Finished in
  match_with
    (fun () -> f (fun () -> perform Wait))
    ()
    { retc = (fun () -> state := Finished);
      exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with Wait -> Some (fun (k : (a, _) continuation) -> state := Suspended k) | _ -> None) };
  state

let wake (state : fiber) again =
  match !state with
  | Finished -> ()
  | Suspended k ->
      state := Finished;
      continue k again

(* Storage of a domain: how to read it, how to write it. *)
let local () =
  let key = Domain.DLS.new_key (fun () -> Obj.repr 0) in
  ((fun () -> Domain.DLS.get key), fun v -> Domain.DLS.set key v)

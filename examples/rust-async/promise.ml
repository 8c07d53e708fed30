(* SPDX-License-Identifier: MIT *)
(* A promise that any thread may complete, and wait for. *)

type 'a t = { lock : Mutex.t; done_ : Condition.t; mutable value : 'a option }

let create () =
  let p = { lock = Mutex.create (); done_ = Condition.create (); value = None } in
  let resolve x =
    Mutex.lock p.lock;
    p.value <- Some x;
    Condition.broadcast p.done_;
    Mutex.unlock p.lock
  in
  (p, resolve)

let is_completed p =
  Mutex.lock p.lock;
  let answer = Option.is_some p.value in
  Mutex.unlock p.lock;
  answer

let await p =
  Mutex.lock p.lock;
  let rec wait () =
    match p.value with
    | Some x -> x
    | None -> Condition.wait p.done_ p.lock; wait ()
  in
  let x = wait () in
  Mutex.unlock p.lock;
  x

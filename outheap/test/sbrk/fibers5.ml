(* SPDX-License-Identifier: MIT *)
(* Stacks: many fibers, a deep one, deep recursion on the main stack. For OCaml 5. *)
open Effect
open Effect.Deep

type _ Effect.t += Yield : int -> int Effect.t

let rec deep n = if n = 0 then perform (Yield 0) else 1 + deep (n - 1)

let answering f x =
  match_with f x
    { retc = Fun.id; exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Yield n -> Some (fun (k : (a, _) continuation) -> Gc.minor (); continue k n)
        | _ -> None) }

let rec nested n = if n = 0 then answering deep 10 else answering (fun () -> nested (n - 1)) ()

let run () =
  if nested 2_000 <> 10 then failwith "nested fibers";
  answering deep 1_000_000

(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml, for OCaml 4.14: one domain, no continuations. *)

let multicore = false

type domain = unit
let spawn f : domain = f ()
let join (() : domain) = ()
let elsewhere f = f ()
let self () = 0

(* A fiber is called again instead of being resumed. *)
type fiber = bool ref -> unit
let suspend (f : (unit -> bool) -> unit) : fiber = fun _ -> f (fun () -> Gc.minor (); false)
let resume (fiber : fiber) again = fiber (ref again)

let local () = let r = ref (Obj.repr 0) in (fun () -> !r), (fun v -> r := v)

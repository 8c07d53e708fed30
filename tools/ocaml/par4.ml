(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml, for OCaml 4.14: one domain, no continuations. *)

let multicore = false

type domain = unit

let spawn (_ : unit -> unit) : domain = Root.skip "needs OCaml 5"
let join (() : domain) = ()
let at_domain_exit (_ : unit -> unit) = ()
let has_continuations = false
let suspended id : Obj.t = Obj.repr (string_of_int id)
let finish (k : Obj.t) = int_of_string (Obj.obj k)
let resume (k : Obj.t) n : Obj.t = Obj.repr (string_of_int (int_of_string (Obj.obj k) + n))
let relax () = ()

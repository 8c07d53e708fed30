(* SPDX-License-Identifier: MIT *)
(* What differs between generations of OCaml, for OCaml 4.14: one domain, no continuations. Copied as par.ml to the
   tests of both products. *)

let multicore = false

type domain = unit

(* Ends the test, as one that does not apply. *)
let spawn (_ : unit -> unit) : domain =
  print_endline "skipped: needs OCaml 5";
  exit 77

let join (() : domain) = ()
let elsewhere f = f ()
let self () = 0
let at_domain_exit (_ : unit -> unit) = ()
let has_continuations = false
let suspended id : Obj.t = Obj.repr (string_of_int id)
let finish (k : Obj.t) = int_of_string (Obj.obj k)
let resume (k : Obj.t) n : Obj.t = Obj.repr (string_of_int (int_of_string (Obj.obj k) + n))

(* Calls f with a function that suspends f, and resumes it with "again". *)
let switching (f : (unit -> string) -> string) = f (fun () -> "again")
let relax () = ()

(* A fiber is called again instead of being resumed. *)
type fiber = bool ref -> unit

let suspend (f : (unit -> bool) -> unit) : fiber = fun _ -> f (fun () -> Gc.minor (); false)
let wake (fiber : fiber) again = fiber (ref again)

(* Storage of a domain: how to read it, how to write it. *)
let local () =
  let r = ref (Obj.repr 0) in
  ((fun () -> !r), fun v -> r := v)

(* SPDX-License-Identifier: MIT *)
(* calls: what it costs OCaml to call an exported function, and a foreign function to call a closure, to release the
   lock and to take it. Arguments: time|count, seconds per measurement. *)
open Exported

let next n = n + 1
let other n = n - 1

let expect name b = if not b then Bench.fail "%s: wrong result" name

let check () =
  expect "none_int" (none_int 20 (-3) = 17 && none_int max_int 0 = max_int && none_int min_int 0 = min_int);
  expect "none_float" (none_float 1.5 2.25 = 3.75);
  expect "read_int" (read_int 41 = 42 && read_int (-1) = 0);
  expect "read_float" (read_float 1.5 && not (read_float (-1.5)));
  expect "read_string" (List.for_all (fun n -> read_string (String.make n 's') = n) [ 0; 1; 7; 8; 9; 1000 ]);
  expect "read_closure" (read_closure next next && not (read_closure next other));
  expect "write_int" (write_int 41 = 42 && write_int (-1) = 0);
  expect "write_float" (write_float 1.5 = 2.5);
  expect "write_string" (List.for_all (fun n -> write_string (String.make n 's') = n) [ 0; 1; 7; 8; 9; 1000 ]);
  expect "write_closure" (write_closure next 41 = 42);
  expect "write_closure, collecting" (write_closure (fun n -> Gc.compact (); n + 1) 41 = 42);
  expect "call_many" (call_many next 100 = 100);
  expect "call_many, collecting" (call_many (fun n -> Gc.minor (); List.length (List.init (n + 1) Fun.id)) 100 = 100);
  release_many 3;
  attach_many 3

(* Each loop has its call in place: a closure around it would cost as much. *)
let measured =
  [
    ("no access, int", fun n ->
      let x = ref 0 in
      for i = 1 to n do x := none_int !x i done;
      ignore (Sys.opaque_identity !x));
    ("no access, float", fun n ->
      let x = ref 0. in
      for _ = 1 to n do x := none_float !x 1. done;
      ignore (Sys.opaque_identity !x));
    ("read, int", fun n -> for i = 1 to n do ignore (Sys.opaque_identity (read_int i)) done);
    ("read, float", fun n ->
      let x = Sys.opaque_identity 1.5 in
      for _ = 1 to n do ignore (Sys.opaque_identity (read_float x)) done);
    ("read, string", fun n ->
      let s = Sys.opaque_identity "a string" in
      for _ = 1 to n do ignore (Sys.opaque_identity (read_string s)) done);
    ("read, closure", fun n ->
      let f = Sys.opaque_identity next in
      for _ = 1 to n do ignore (Sys.opaque_identity (read_closure f f)) done);
    ("read-write, int", fun n -> for i = 1 to n do ignore (Sys.opaque_identity (write_int i)) done);
    ("read-write, float", fun n ->
      let x = Sys.opaque_identity 1.5 in
      for _ = 1 to n do ignore (Sys.opaque_identity (write_float x)) done);
    ("read-write, string", fun n ->
      let s = Sys.opaque_identity "a string" in
      for _ = 1 to n do ignore (Sys.opaque_identity (write_string s)) done);
    ("read-write, closure", fun n ->
      let f = Sys.opaque_identity next in
      for i = 1 to n do ignore (Sys.opaque_identity (write_closure f i)) done);
    ("closure called", fun n -> ignore (call_many next n));
    ("lock released", release_many);
    ("attached", attach_many);
  ]

let () =
  let mode = Bench.argument 1 ~default:"time" and seconds = float_of_string (Bench.argument 2 ~default:"0.02") in
  check ();
  List.iter
    (fun (name, f) -> Bench.operation ~mode ~seconds ~chunk:20_000 ~count:20_000 ~per:1 name f)
    measured

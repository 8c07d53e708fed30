(* SPDX-License-Identifier: MIT *)
(* The functions of src/lib.rs, as OCaml sees them: `dune test`. *)
let () =
  assert (My_binding.greet "world" Calm = "Hello, world.");
  assert (My_binding.greet "world" (Loud { marks = 2 }) = "HELLO, WORLD!!");
  assert (My_binding.sum "1 2 39" = 42);
  (match My_binding.sum "1 two" with
   | _ -> assert false
   | exception Ocaml_boxroot.Rust_error { message; _ } -> assert (message = "invalid digit found in string"));
  let seen = ref [] in
  (try My_binding.each "one two three" (fun word -> if word = "three" then raise Exit else seen := word :: !seen)
   with Exit -> ());
  assert (!seen = [ "two"; "one" ]);
  print_endline "my_binding: all tests passed"

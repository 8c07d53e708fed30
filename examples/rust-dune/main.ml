(* SPDX-License-Identifier: MIT *)
let () =
  let text = "one fish two fish red fish blue fish" in
  (match Words.count text with
   | { word; times } :: rest -> Printf.printf "%s: %d times, and %d other words\n" word times (List.length rest)
   | [] -> assert false);
  Printf.printf "sum: %g\n" (Words.sum "1 2.5");
  (match Words.sum "1 two" with
   | _ -> assert false
   | exception Ocaml_boxroot.Rust_error { message; _ } -> Printf.printf "error: %s\n" message);
  let seen = ref [] in
  (try Words.each text (fun word -> if word = "red" then raise Exit else seen := word :: !seen) with Exit -> ());
  Printf.printf "before red: %s\n" (String.concat " " (List.rev !seen))

(* SPDX-License-Identifier: MIT *)
(* Named tests. *)

let failed = ref 0

let test name f =
  match f () with
  | true -> ()
  | false -> incr failed; Printf.printf "FAILED %s\n%!" name
  | exception e -> incr failed; Printf.printf "FAILED %s: %s\n%!" name (Printexc.to_string e)

let raises name check f =
  test name (fun () -> match f () with _ -> false | exception e -> check e || raise e)

let equal name expected f =
  test name (fun () ->
      let got = f () in
      if got <> expected then Printf.printf "%s: %S, not %S\n%!" name got expected;
      got = expected)

let invalid start e =
  match e with
  | Invalid_argument text ->
    let length = String.length start in
    String.length text >= length && String.sub text 0 length = start
  | _ -> false

let finish () =
  if !failed > 0 then exit 1;
  print_endline "exports: ok"

(* SPDX-License-Identifier: MIT *)
(* Programs that must not notice that another thread marks and sweeps, nor with what settings.

     soak PART… [--seconds S] [--seed N] [--beside DOMAINS] [--no-weak]
     soak --list             the parts; after the name: `one` if it must be the only domain, `limited` if it needs a
                             limit of memory, `short` if the helper's mark stack must be, `slow`

   Prints `ok PART` or ends with an exception. *)
open Soak_check

let parts =
  List.map (fun (n, f) -> (n, "", f)) Soak_data.tests
  @ List.map (fun (n, f) -> (n, "", f)) Soak_weak.tests
  @ List.map (fun (n, f) -> (n, "", f)) Soak_control.tests
  @ List.map (fun (n, f) -> (n, "slow", f)) Soak_control.long
  @ List.map (fun (n, f) -> (n, "one", f)) Soak_process.tests
  @ List.map (fun (n, f) -> (n, "limited", f)) Soak_data.limited
  @ List.map (fun (n, f) -> (n, "short", f)) Soak_data.short
  @ List.map (fun (n, f) -> (n, "", f)) Soak_outside.tests

let rec run = function
  | "--list" :: _ -> List.iter (fun (n, word, _) -> print_endline (if word = "" then n else n ^ " " ^ word)) parts
  | "--seconds" :: s :: rest -> seconds := float_of_string s; run rest
  | "--seed" :: s :: rest -> seed := int_of_string s; run rest
  | "--beside" :: s :: rest -> beside := int_of_string s; run rest
  | "--no-weak" :: rest -> weak_in_domains := false; run rest
  | "--ending" :: way :: rest -> run rest; Soak_process.ending way
  | name :: rest ->
    run_options rest;
    (match List.find_opt (fun (n, _, _) -> n = name) parts with
     | None -> fail "no part %s" name
     | Some (_, _, f) ->
       began := Unix.gettimeofday ();
       with_company f;
       Printf.printf "ok %s\n%!" name);
    run rest
  | [] -> ()

(* Options may follow the parts, as a shrunk command has them. *)
and run_options = function
  | "--seconds" :: s :: rest -> seconds := float_of_string s; run_options rest
  | "--seed" :: s :: rest -> seed := int_of_string s; run_options rest
  | "--beside" :: s :: rest -> beside := int_of_string s; run_options rest
  | "--no-weak" :: rest -> weak_in_domains := false; run_options rest
  | _ :: rest -> run_options rest
  | [] -> ()

let () = run (List.tl (Array.to_list Sys.argv))

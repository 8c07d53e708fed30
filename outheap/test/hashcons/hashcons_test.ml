(* SPDX-License-Identifier: MIT *)
(* Tests of hash-consing: hashcons PART…; hashcons --list names the parts *)
open Hashcons_checks

let parts =
  [
    ("random", fun () -> Hashcons_model.random 20_000);
    ("life", Hashcons_life.life); ("again", Hashcons_life.again); ("phases", Hashcons_life.phases);
    ("tables", Hashcons_life.ends); ("sets", Hashcons_life.sets); ("forks", Hashcons_life.forks);
    ("kinds", Hashcons_nodes.kinds); ("refused", Hashcons_nodes.refused);
    ("given", Hashcons_nodes.given);
    ("nested", Hashcons_nodes.nested); ("interrupts", Hashcons_nodes.interrupts);
    ("crowded", Hashcons_crowd.crowded); ("crowded-busy", Hashcons_crowd.busy);
    ("hashes", Hashcons_crowd.hashes);
    ("deep", fun () -> Hashcons_limits.deep 1_000_000);
    ("churn", fun () -> Hashcons_limits.churn 500_000);
    ("domains", fun () -> Hashcons_limits.domains 3);
    ("mixed", fun () -> Hashcons_limits.mixed 200);
    ("threads", Hashcons_limits.threads); ("paced", Hashcons_limits.paced);
    ("failing", Hashcons_limits.failing); ("stackless", Hashcons_limits.stackless);
  ]

(* For runs of everything. *)
let long =
  [
    ("random-long", fun () -> Hashcons_model.random 100_000);
    ("domains-long", fun () -> Hashcons_limits.domains 10);
  ]

(* What it says is about time: it decides nothing. *)
let timing = [ ("crowded-time", Hashcons_crowd.quadratic) ]

(* Needs a limit on memory. *)
let asked = [ ("little", Hashcons_limits.little) ]

let () =
  (match List.tl (Array.to_list Sys.argv) with
  | [ "--list" ] ->
      List.iter (fun (name, _) -> print_endline name) parts;
      List.iter (fun (name, _) -> print_endline (name ^ " long")) long;
      List.iter (fun (name, _) -> print_endline (name ^ " timing")) timing
  | names ->
      List.iter
        (fun name ->
          match List.assoc_opt name (parts @ long @ timing @ asked) with
          | Some f -> f ()
          | None -> Printf.printf "no part %s\n" name; incr failures)
        names);
  if !failures > 0 then (
    Printf.printf "%d failures\n" !failures;
    exit 1)

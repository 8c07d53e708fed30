(* SPDX-License-Identifier: MIT *)
(* Tests of owned data: linear PART…; linear --list names the parts *)
open Linear_checks

let parts =
  [
    ("lists", fun () -> Linear_chains.lists 40_000);
    ("queues", fun () -> Linear_chains.queues 20_000);
    ("large", fun () -> Linear_chains.large 1_000_000);
    ("maps", fun () -> Linear_maps.maps 10_000);
    ("unions", fun () -> Linear_unions.unions 400);
    ("tables", fun () -> Linear_tables.tables 8_000); ("texts", Linear_tables.texts);
    ("keys", Linear_tables.keys); ("reentrant", Linear_tables.reentrant);
    ("cache", fun () -> Linear_tables.cache 100_000);
    ("orders", Linear_maps.orders); ("disorders", Linear_maps.disorders); ("owners", Linear_contracts.owners);
    ("contents", Linear_contracts.contents); ("held", Linear_contracts.held);
    ("rooted", Linear_contracts.rooted); ("forgotten", Linear_contracts.forgotten);
    ("stale", Linear_contracts.stale); ("poisoned", Linear_contracts.poisoned);
    ("memory", Linear_contracts.memory); ("failing", Linear_contracts.failing);
    ("compacted", Linear_compacted.compacted); ("operations", Linear_operations.operations);
    ("forks", Linear_contracts.forks); ("cells", Linear_types.cells);
    ("values", Linear_types.values); ("interrupts", Linear_types.interrupts);
    ("domains", Linear_shared.domains); ("ended", Linear_shared.ended);
    ("endings", Linear_endings.endings); ("stopped", Linear_stopped.stopped);
    ("racing", Linear_shared.racing); ("pairs", Linear_shared.pairs); ("taking", Linear_shared.taking);
    ("sharded", fun () -> Linear_sharded.sharded 3_000); ("sharing", Linear_sharded.sharing);
    ("threads", Linear_threads.threads);
    ("images", Linear_images.images); ("damaged", Linear_images.damaged);
    ("elsewhere", Linear_images.mapped_elsewhere); ("saved", Linear_saving.saved);
    ("saved-meanwhile", Linear_saving.meanwhile);
    ("signals", Linear_signals.signals); ("depths", Linear_depths.depths); ("not-cells", Linear_edges.memory);
    ("rights", Linear_rights.rights);
    ("tokens", Linear_edges.cells); ("asked", Linear_edges.asked); ("held-kinds", Linear_edges.regions);
    ("privileged", Linear_settings.privileged);
  ]

(* For runs of everything. *)
let long =
  [
    ("lists-long", fun () -> Linear_chains.lists 400_000);
    ("maps-long", fun () -> Linear_maps.maps 100_000);
    ("tables-long", fun () -> Linear_tables.tables 80_000);
  ]

(* What it says is about time: it decides nothing. *)
let timing = [ ("large-time", fun () -> Linear_chains.large_time 1_000_000) ]

(* Need a limit on memory, or on the size of files; what a part runs. *)
let asked =
  [
    ("little", Linear_contracts.little); ("limited", Linear_saving.limited); ("large-pool", Linear_settings.child);
  ]

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

(* SPDX-License-Identifier: MIT *)
(* release: what of the memory of roots that have been deleted goes back to the system. Growth of the process against its start,
   resident memory in MB and mappings.
   Arguments: "roots" and a number: so many roots are made and deleted; then the heap is compacted, three times.
   "domains", a number, roots: so many domains, one after the other, each make these roots, delete all but one, and end. *)

let start_resident = ref 0
let start_mappings = ref 0

let growth name =
  Bench.metric ("resident: " ^ name) (float (Bench.resident_bytes () - !start_resident) /. 1e6) "MB";
  Bench.metric ("mappings: " ^ name) (float (Bench.mappings () - !start_mappings)) ""

let start () =
  Gc.compact ();
  start_resident := Bench.resident_bytes ();
  start_mappings := Bench.mappings ()

let value = ref 0

let roots number =
  start ();
  Slots.make number;
  Slots.fill 0 number value;
  Gc.minor ();
  Slots.delete_all ();
  Slots.release ();
  growth "roots deleted";
  Gc.minor ();
  Gc.compact ();
  growth "compacted once";
  Gc.compact ();
  Gc.compact ();
  growth "compacted three times"

let domains number roots =
  Slots.make (max number roots);
  start ();
  let began = Bench.wall () in
  for i = 0 to number - 1 do
    (* the roots that stay are those of the first slots *)
    Domains.run_all
      [ (fun () ->
          Slots.fill 0 roots value;
          Slots.delete_from (i + 1)) ]
  done;
  Bench.metric "time of a domain" ((Bench.wall () -. began) *. 1e6 /. float number) "us";
  growth "domains ended";
  for _ = 1 to 3 do
    Gc.full_major ()
  done;
  growth "after three full majors";
  Gc.compact ();
  growth "compacted once";
  Slots.delete_all ();
  Gc.compact ();
  growth "all deleted, compacted"

let () =
  match Bench.argument 1 ~default:"roots" with
  | "roots" -> roots (Bench.int_argument 2 ~default:20_000_000)
  | "domains" -> domains (Bench.int_argument 2 ~default:500) (Bench.int_argument 3 ~default:100_000)
  | other -> Bench.fail "unknown: %s" other

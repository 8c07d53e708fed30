(* SPDX-License-Identifier: MIT *)
(* release: what of the memory of roots that have been deleted goes back to the system: resident memory and mappings of
   the process.
   A block that happens to lie above freed memory can keep malloc from giving that back; it is asked to before each
   figure, so that chance does not count against those who use it.
   Arguments: "roots" and a number: so many roots are made and deleted; then the heap is compacted, three times.
   "domains", a number, roots: so many domains, one after the other, each make these roots, delete all but one, and
   end. *)

let memory name =
  Bench.trim ();
  Bench.metric ("resident: " ^ name) (float (Bench.resident_bytes ()) /. 1e6) "MB";
  Bench.metric ("mappings: " ^ name) (float (Bench.mappings ())) ""

let value = ref 0

let roots number =
  Gc.compact ();
  memory "at the start";
  Slots.make number;
  Slots.fill 0 number value;
  Gc.minor ();
  Slots.delete_all ();
  Slots.release ();
  memory "roots deleted";
  Gc.minor ();
  Gc.compact ();
  memory "compacted once";
  Gc.compact ();
  Gc.compact ();
  memory "compacted three times"

let domains number roots =
  Slots.make (max number roots);
  Gc.compact ();
  memory "at the start";
  let began = Bench.wall () in
  for i = 0 to number - 1 do
    (* the roots that stay are those of the first slots *)
    Domains.run_all
      [ (fun () ->
          Slots.fill 0 roots value;
          Slots.delete_from (i + 1)) ]
  done;
  Bench.metric "time of a domain" ((Bench.wall () -. began) *. 1e6 /. float number) "us";
  memory "domains ended";
  for _ = 1 to 3 do
    Gc.full_major ()
  done;
  memory "after three full majors";
  Gc.compact ();
  memory "compacted once";
  Slots.delete_all ();
  Gc.compact ();
  memory "all deleted, compacted"

let () =
  match Bench.argument 1 ~default:"roots" with
  | "roots" -> roots (Bench.int_argument 2 ~default:20_000_000)
  | "domains" -> domains (Bench.int_argument 2 ~default:500) (Bench.int_argument 3 ~default:100_000)
  | other -> Bench.fail "unknown: %s" other

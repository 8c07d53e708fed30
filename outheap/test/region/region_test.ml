(* SPDX-License-Identifier: MIT *)
(* Tests of regions: region PART…; region --list names the parts *)
open Region_checks
open Region_copies
open Region_life
open Region_images
open Region_limits
open Region_track
open Region_tracked
open Region_ancient
open Region_process

let parts =
  [
    ("merged", merged); ("kinds", kinds); ("again", again); ("refused", refused);
    ("life", life); ("parts", parts); ("roots", roots);
    ("deletes", deletes);
    ("nested", nested); ("revokes", revokes); ("faults", faults); ("forks", forks); ("images", images);
    ("failures", failing);
    ("modes", modes); ("together", together);
    ("needs", needs); ("pins", pins);
    ("ancient", ancient); ("places", places);
    ("dropped", dropped); ("dropped-memory", dropped_memory);
    ("dropped-maps", dropped_maps); ("at-limit", at_limit); ("no-mappings", no_mappings);
    ("questions", questions);
    ("writes", writes); ("ways", ways); ("old", old); ("lazies", lazies); ("tracked-images", tracked_images);
    ("tracked-ends", tracked_ends); ("tracked-revokes", tracked_revokes);
    ("tracked-domains", fun () -> tracked_domains 8000); ("tracked-churn", fun () -> tracked_churn 60);
    ("tracked-forks", tracked_forks); ("tracked-slices", tracked_slices);
    ("tracked-roots", tracked_roots); ("stacks", stacks);
    ("waits", waits); ("moments", moments); ("beside-marking", beside_marking); ("unseen", unseen);
    ("c", Region_c.calls);
    ("messages", Region_messages.messages);
  ]

(* They take long, and are no different without the variant or with the debug runtime: `make test` runs them with the
   release runtime alone. *)
let slow =
  [
    ("random", random); ("deep", deep); ("churn", churn); ("damaged", fun () -> damaged 3000);
    ("domains", fun () -> domains 30); ("beside", beside); ("many", many); ("large", large); ("obstacles", obstacles);
  ]

(* For runs of everything. *)
let long =
  [ ("damaged-long", fun () -> damaged 100_000); ("domains-long", fun () -> domains 2500); ("million", million) ]

(* What they say is about time: they decide nothing. *)
let timing = [ ("questions-time", questions_time) ]

(* These need a limit on memory, or fail on purpose. *)
let asked = [ ("little", little); ("dropped-little", dropped_little); ("race", race) ]

let () =
  (match List.tl (Array.to_list Sys.argv) with
  | [ "--list" ] ->
      List.iter
        (fun (word, some) -> List.iter (fun (name, _) -> print_endline (name ^ word)) some)
        [ ("", parts); (" slow", slow); (" long", long); (" timing", timing) ]
  | [ "relocated"; path; seed ] -> relocated path (int_of_string seed)
  | [ "write-to-region" ] -> write_to_region ()
  | [ "read-of-revoked" ] -> read_of_revoked ()
  | [ "needs-in-child"; a; b ] -> needs_in_child a b
  | names ->
      List.iter
        (fun name ->
          match List.assoc_opt name (parts @ slow @ long @ timing @ asked) with
          | Some f -> f ()
          | None -> Printf.printf "no part %s\n" name; incr failures)
        names);
  if !failures > 0 then exit 1

(* SPDX-License-Identifier: MIT *)
(* Tests of regions: region PART… *)
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
    ("random", random); ("merged", merged); ("deep", deep); ("kinds", kinds); ("again", again); ("refused", refused);
    ("life", life); ("parts", parts); ("roots", roots); ("churn", churn);
    ("deletes", deletes);
    ("nested", nested); ("revokes", revokes); ("faults", faults); ("forks", forks); ("images", images);
    ("damaged", fun () -> damaged 3000);
    ("failures", failing);
    ("modes", modes); ("together", together);
    ("needs", needs); ("pins", pins); ("domains", fun () -> domains 60); ("beside", beside);
    ("ancient", ancient); ("many", many); ("large", large); ("places", places); ("little", little);
    ("obstacles", obstacles); ("dropped", dropped); ("dropped-memory", dropped_memory);
    ("dropped-maps", dropped_maps); ("dropped-little", dropped_little); ("at-limit", at_limit);
    ("questions", questions); ("million", million); ("damaged-long", fun () -> damaged 100_000);
    ("domains-long", fun () -> domains 2500);
    ("writes", writes); ("ways", ways); ("old", old); ("lazies", lazies); ("tracked-images", tracked_images);
    ("tracked-ends", tracked_ends); ("tracked-revokes", tracked_revokes);
    ("tracked-domains", fun () -> tracked_domains 8000); ("tracked-churn", fun () -> tracked_churn 60);
    ("tracked-forks", tracked_forks); ("tracked-slices", tracked_slices);
    ("tracked-roots", tracked_roots); ("stacks", stacks);
    ("waits", waits); ("moments", moments); ("beside-marking", beside_marking); ("race", race); ("unseen", unseen);
    ("c", Region_c.calls);
    ("messages", Region_messages.messages);
  ]

let () =
  (match List.tl (Array.to_list Sys.argv) with
  | [ "relocated"; path; seed ] -> relocated path (int_of_string seed)
  | [ "write-to-region" ] -> write_to_region ()
  | [ "read-of-revoked" ] -> read_of_revoked ()
  | [ "needs-in-child"; a; b ] -> needs_in_child a b
  | names ->
      List.iter
        (fun name ->
          match List.assoc_opt name parts with
          | Some f -> f ()
          | None -> Printf.printf "no part %s\n" name; incr failures)
        names);
  if !failures > 0 then exit 1

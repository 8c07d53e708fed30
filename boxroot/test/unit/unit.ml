(* SPDX-License-Identifier: MIT *)
(* Unit tests of the documented behaviour, each in a process of its own: the list. *)

open Unit_roots
open Unit_teardown
open Unit_starts
open Unit_hooks
open Unit_languages

let () =
  Root.main
    ~unlisted:[ ("work-of-creations", work_of_creations) ]
    [ ("basics", basics); ("modification", modification); ("liveness", liveness);
      ("nothing-allocated", nothing_allocated); ("many", many);
      ("slow-creations", slow_creations);
      ("handlers-on-foreign-thread", handlers ~blocking:false);
      ("handlers-in-blocking-section", handlers ~blocking:true);
      ("eperm-before-setup", eperm_before_setup); ("eperm", eperm); ("eperm-setup", eperm_setup);
      ("statuses", statuses); ("no-setup-needed", no_setup_needed);
      ("teardown-then-setup", teardown_then_setup); ("teardown-mid-cycle", teardown_mid_cycle);
      ("teardown-deletes-nothing-later", teardown_deletes_nothing_later);
      ("teardown-gives-memory-back", teardown_gives_memory_back);
      ("statistics", statistics); ("statistics-printed", statistics_printed); ("first-is-a-domain", first_is_a_domain);
      ("first-is-a-thread", first_is_a_thread); ("first-is-a-thread-of-c", first_is_a_thread_of_c);
      ("threads-before-first-use", threads_before_first_use); ("registered-threads", registered); ("fork", fork);
      ("fork-while-deleting", fork_while_deleting); ("hooks-before", hooks_before); ("hooks-after", hooks_after);
      ("hooks-while-attaching", hooks_while_attaching); ("values-stay-young", values_stay_young);
      ("deleted-beside-the-scan", deleted_beside_the_scan); ("ended-beside-the-scan", ended_beside_the_scan);
      ("teardown-takes-hooks-out", teardown_takes_hooks_out);
      ("teardown-under-other-hooks", teardown_under_other_hooks);
      ("cplusplus", cplusplus); ("compat-0.4.0", compat); ("passed-between-domains", passed_between_domains);
      ("domains-at-once", domains_at_once) ]

(* SPDX-License-Identifier: MIT *)
(* One test for each failure that was found in version 0.4.0, and for the faults that this design could have in their
   place: the list. *)

open Regress_domains
open Regress_finalisers
open Regress_memory
open Regress_occupancy
open Regress_barrier
open Regress_misuse
open Regress_hooks

let () =
  Root.main
    ([ ("domain-exit-idle-main", domain_exit_idle_main); ("domain-exit-used-main", domain_exit_used_main);
       ("domain-exit-mid-cycle", domain_exit_mid_cycle); ("domain-exit-last-words", domain_exit_last_words);
       ("deleted-between-cycles", deleted_between_cycles);
       ("domain-exit-leaves-first", domain_exit_leaves_one ~last:false);
       ("domain-exit-leaves-last", domain_exit_leaves_one ~last:true);
       ("sparse-pools-are-shared", sparse_pools_are_shared);
       ("churn-idle-main", churn_domains ~main_uses:false);
       ("churn-used-main", churn_domains ~main_uses:true); ("churn-together", churn_together);
       ("domains-replace", domains_replace ~main:false ~cycles:0);
       ("domains-replace-in-cycles", domains_replace ~main:false ~cycles:7);
       ("domains-replace-beside-main", domains_replace ~main:true ~cycles:0);
       ("domains-replace-beside-main-in-cycles", domains_replace ~main:true ~cycles:7);
       ("domains-replace-together", domains_replace_together);
       ("shelf-beside-everything", shelf_beside_everything); ("shelf-left-behind", shelf_left_behind);
       ("turnover", turnover ~values:true ~minor:0 ~major:0);
       ("turnover-of-immediates", turnover ~values:false ~minor:4 ~major:0);
       ("turnover-in-minor-collections", turnover ~values:true ~minor:1 ~major:0);
       ("turnover-in-cycles", turnover ~values:true ~minor:2 ~major:1);
       ("finaliser-deletes-in-minor", finaliser_deletes ~major:false);
       ("finaliser-deletes-in-major", finaliser_deletes ~major:true);
       ("finaliser-of-the-young", finaliser_young);
       ("infix-while-visited", infix_while_moving ~later:false); ("infix-after-visit", infix_while_moving ~later:true);
       ("no-memory-once", out_of_memory ~domains:false ~mode:1 ~always:false);
       ("no-memory-for-long", out_of_memory ~domains:false ~mode:2 ~always:false);
       ("no-memory-in-hooks", out_of_memory ~domains:false ~mode:1 ~always:true);
       ("no-memory-in-hooks-for-long", out_of_memory ~domains:false ~mode:2 ~always:true);
       ("no-memory-exchange", exchange_without_memory);
       ("no-memory-for-domains", no_memory_for_domains); ("reuse", reuse); ("reuse-in-two-waves", reuse_in_two_waves);
       ("reuse-after-remote-deletion", reuse_after_remote_deletion); ("give-back-local", give_back_local);
       ("give-back-no-lock", give_back_nolock);
       ("give-back-elsewhere", give_back_elsewhere); ("give-back-other-domain", give_back_other_domain);
       ("give-back-ended-domain", give_back_ended_domain); ("barrier-delete", barrier_delete);
       ("barrier-modify", barrier_modify);
       ("barrier-modify-immediate", barrier_modify_immediate); ("barrier-no-lock", barrier_nolock);
       ("barrier-elsewhere", barrier_elsewhere);
       ("barrier-exchange", barrier_exchange); ("barrier-mixed", barrier_mixed);
       ("barrier-other-domain", barrier_other_domain);
       ("marked-in-two-pauses", marked_in_two_pauses);
       ("pages-of-4k", pages 4096 false); ("pages-of-16k", pages 16384 false); ("pages-of-64k", pages 65536 false);
       ("pages-of-2m", pages 2097152 false);
       ("pages-refused", pages 0 true); ("use-after-teardown", misuse_after_teardown_release);
       ("hooks-replaced", hooks_replaced);
       ("hooks-replaced-under-sleeper", hooks_replaced_under_sleeper) ]
    @ misuse_tests @ if Process.is_rerun then misuse_doers else [])

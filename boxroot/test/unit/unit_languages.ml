(* SPDX-License-Identifier: MIT *)
(* C++ and programs written for 0.4.0; roots and domains. *)

open Root
open Unit_common

let cplusplus () =
  match cxx (scale 50_000) with
  | -1 -> skip "no C++ compiler"
  | 0 -> Gc.full_major ()
  | n -> fail "C++: %d" n

let compat () =
  match compat_040 (Sys.opaque_identity (text 4)) with 0 -> ()
    | n -> fail "a program written for 0.4.0 fails at point %d" n

(* Roots made here, modified and deleted there. *)
let passed_between_domains () =
  let n = 4000 in
  let roots = make n in
  minor ();
  let there () =
    check "in another domain" roots;
    for i = 0 to n - 1 do
      match i mod 4 with
      | _ when roots.(i) = none -> ()
      | 0 ->
          delete roots.(i);
          roots.(i) <- none
      | 1 -> roots.(i) <- modify roots.(i) (text i)
      | 2 ->
          delete_nolock roots.(i);
          roots.(i) <- create_or_fail (text i)
      | _ -> ()
    done;
    churn ();
    check "in another domain" roots
  in
  for _ = 1 to 4 do
    Par.join (Par.spawn there);
    collect ();
    check "back" roots
  done;
  delete_all roots

let domains_at_once () =
  let work d () =
    for round = 1 to scale 20 do
      let roots = make 500 in
      if (round + d) land 3 = 0 then Gc.major () else Gc.minor ();
      check "domains at once" roots;
      delete_all roots
    done
  in
  let ds = List.init 3 (fun d -> Par.spawn (work d)) in
  work 3 ();
  List.iter Par.join ds

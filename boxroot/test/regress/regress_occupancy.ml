(* SPDX-License-Identifier: MIT *)
(* Roots that come and go at random: how many pools they take, of those that they would fill. *)

open Root
open Regress_common

(* The same numbers in each run, and without allocation: how often the collector comes matters. *)
let state = ref 42

let random n =
  state := ((!state * 0x5DEECE66D) + 11) land 0xFFFF_FFFF_FFFF;
  (!state lsr 16) mod n

let replace roots n value =
  for _ = 1 to n do
    let i = random (Array.length roots) in
    delete roots.(i);
    roots.(i) <- create_or_fail (value i)
  done

(* The number of roots that fill so many pools; and more pools than roots may take: with slots in quarantine. *)
let filling pools = pools * pool_capacity ()
let bound roots times =
  let kept_back = if not (is_checked ()) then 0 else if pool_capacity () < 100 then 8 else 4096 in
  times * (Array.length roots + kept_back) / pool_capacity ()

let in_bounds what roots ~times pools =
  Printf.printf "%s: %d pools for %d roots, which fill %d\n" what pools (Array.length roots)
    (Array.length roots / pool_capacity ());
  if pools > bound roots times then
    fail "%s: %d roots take %d pools, more than %d" what (Array.length roots) pools (bound roots times)

let unshared () = if is_conservative () then skip "pools stay with the domain that adopted them"

(* Domains, one after the other, each of which replaces some of the roots and ends; the first domain waits for them, or
   replaces as many itself in between. With values, major cycles go on; without, there are none but those asked for. *)
let domains_replace ~main ~cycles () =
  unshared ();
  let roots = make (filling (if pool_capacity () < 100 then 200 else 16)) in
  let each = Array.length roots / 40 and domains = max 100 (scale 400) in
  let most = ref 0 and early = ref 0 in
  for d = 1 to domains do
    Par.join (Par.spawn (fun () -> replace roots each text));
    if main then replace roots each text;
    if cycles > 0 && d mod cycles = 0 then Gc.full_major ();
    most := max !most (pools_in_use ());
    if d = domains / 2 then early := !most
  done;
  Gc.full_major ();
  check "replaced by domains" roots;
  in_bounds "replaced by domains" roots ~times:3 !most;
  if !most > !early + (!early / 5) + 2 then
    fail "%d pools for the first half of the domains, and %d for the second" !early !most;
  delete_all roots

(* The same, several domains at a time: each has its share of the roots. *)
let domains_replace_together () =
  if not Par.multicore then skip "needs OCaml 5";
  unshared ();
  let roots = make (filling (if pool_capacity () < 100 then 200 else 16)) in
  let n = Array.length roots and together = 3 and rounds = max 40 (scale 150) in
  let most = ref 0 in
  for round = 1 to rounds do
    let random = Array.init together (fun k -> Random.State.make [| round; k |]) in
    List.iter Par.join
      (List.init together (fun k ->
           Par.spawn (fun () ->
               for _ = 1 to n / 60 do
                 let i = (together * Random.State.int random.(k) (n / together)) + k in
                 delete roots.(i);
                 roots.(i) <- create_or_fail (text i)
               done)));
    most := max !most (pools_in_use ())
  done;
  check "replaced together" roots;
  in_bounds "replaced by domains, some at a time" roots ~times:3 !most;
  delete_all roots

(* In one domain, with a minor collection now and then, and a major cycle. *)
let turnover ~values ~minor ~major () =
  let value i = if values then Obj.repr (ref i) else Obj.repr i in
  let n = filling (if pool_capacity () < 100 then 400 else 40) in
  let roots = Array.init n (fun i -> create_or_fail (value i)) in
  (* pools that are not found again become more slowly: many rounds show it *)
  let rounds = if is_checked () || is_sanitized () then max 10 (scale 30) else 120 and most = ref 0 in
  for round = 1 to rounds do
    for eighth = 0 to 7 do
      replace roots (n / 8) value;
      if minor > 0 && eighth mod minor = 0 then Gc.minor ();
      if major > 0 && ((round * 8) + eighth) mod major = 0 then ignore (Gc.major_slice 0);
      if round > rounds / 2 then most := max !most (pools_in_use ())
    done
  done;
  in_bounds "replaced in one domain" roots ~times:2 !most;
  Array.iteri (fun i r -> if (get r : Obj.t) <> value i then fail "root %d lost its value" i) roots;
  delete_all roots

(* Domains that stay replace, modify and delete their roots in every way, and collect, while others come and go: pools
   with room pass between all of them. *)
let shelf_beside_everything () =
  if not Par.multicore then skip "needs OCaml 5";
  let stay = 2 and each = min 4000 (5 * pool_capacity ()) in
  let roots = Array.init (stay + 1) (fun _ -> make each) in
  let running = Atomic.make true in
  let step random mine =
    let i = Random.State.int random each in
    (match Random.State.int random 8 with
     | 0 -> mine.(i) <- modify mine.(i) (text i)
     | 1 -> delete_nolock mine.(i); mine.(i) <- create_or_fail (text i)
     | 2 -> delete_elsewhere mine.(i); mine.(i) <- create_or_fail (text i)
     | _ -> delete mine.(i); mine.(i) <- create_or_fail (text i));
    match Random.State.int random 20_000 with
    | 0 -> Gc.full_major ()
    | 1 -> Root.compact ()
    | n when n < 10 -> ignore (Gc.major_slice (n * 100))
    | n when n < 60 -> Gc.minor ()
    | _ -> ()
  in
  let staying k =
    Par.spawn (fun () ->
        let random = Random.State.make [| k |] in
        while Atomic.get running do
          for _ = 1 to 200 do step random roots.(k) done;
          for _ = 1 to 20 do
            let i = Random.State.int random each in
            if not (is_text roots.(k).(i) i) then fail "a domain that stays lost a value"
          done
        done)
  in
  let others = List.init stay staying in
  for round = 1 to scale 60 do
    Par.join
      (Par.spawn (fun () ->
           let random = Random.State.make [| round; 1000 |] in
           for _ = 1 to each / 10 do step random roots.(stay) done));
    if round mod 10 = 0 then check "of domains that come and go" roots.(stay)
  done;
  Atomic.set running false;
  List.iter Par.join others;
  delete_elsewhere_done ();
  Array.iter (check "beside everything") roots;
  Array.iter delete_all roots;
  for _ = 1 to 3 do Gc.full_major () done;
  if pools_in_use () > 1 + (if is_checked () then 4096 else 0) then
    fail "%d pools in use without a root" (pools_in_use ())

(* What is on the shelf when no other domain is left: the one that is goes on with it, and teardown takes it back. *)
let shelf_left_behind () =
  let roots = make (filling 16) in
  for _ = 1 to 10 do Par.join (Par.spawn (fun () -> replace roots (Array.length roots / 4) text)) done;
  check "left behind" roots;
  for _ = 1 to 4 do replace roots (Array.length roots) text done;
  Gc.full_major ();
  check "replaced by the one that is left" roots;
  for _ = 1 to 10 do Par.join (Par.spawn (fun () -> replace roots (Array.length roots / 4) text)) done;
  teardown ();
  if pools_in_use () <> 0 then fail "%d pools in use after teardown" (pools_in_use ());
  if not (setup ()) then fail "no set-up after teardown";
  let again = make (Array.length roots) in
  Par.join (Par.spawn (fun () -> replace again (Array.length again / 4) text));
  check "after another set-up" again;
  delete_all again

(* SPDX-License-Identifier: MIT *)
(* Storages: their roots are roots as others; they are gone, and keep nothing alive, once the storage was cleared; what
   is made afterwards is not. *)

open Root
open Storage_common
open Storage_memory
open Storage_domains

let model = Storage_model.model

let basics () =
  let s = create "a name" and t = create "" in
  if name s <> "a name" || name t <> "" then fail "names: %s, %s" (name s) (name t);
  let long = create (String.make 100 'x') in
  if name long <> String.make 47 'x' then fail "the long name: %s" (name long);
  let roots = List.init 1000 (fun i -> (i, (if i mod 2 = 0 then add s (text i) else add_here s (text i)))) in
  let others = List.init 10 (fun i -> (i, add t (text (-i)))) in
  let plain = Root.create_or_fail (text 7) in
  if count s <> 1000 || count t <> 10 then fail "counts: %d, %d" (count s) (count t);
  collect ();
  List.iter (fun (i, r) -> if Root.get r <> text i then fail "value %d" i) roots;
  List.iter (fun (i, r) -> if i < 300 then Root.delete r) roots;
  collect ();
  collect ();
  if (not (is_checked ())) && count s <> 700 then fail "%d left of 700" (count s);
  clear s;
  if count s <> 0 || count t <> 10 then fail "counts after: %d, %d" (count s) (count t);
  List.iter (fun (i, r) -> if Root.get r <> text (-i) then fail "other value %d" i) others;
  if Root.get plain <> text 7 then fail "the root in none";
  let again = add s (text 5) in
  collect ();
  if Root.get again <> text 5 || count s <> 1 then fail "after: %s, %d" (Root.get again) (count s);
  clear s;
  clear s;
  delete s;
  delete long;
  delete t;
  Root.delete plain

let without_lock () =
  let s = create "" in
  let r = add s (text 1) in
  eperm s;
  if Root.get r <> text 1 then fail "another value";
  delete_elsewhere s;
  collect ()

(* Nothing is kept alive, and nothing dies too early, whatever the collector does at that moment. *)
let dropped () =
  let n = 2000 in
  for round = 1 to scale 60 do
    let s = create "" and t = create "" in
    let alive = Stdlib.Weak.create n in
    let kept = Array.init n (fun i -> add t (text i)) in
    for i = 0 to n - 1 do
      let v = ref i in
      Stdlib.Weak.set alive i (Some v);
      keep (add s v)
    done;
    for _ = 1 to round mod 30 do ignore (Gc.major_slice 1500) done;
    for i = 0 to n - 1 do if not (Stdlib.Weak.check alive i) then fail "round %d: value %d is dead" round i done;
    if round mod 3 = 0 then delete s else clear s;
    if round mod 2 = 0 then for i = 0 to n - 1 do keep (add (if round mod 3 = 0 then t else s) (text i)) done;
    collect ();
    collect ();
    for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "round %d: value %d is alive" round i done;
    Array.iteri (fun i r -> if Root.get r <> text i then fail "round %d: text %d" round i) kept;
    delete t
  done

(* While the collector marks, the program moves values from roots to a block that is marked already, and clears. *)
let moved_while_marking () =
  let n = 20_000 in
  let holder = Array.make n "" in
  for round = 1 to scale 100 do
    let s = create "" in
    let roots = Array.init n (fun i -> add s (text (i + round))) in
    collect ();
    let slices = 1 + (round mod 25) in
    if round mod 2 = 1 then Gc.minor ();
    for _ = 1 to slices do ignore (Gc.major_slice (1 + (round * 37 mod 3000))); Gc.minor () done;
    Array.iteri (fun i r -> holder.(i) <- Root.get r) roots;
    if round mod 2 = 0 then clear s else delete s;
    if round mod 3 = 0 then Gc.minor ();
    let again = create "" in
    for i = 1 to n do keep (add again i) done;
    collect ();
    Array.iteri (fun i t -> if t <> text (i + round) then fail "round %d: text %d is %s" round i t) holder;
    delete again;
    if round mod 2 = 0 then delete s
  done

(* Modifications keep a root in its storage. *)
let modified () =
  for round = 1 to scale 30 do
    let s = create "" in
    let n = 3000 in
    let roots = Array.init n (fun i -> add s (text i)) in
    if round mod 2 = 0 then Gc.minor ();
    for i = 1 to round mod 9 do ignore (Gc.major_slice (i * 500)) done;
    let change () = Array.iteri (fun i r -> roots.(i) <- Root.modify r (text (i + round))) roots in
    if round mod 3 = 0 then Par.elsewhere change else change ();
    collect ();
    Array.iteri (fun i r -> if Root.get r <> text (i + round) then fail "text %d" i) roots;
    if round mod 3 <> 0 && count s < n then fail "%d of %d" (count s) n;
    let alive = Stdlib.Weak.create n in
    Array.iteri (fun i r ->
      let v = ref i in
      Stdlib.Weak.set alive i (Some v);
      roots.(i) <- Root.modify r (Obj.magic v)) roots;
    clear s;
    collect ();
    collect ();
    for i = 0 to n - 1 do if Stdlib.Weak.check alive i then fail "value %d is alive" i done;
    delete s
  done

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_clear : 'a -> unit = "s_use_after_clear"
external delete_after_clear : 'a -> unit = "s_delete_after_clear"
external use_after_delete : 'a -> unit = "s_use_after_delete"
external delete_twice : 'a -> unit = "s_delete_twice"

let misuses =
  [ ("use-after-clear", use_after_clear, [ "use after delete"; "storage.c:103"; "storage.c:101"; "storage.c:102" ]);
    ("delete-after-clear", delete_after_clear, [ "double delete"; "storage.c:104"; "storage.c:101"; "storage.c:102" ]);
    ("use-after-delete", use_after_delete, [ "boxroot_storage_add"; "deleted"; "storage.c:105" ]);
    ("delete-twice", delete_twice, [ "boxroot_storage_delete"; "deleted"; "storage.c:106" ]) ]

let () =
  main ~slow:[ "model-domains-long"; "model-both-long" ]
    ([ ("basics", basics); ("without-lock", without_lock); ("dropped", dropped);
       ("moved-while-marking", moved_while_marking); ("modified", modified); ("memory", memory); ("cost", cost);
       ("sessions", sessions); ("batches", batches); ("reported", reported); ("names", names);
       ("many", many); ("no-memory", no_memory); ("late-deletions", late_deletions);
       ("ended-domains", ended_domains); ("cleared-by-another", cleared_by_another); ("finalisers", finalisers);
       ("dropped-elsewhere", dropped_elsewhere); ("remembered-pool", remembered_pool);
       ("at-the-end", at_the_end); ("after-the-end", after_the_end); ("forked", forked); ("torn-down", torn_down);
       ("c++", cplusplus); ("model", model ~part:1 ~domains:1 ~threads:1);
       ("model-threads", model ~part:1 ~domains:1 ~threads:3); ("model-domains", model ~part:10 ~domains:3 ~threads:1);
       ("model-both", model ~part:10 ~domains:2 ~threads:2);
       ("model-domains-long", model ~part:1 ~domains:3 ~threads:1);
       ("model-both-long", model ~part:1 ~domains:2 ~threads:2) ]
     @ Process.misuse_tests misuses)

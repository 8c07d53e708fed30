(* SPDX-License-Identifier: MIT *)
(* Wide roots: each slot is a root as others; all live and end together, and their places are used again as a whole. *)

open Root

type wide = int

external widest : unit -> int = "w_widest"
external raw_create : Obj.t array -> wide = "w_create"
external get : wide -> int -> Obj.t = "w_get"
external sum_of_refs : wide -> int -> int = "w_sum_of_refs"
external raw_modify : wide -> int -> Obj.t -> wide = "w_modify"
external delete : wide -> unit = "w_delete"
external delete_nolock : wide -> unit = "w_delete_nolock"
external delete_elsewhere : wide -> unit = "w_delete_elsewhere"
external error : unit -> string = "w_error"
external errno : Obj.t array -> int = "w_errno"
external eperm : wide -> unit = "w_eperm"
external create_all : Obj.t array -> Root.t array = "w_create_all"
external delete_all : Root.t array -> unit = "w_delete_all"
external at_end : wide -> Obj.t = "w_at_end"
external finalised : unit -> int = "w_finalised"
external made : unit -> int = "w_made"
external arm : int -> int -> unit = "o_arm"
external disarm : unit -> unit = "o_disarm"

let text i = Obj.repr ("value " ^ string_of_int i)
let is_text v i = (Obj.obj v : string) = "value " ^ string_of_int i
let create vs = match raw_create vs with 0 -> fail "no wide root: %s" (error ()) | w -> w
let modify w i v = match raw_modify w i v with 0 -> fail "not modified: %s" (error ()) | w -> w

(* Blocks without floats, so that they are no float arrays. *)
let init n f =
  let a = Array.make n (Obj.repr 0) in
  for i = 0 to n - 1 do a.(i) <- f i done;
  a

let widths = List.filter (fun n -> n <= widest ()) [ 1; 2; 3; 4; 5; 7; 8; 13; 16; 31; 63; 64 ]
let each_width f = List.iter f widths

(* --- the model ---------------------------------------------------------------------------------------------------- *)

let kinds =
  let fits = function
    | Values.Owner | Begetter | Float -> false
    | Ephemeron | Weak -> not Par.multicore
    | _ -> true
  in
  Array.of_list (List.filter fits (Array.to_list Values.kinds))

type slot = { kind : Values.kind; id : int; aux : int }
type entry = { mutable root : wide; slots : slot array }

let player ~shared seed steps =
  let rng = Random.State.make [| seed |] in
  let rnd n = Random.State.int rng n in
  let own = (Mutex.create (), Array.make 700 None) in
  let left = ref steps in
  let fresh () =
    let kind = kinds.(rnd (Array.length kinds)) and id = rnd 100_000 in
    let v = Values.make kind id in
    (v, { kind; id; aux = (if Values.has_cell kind then Values.custom_cell v else 0) })
  in
  let check e =
    Array.iteri (fun i s ->
      if not (Values.is s.kind s.id s.aux (get e.root i)) then
        fail "seed %d, %d steps left: slot %d of %d: %s %d: another value" seed !left i (Array.length e.slots)
          (Values.name s.kind) s.id) e.slots
  in
  let put entries i =
    let n = List.nth widths (rnd (List.length widths)) in
    let some = Array.init n (fun _ -> fresh ()) in
    let root = create (init n (fun i -> Obj.repr (fst some.(i)))) in
    entries.(i) <- Some { root; slots = Array.map snd some }
  in
  let remove entries i e =
    check e;
    (match rnd 20 with
     | 0 -> delete_elsewhere e.root
     | 1 | 2 | 3 -> delete_nolock e.root
     | _ -> delete e.root);
    entries.(i) <- None
  in
  let change e =
    check e;
    let v, s = fresh () and i = rnd (Array.length e.slots) in
    e.root <- modify e.root i (Obj.repr v);
    e.slots.(i) <- s
  in
  while !left > 0 do
    decr left;
    let lock, entries = if rnd 5 = 0 then shared else own in
    Mutex.lock lock;
    let i = rnd (Array.length entries) in
    (match entries.(i), rnd 10 with
     | None, _ -> put entries i
     | Some e, (0 | 1 | 2) -> remove entries i e
     | Some e, (3 | 4 | 5) -> change e
     | Some e, _ -> check e);
    if rnd 900 = 0 then Array.iteri (fun i -> function Some e -> remove entries i e | None -> ()) entries;
    Mutex.unlock lock;
    match rnd 400 with
    | 0 | 1 | 2 | 3 | 4 | 5 -> Gc.minor ()
    | 6 | 7 | 8 | 9 | 10 | 11 | 12 -> ignore (Gc.major_slice 200)
    | 13 -> if rnd 40 = 0 then Root.compact ()
    | 14 -> if rnd 20 = 0 then collect ()
    | 15 -> Thread.yield ()
    | _ -> ()
  done;
  collect ();
  Array.iteri (fun i -> function Some e -> remove (snd own) i e | None -> ()) (snd own)

let steps = scale 150_000

(* One in `part` of the steps. Domains wait for one another, and take long. *)
let model ~part ~domains ~threads () =
  if domains > 1 && not Par.multicore then skip "one domain";
  let rounds = if domains > 1 then 4 else 1 and each = steps / part / threads / if domains > 1 then 12 else 1 in
  let shared = (Mutex.create (), Array.make 500 None) in
  for round = 1 to rounds do
    (* what they made in the shared ones stays *)
    Players.all ~domains ~threads (fun n -> player ~shared (Players.seed + (100 * round) + n) each)
  done;
  Array.iter (function Some e -> delete e.root | None -> ()) (snd shared)

(* --- what they promise -------------------------------------------------------------------------------------------- *)

let basics () =
  each_width (fun n ->
    let all = Array.init 500 (fun k -> create (init n (fun i -> text (k + i)))) in
    let holds k w d = for i = 0 to n - 1 do if not (is_text (get w i) (k + i + d)) then fail "slot %d of %d" i n done in
    collect ();
    Array.iteri (fun k w -> holds k w 0) all;
    Array.iteri (fun k w -> if k mod 3 = 0 then delete w) all;
    Gc.minor ();
    Array.iteri (fun k _ -> if k mod 3 = 0 then all.(k) <- create (init n (fun i -> text (k + i + 1)))) all;
    collect ();
    Array.iteri (fun k w -> holds k w (if k mod 3 = 0 then 1 else 0)) all;
    let w = create (init n Obj.repr) in
    if sum_of_refs w n <> n * (n - 1) / 2 then fail "references of %d" n;
    delete w;
    Array.iter delete all);
  let einval = 22 in
  if errno [||] <> einval || errno (Array.make (widest () + 1) (Obj.repr 1)) <> einval then fail "errno";
  if not (Process.contains (error ()) "BOXROOT_WIDEST") then fail "said: %s" (error ());
  if errno (Array.make (widest ()) (Obj.repr 1)) <> -1 then fail "not %d" (widest ())

let without_lock () =
  let w = create (init 2 text) in
  eperm w;
  if not (is_text (get w 0) 0 && is_text (get w 1) 1) then fail "other values";
  delete_elsewhere w;
  collect ()

(* Nothing is kept alive, and nothing dies too early, whatever the collector does at that moment. *)
let deleted () =
  each_width (fun n ->
    let count = 3000 / n in
    for round = 1 to scale 20 do
      let alive = Stdlib.Weak.create (count * n) and later = Stdlib.Weak.create (count * n) in
      let value into k i =
        let v = ref (k + i) in
        Stdlib.Weak.set into ((k * n) + i) (Some v);
        Obj.repr v
      in
      let all = Array.init count (fun k -> create (init n (value alive k))) in
      for _ = 1 to round mod 30 do ignore (Gc.major_slice 1500) done;
      let check what of_weak expected =
        for i = 0 to (count * n) - 1 do
          if Stdlib.Weak.check of_weak i <> expected then fail "width %d, round %d, %s: value %d" n round what i
        done
      in
      check "before" alive true;
      if round mod 2 = 0 then
        Array.iteri (fun k w ->
          let w = ref w in
          for i = n - 1 downto 0 do w := modify !w i (value later k i) done;
          all.(k) <- !w) all;
      collect ();
      collect ();
      check "modified" alive (round mod 2 <> 0);
      if round mod 2 = 0 then check "later" later true;
      if round mod 3 = 0 then ignore (Gc.major_slice 3000);
      let delete_it k w =
        if round mod 4 = 0 && k mod 50 = 0 then delete_elsewhere w
        else if round mod 4 = 1 then delete_nolock w
        else delete w
      in
      Array.iteri delete_it all;
      collect ();
      collect ();
      check "after" alive false;
      check "after, later" later false
    done)

(* While the collector marks, the program moves values from slots to a block that is marked already, and deletes. *)
let moved_while_marking () =
  each_width (fun n ->
    let count = 20_000 / n in
    let holder = Array.make (count * n) (Obj.repr 0) in
    for round = 1 to scale 20 do
      let all = Array.init count (fun k -> create (init n (fun i -> text (k + i + round)))) in
      collect ();
      if round mod 2 = 1 then Gc.minor ();
      for _ = 1 to 1 + (round mod 25) do
        ignore (Gc.major_slice (1 + (round * 37 mod 3000)));
        Gc.minor ()
      done;
      Array.iteri (fun k w -> for i = 0 to n - 1 do holder.((k * n) + i) <- get w i done) all;
      Array.iteri (fun k w ->
        if k mod 2 = 0 then delete w
        else begin
          let w = ref w in
          for i = 0 to n - 1 do w := modify !w i (Obj.repr k) done;
          delete !w
        end) all;
      if round mod 3 = 0 then Gc.minor ();
      let again = Array.init (count / 2) (fun k -> create (init n (fun i -> Obj.repr (k + i)))) in
      collect ();
      Array.iteri (fun j t ->
        if not (is_text t ((j / n) + (j mod n) + round)) then fail "width %d, round %d: text %d" n round j) holder;
      Array.iter delete again
    done)

let memory () =
  let bounded what step = peaks ~first:(scale 60) ~others:(scale 120) ~kb:12_000 what step in
  bounded "deleted" (fun i ->
    each_width (fun n ->
      let all = Array.init (4000 / n) (fun k -> create (init n (fun _ -> Obj.repr (ref k)))) in
      if i mod 3 = 0 then Gc.minor ();
      Array.iter (if i mod 7 = 0 then delete_nolock else delete) all));
  if Par.multicore then
    bounded "of domains that end" (fun i ->
      if i mod 4 = 0 then begin
        let left = ref [||] in
        Par.join (Par.spawn (fun () ->
          left := Array.init 300 (fun k -> create (init (1 + (k mod min 5 (widest ()))) (fun _ -> Obj.repr (ref k))))));
        Array.iter delete !left
      end)

external slow : int -> int -> int * int = "w_slow"

(* Wide roots of a width are created and deleted without leaving the short way, but for one creation and one deletion in
   128 values; on OCaml 4.14 each creation is a long one. *)
let cost () =
  if is_checked () || is_sanitized () || pool_capacity () < 1000 then skip "about releases";
  List.iter (fun width ->
    ignore (slow width 1000);
    let creations, deletions = slow width 1000 in
    Printf.printf "%d values: %d creations and %d deletions of 1000 take the long way\n" width creations deletions;
    let most = (1000 * width / 128) + 2 in
    if (Par.multicore && creations > most) || deletions > most then
      fail "more than %d of width %d take the long way" most width)
    [ 1; 2; 3; 4; 8 ]

let together () =
  for n = 0 to 300 do
    let rs = create_all (init n text) in
    if n mod 10 = 0 then collect ();
    Array.iteri (fun i r -> if not (is_text (Root.get r) i) then fail "root %d of %d" i n) rs;
    delete_all rs
  done;
  let many = create_all (init 20_000 text) in
  collect ();
  Array.iteri (fun i r -> if not (is_text (Root.get r) i) then fail "root %d" i) many;
  delete_all many

(* The n-th request for memory fails, or all from the n-th on. *)
let no_memory () =
  let attempt mode n =
    let failed = ref 0 and all = ref [] and bulk = ref [] in
    let refused () =
      incr failed;
      if error () <> "no memory for more roots" then fail "said: %s" (error ());
      if !failed > 3 then disarm ()
    in
    arm mode n;
    for j = 1 to 3000 do
      let n = List.nth widths (j mod List.length widths) in
      (match raw_create (init n (fun i -> text (i + j))) with 0 -> refused () | w -> all := (w, n, j) :: !all);
      if j mod 100 = 0 then begin
        Gc.minor ();
        all := List.map (fun (w, n, k) ->
          match raw_modify w (n - 1) (text (n - 1 + k)) with
          | 0 -> refused (); (w, n, k)
          | w -> (w, n, k)) !all;
        match create_all (init 500 text) with
        | rs when Obj.is_int (Obj.repr rs) -> refused ()
        | rs -> bulk := rs :: !bulk
      end
    done;
    disarm ();
    collect ();
    List.iter (fun (w, n, j) ->
      for i = 0 to n - 1 do if not (is_text (get w i) (i + j)) then fail "slot %d of %d" i n done;
      delete w) !all;
    List.iter (Array.iteri (fun i r -> if not (is_text (Root.get r) i) then fail "root %d" i; Root.delete r)) !bulk;
    if !failed > 0 then 2 else 3
  in
  List.iter (fun mode ->
    let codes = List.init 20 (fun n -> Process.code_of_child (fun () -> attempt mode (n + 1))) in
    let failing = List.length (List.filter (( = ) 2) codes) in
    Printf.printf "%d runs in which something failed\n" failing;
    if failing < 3 then fail "nothing was tried") [ 1; 2 ]

(* Wide roots of domains that have ended stay, and end on others. *)
let ended_domains () =
  if not Par.multicore then skip "one domain";
  for round = 1 to scale 40 do
    let all = ref [||] in
    let width k = 1 + (k mod min 6 (widest ())) in
    Par.join (Par.spawn (fun () ->
      all := Array.init 2000 (fun k -> create (init (width k) (fun i -> text (k + i + round))));
      if round mod 3 = 0 then ignore (Gc.major_slice 1000)));
    for i = 1 to round mod 4 do ignore (Gc.major_slice (i * 1000)) done;
    if round mod 2 = 0 then Array.iteri (fun k w -> if k mod 2 = 0 then !all.(k) <- modify w 0 (text (k + round))) !all;
    let others = Array.init 500 (fun k -> create (init (width k) (fun i -> text (k + i)))) in
    collect ();
    let check all round =
      Array.iteri (fun k w ->
        for i = 0 to width k - 1 do if not (is_text (get w i) (k + i + round)) then fail "%d of %d" i k done;
        if k mod 3 = 0 then delete_nolock w else delete w) all
    in
    check !all round;
    check others 0
  done

let finalisers () =
  for round = 1 to scale 40 do
    let before = finalised () and before_made = made () in
    for k = 1 to 50 do keep (at_end (create (init (1 + (k mod min 4 (widest ()))) text))) done;
    if round mod 4 = 0 then collect () else if round mod 4 = 1 then Gc.minor () else ignore (Gc.major_slice 10_000);
    for i = 1 to 100 do keep (Array.make 100 i) done;
    collect ();
    collect ();
    if finalised () < before + 50 then fail "%d of 50 finalised" (finalised () - before);
    if made () < before_made + 50 then fail "%d of 50 made" (made () - before_made)
  done

let forked () =
  let all = Array.init 2000 (fun k -> create (init (1 + (k mod min 4 (widest ()))) (fun i -> text (k + i)))) in
  let use () =
    collect ();
    Array.iteri (fun k w -> if not (is_text (get w 0) k) then fail "text %d" k; delete w) all;
    let again = Array.init 2000 (fun k -> create [| text k |]) in
    collect ();
    Array.iter delete again
  in
  Process.in_child use;
  use ()

external cxx : int -> bool -> int = "w_cxx"

let cplusplus () =
  if widest () < 3 then skip "tiny pools";
  let run check = match cxx 3000 check with 0 -> () | wrong -> fail "%d wrong" wrong in
  run false;
  collect ();
  run true;
  collect ()

let torn_down () =
  let all = Array.init 3000 (fun k -> create (init (1 + (k mod min 4 (widest ()))) (fun i -> text (k + i)))) in
  Root.teardown ();
  if raw_create [| text 1 |] <> 0 then fail "used after teardown";
  Array.iteri (fun k w -> if k mod 2 = 0 then delete w) all;
  if not (Root.setup ()) then fail "no second start";
  for round = 1 to 3 do
    let width k = 1 + (k mod min 4 (widest ())) in
    let all = Array.init 2000 (fun k -> create (init (width k) (fun i -> text (k + i + round)))) in
    collect ();
    Array.iteri (fun k w -> if not (is_text (get w 0) (k + round)) then fail "text %d" k; delete w) all
  done

(* --- misuse ------------------------------------------------------------------------------------------------------- *)

external use_after_delete : 'a -> unit = "w_use_after_delete"
external delete_twice : 'a -> unit = "w_delete_twice"
external out_of_range : 'a -> unit = "w_out_of_range"
external second_slot : 'a -> unit = "w_second_slot"
external delete_all_twice : 'a -> unit = "w_delete_all_twice"

let misuses =
  [ ("use-after-delete", use_after_delete, [ "use after delete"; "wide.c:103"; "wide.c:101"; "wide.c:102" ]);
    ("delete-twice", delete_twice, [ "double delete"; "wide.c:104"; "wide.c:101"; "wide.c:102" ]);
    ("out-of-range", out_of_range, [ "slot 3 of a wide root with 3"; "wide.c:105" ]);
    ("second-slot", second_slot, [ "never a root"; "wide.c:106" ]);
    ("delete-all-twice", delete_all_twice, [ "double delete"; "wide.c:107"; "wide.c:101" ]) ]

let () =
  main ~slow:[ "model-domains-long"; "model-both-long" ]
    ([ ("basics", basics); ("without-lock", without_lock); ("deleted", deleted);
       ("moved-while-marking", moved_while_marking); ("memory", memory); ("cost", cost); ("together", together);
       ("no-memory", no_memory); ("ended-domains", ended_domains); ("finalisers", finalisers); ("forked", forked);
       ("torn-down", torn_down); ("c++", cplusplus); ("model", model ~part:1 ~domains:1 ~threads:1);
       ("model-threads", model ~part:1 ~domains:1 ~threads:3); ("model-domains", model ~part:10 ~domains:3 ~threads:1);
       ("model-both", model ~part:10 ~domains:2 ~threads:2);
       ("model-domains-long", model ~part:1 ~domains:3 ~threads:1);
       ("model-both-long", model ~part:1 ~domains:2 ~threads:2) ]
     @ Process.misuse_tests misuses)

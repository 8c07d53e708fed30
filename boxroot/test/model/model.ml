(* SPDX-License-Identifier: MIT *)
(* Model-based random tester. Players (one per domain or thread) do random operations on roots; each keeps, in plain integers, what
   every root that it owns must hold. After each step some of them are checked, and all of them every so often.

     model --seed N --steps N [--domains N] [--threads N] [--lives N] [--idle-main] [--full-every N] [--no-restart] [--no-ephemerons] [--trace]

   With one domain and one thread, the same seed does the same again. *)

open Values

external storm : int -> int -> unit = "m_storm"
external born : unit -> Root.t * int = "m_born"

let seed = ref 0
let steps = ref 4000
let domains = ref 1
let threads = ref 1
let lives = ref 1
let idle_main = ref false
let full_every = ref 256
let trace = ref false
let restarts = ref true
let ephemerons = ref true

(* --- players ---------------------------------------------------------------------------------------------------------- *)

let room = 8192

type player = {
  label : string;
  seed : int;
  number : int;
  mutable random : int;
  mutable serial : int;
  mutable step : int;
  mutable doing : string;
  mutable target : int; (* how many roots it would like to have *)
  mutable n : int;
  roots : Root.t array; (* [0, n) *)
  kind : kind array;
  id : int array;
  aux : int array;
}

let next_number = Atomic.make 0

let player label seed =
  { label; seed; number = Atomic.fetch_and_add next_number 1; random = seed; serial = 0; step = 0; doing = "start"; target = 50; n = 0;
    roots = Array.make room Root.none; kind = Array.make room Immediate; id = Array.make room 0; aux = Array.make room 0 }

(* splitmix, on 63 bits *)
let mix z =
  let z = (z lxor (z lsr 30)) * 0x3f58476d1ce4e5b9 in
  let z = (z lxor (z lsr 27)) * 0x14d049bb133111eb in
  z lxor (z lsr 31)

let random p bound =
  p.random <- p.random + 0x1e3779b97f4a7c15;
  (mix p.random land max_int) mod bound

let one_in p n = random p n = 0

let fresh_id p =
  p.serial <- p.serial + 1;
  (p.serial * 1009) + p.number

let complain p what =
  Printf.eprintf "FAILED: player %s (seed %d), step %d (%s): %s\n%!" p.label p.seed p.step p.doing what;
  Root.exit_now 1

(* --- roots ------------------------------------------------------------------------------------------------------------- *)

let describe p i = Printf.sprintf "root %d/%d at 0x%x, %s %d" i p.n p.roots.(i) (name p.kind.(i)) p.id.(i)

let check p i =
  let r = p.roots.(i) in
  let v : Obj.t = if r land 64 = 0 then Root.get r else Root.deref (Root.get_ref r) in
  if not (is p.kind.(i) p.id.(i) p.aux.(i) v) then complain p ("does not hold its value: " ^ describe p i)

let check_all p = for i = 0 to p.n - 1 do check p i done
let check_some p = if p.n > 0 then for _ = 1 to 4 do check p (random p p.n) done
let cell_hold kind aux by = if has_cell kind then hold aux by

let push p r kind id aux =
  if r = Root.none then complain p "boxroot_create returned NULL";
  p.roots.(p.n) <- r;
  p.kind.(p.n) <- kind;
  p.id.(p.n) <- id;
  p.aux.(p.n) <- aux;
  p.n <- p.n + 1

let forget p i =
  let l = p.n - 1 in
  p.n <- l;
  p.roots.(i) <- p.roots.(l);
  p.kind.(i) <- p.kind.(l);
  p.id.(i) <- p.id.(l);
  p.aux.(i) <- p.aux.(l)

let frequent = [| Immediate; Small; Text; Mutable; Infix; Custom; Owner |]

let some_kind p =
  match if one_in p 2 then frequent.(random p (Array.length frequent)) else kinds.(random p (Array.length kinds)) with
  | (Ephemeron | Weak) when not !ephemerons -> Small
  | kind -> kind

let value_of kind id =
  let v = make kind id in
  (v, if has_cell kind then custom_cell v else 0)

let create p =
  if p.n < room then begin
    let kind = some_kind p and id = fresh_id p in
    let v, aux = value_of kind id in
    cell_hold kind aux 1;
    let r = if one_in p 2 then Root.create v else Root.create_plain v in
    push p r kind id aux
  end

(* A second root for the value of another. *)
let duplicate p =
  if p.n > 0 && p.n < room then begin
    let i = random p p.n in
    if not (sole p.kind.(i)) then begin
      cell_hold p.kind.(i) p.aux.(i) 1;
      push p (Root.create (Root.get p.roots.(i))) p.kind.(i) p.id.(i) p.aux.(i)
    end
  end

(* Ends root i in one of the ways there are, the model having forgotten it. *)
let end_root p r =
  match random p 12 with
  | 0 | 1 -> Root.delete_nolock r
  | 2 | 3 when not (Root.is_thread_unsafe ()) -> Root.delete_elsewhere r
  | 4 -> Root.delete_plain r
  | _ -> Root.delete r

let delete p i =
  if one_in p 4 then check p i;
  let r = p.roots.(i) and kind = p.kind.(i) and id = p.id.(i) and aux = p.aux.(i) in
  if kind = Continuation && one_in p 2 then begin
    let total = Par.finish (Root.get r) in
    if total <> id + aux then complain p (Printf.sprintf "a continuation counted %d instead of %d" total (id + aux))
  end;
  cell_hold kind aux (-1);
  forget p i;
  end_root p r

let delete_some p = if p.n > 0 then delete p (random p p.n)

let modify p =
  if p.n > 0 then begin
    let i = random p p.n in
    let kind = some_kind p and id = fresh_id p in
    let v, aux = value_of kind id in
    cell_hold kind aux 1;
    cell_hold p.kind.(i) p.aux.(i) (-1);
    let r = if one_in p 2 then Root.modify p.roots.(i) v else Root.modify_plain p.roots.(i) v in
    if r = Root.none then complain p ("boxroot_modify failed: " ^ describe p i);
    p.roots.(i) <- r;
    p.kind.(i) <- kind;
    p.id.(i) <- id;
    p.aux.(i) <- aux;
    check p i
  end

(* The same cell must serve all modifications between two minor collections. *)
let modify_often p =
  if p.n > 0 then begin
    let i = random p p.n in
    cell_hold p.kind.(i) p.aux.(i) (-1);
    for k = 1 to 1 + random p 20 do
      p.roots.(i) <- Root.modify p.roots.(i) (-k);
      if p.roots.(i) = Root.none then complain p "boxroot_modify failed"
    done;
    let id = fresh_id p in
    p.roots.(i) <- Root.modify p.roots.(i) (make Small id);
    p.kind.(i) <- Small;
    p.id.(i) <- id;
    p.aux.(i) <- 0
  end

(* Changes what a root holds, or the root along with it. *)
let bump p =
  if p.n > 0 then begin
    let i = random p p.n in
    match p.kind.(i) with
    | Mutable ->
        let cell : (int * string) ref = Root.get p.roots.(i) in
        p.aux.(i) <- p.aux.(i) + 1;
        cell := (p.aux.(i), string_of_int p.id.(i))
    | Continuation ->
        let n = random p 1000 in
        let k = Par.resume (Root.get p.roots.(i)) n in
        p.roots.(i) <- Root.modify p.roots.(i) k;
        if p.roots.(i) = Root.none then complain p "boxroot_modify failed";
        p.aux.(i) <- p.aux.(i) + n
    | _ -> check p i
  end

let exchange_values p =
  if p.n > 1 then begin
    let i = random p p.n and j = random p p.n in
    if i <> j then begin
      let vi : Obj.t = Root.get p.roots.(i) and vj : Obj.t = Root.get p.roots.(j) in
      p.roots.(i) <- Root.modify p.roots.(i) vj;
      p.roots.(j) <- Root.modify p.roots.(j) vi;
      if p.roots.(i) = Root.none || p.roots.(j) = Root.none then complain p "boxroot_modify failed";
      let swap a =
        let x = a.(i) in
        a.(i) <- a.(j);
        a.(j) <- x
      in
      swap p.id;
      swap p.aux;
      let k = p.kind.(i) in
      p.kind.(i) <- p.kind.(j);
      p.kind.(j) <- k
    end
  end

(* The address that boxroot_get_ref gives stays good while the GC moves the value. *)
let keep_reference p =
  if p.n > 0 then begin
    let i = random p p.n in
    let ref = Root.get_ref p.roots.(i) in
    if one_in p 3 then Gc.full_major () else Gc.minor ();
    if (Root.deref ref : Obj.t) != Root.get p.roots.(i) then complain p ("a reference went stale: " ^ describe p i);
    check p i
  end

let batch p =
  let n = min (1 + random p 300) (room - p.n) and way = random p 4 in
  let first = p.n in
  for _ = 1 to n do
    let id = fresh_id p in
    push p (Root.create (make Small id)) Small id 0
  done;
  if one_in p 3 then Gc.minor ();
  match way with
  | 0 -> for i = first + n - 1 downto first do delete p i done
  | 1 -> while p.n > first do delete p first done
  | 2 -> while p.n > first do delete p (first + random p (p.n - first)) done
  | _ -> ()

let storms p = storm (1 + random p 3000) p.random

let collect_born p =
  let r, id = born () in
  if r <> Root.none then if p.n < room then push p r Immediate id 0 else Root.delete r

(* --- between players ------------------------------------------------------------------------------------------------------- *)

type parcel = { root : Root.t; k : kind; i : int; a : int }

let lock = Mutex.create ()

let locked f =
  Mutex.lock lock;
  let x = f () in
  Mutex.unlock lock;
  x

let mailbox : parcel option array = Array.make 64 None
let legacy : parcel list ref = ref []

let parcel p i = { root = p.roots.(i); k = p.kind.(i); i = p.id.(i); a = p.aux.(i) }
let unpack p { root; k; i; a } = push p root k i a

let exchange p =
  let slot = random p 64 in
  let out =
    if p.n > 0 && not (one_in p 3) then begin
      let i = random p p.n in
      let x = parcel p i in
      forget p i;
      Some x
    end
    else None
  in
  let got =
    locked (fun () ->
        let got = mailbox.(slot) in
        mailbox.(slot) <- out;
        got)
  in
  match got with
  | None -> ()
  | Some x ->
      if p.n = room then delete p 0;
      unpack p x;
      let i = p.n - 1 in
      check p i;
      (match random p 4 with 0 -> delete p i | _ -> ())

let bequeath p =
  let all = List.init p.n (parcel p) in
  p.n <- 0;
  locked (fun () -> legacy := List.rev_append all !legacy)

let inherit_some p limit =
  for _ = 1 to limit do
    match
      locked (fun () ->
          match !legacy with
          | [] -> None
          | x :: rest ->
              legacy := rest;
              Some x)
    with
    | Some x when p.n < room ->
        unpack p x;
        check p (p.n - 1)
    | Some x -> locked (fun () -> legacy := x :: !legacy)
    | None -> ()
  done

(* --- the collector ----------------------------------------------------------------------------------------------------------- *)

let alone () = !domains = 1 && !threads = 1

let burst p =
  let keep = ref [] in
  for i = 0 to random p 4000 do
    let s = opaque (Bytes.create (8 + random p 200)) in
    if i land 15 = 0 then keep := s :: !keep
  done;
  ignore (opaque !keep)

let minor_sizes = [| 1024; 4096; 8192; 32768 |]
let resize_minor p = Gc.set { (Gc.get ()) with minor_heap_size = minor_sizes.(random p 4); space_overhead = 40 + random p 160 }

let thoroughly p f =
  f ();
  if p.n < 100 || one_in p 4 then check_all p

(* Teardown, and a new life; only where nobody else is. *)
let restart p =
  if !restarts && alone () && not (Root.is_rival ()) then begin
    Array.iteri
      (fun i x ->
        Option.iter (fun x -> if p.n = room then delete p 0; unpack p x) x;
        mailbox.(i) <- None)
      mailbox;
    while p.n > 0 do delete p (p.n - 1) done;
    let tries = ref 0 in
    while
      let r, _ = born () in
      if r <> Root.none then Root.delete r;
      r <> Root.none || customs_alive () > 0
    do
      incr tries;
      if !tries > 10_000 then complain p (Printf.sprintf "%d custom blocks are never collected although no root is left" (customs_alive ()));
      Gc.full_major ()
    done;
    Root.delete_elsewhere_done ();
    let r = Array.init (random p 100) (fun i -> Root.create_or_fail (string_of_int i)) in
    if one_in p 2 then Gc.minor ();
    if one_in p 2 then ignore (Gc.major_slice 100);
    Array.iteri (fun i r -> if i land 1 = 0 then Root.delete r) r;
    Root.teardown ();
    if Root.status () <> Root.tore_down then complain p "the status after boxroot_teardown is wrong";
    if Root.create 1 <> Root.none then complain p "boxroot_create succeeded after boxroot_teardown";
    if not (Root.is_checked ()) then Array.iteri (fun i r -> if i land 1 = 1 then Root.delete r) r;
    if one_in p 2 then Gc.full_major ();
    if not (Root.setup ()) then complain p "boxroot_setup failed after boxroot_teardown"
  end

let operations =
  [| (120, "create", create); (90, "delete", delete_some); (30, "modify", modify); (12, "modify often", modify_often); (25, "bump", bump);
     (15, "exchange values", exchange_values); (15, "duplicate", duplicate); (6, "reference", keep_reference); (6, "batch", batch);
     (4, "storm", storms); (8, "born", collect_born); (40, "exchange", exchange); (10, "burst", burst);
     (10, "minor", fun p -> thoroughly p Gc.minor);
     (16, "slice", fun p -> thoroughly p (fun () -> ignore (Gc.major_slice (random p 5000))));
     (2, "major", fun p -> thoroughly p Gc.major); (2, "full major", fun p -> thoroughly p Gc.full_major);
     (1, "compact", fun p -> if one_in p 3 then thoroughly p Root.compact); (1, "resize", fun p -> if one_in p 4 then resize_minor p);
     (8, "nap", fun p -> Root.nap (if one_in p 4 then random p 50 else 0)); (4, "inherit", fun p -> inherit_some p 20);
     (1, "restart", fun p -> if one_in p 2 then restart p) |]

let total_weight = Array.fold_left (fun s (w, _, _) -> s + w) 0 operations

let operation p =
  if p.n < p.target && one_in p 2 then (0, "create", create)
  else if p.n > p.target && not (one_in p 3) then (0, "delete", delete_some)
  else begin
    let x = ref (random p total_weight) and found = ref operations.(0) in
    (try
       Array.iter
         (fun ((w, _, _) as op) ->
           if !x < w then (
             found := op;
             raise Exit);
           x := !x - w)
         operations
     with Exit -> ());
    !found
  end

let targets = [| 0; 3; 20; 60; 200; 800 |]

let play p count =
  for _ = 1 to count do
    p.step <- p.step + 1;
    if one_in p 300 then p.target <- targets.(random p (Array.length targets));
    let _, name, f = operation p in
    p.doing <- name;
    if !trace then Printf.eprintf "%s %d %s (%d roots)\n%!" p.label p.step name p.n;
    f p;
    check_some p;
    if p.step mod !full_every = 0 then check_all p
  done;
  p.doing <- "end";
  check_all p

(* --- domains and threads ------------------------------------------------------------------------------------------------------- *)

let running : Par.domain list ref = ref []

let life label seed count =
  let one t () =
    let label = if t = 0 then label else Printf.sprintf "%s.%d" label t in
    let p = player label (seed + (t * 7919)) in
    if not (alone ()) then Printf.printf "player %s: seed %d\n%!" label p.seed;
    inherit_some p 500;
    play p (count / !threads);
    p
  in
  let others = List.init (!threads - 1) (fun t -> Thread.create (fun () -> bequeath (one (t + 1) ())) ()) in
  let p = one 0 () in
  List.iter Thread.join others;
  p

(* A domain plays, starts its successor, and ends with its roots left to whoever comes. *)
let rec dynasty d generation () =
  let p = life (Printf.sprintf "%d/%d" d generation) (mix ((!seed * 64) + (generation * 8) + d) land 0xffffff) (!steps / !lives) in
  if generation + 1 < !lives then start d (generation + 1);
  if generation land 1 = 0 then begin
    (* in the middle of a cycle, with young roots *)
    ignore (Gc.major_slice 10);
    for _ = 1 to 20 do create p done
  end;
  bequeath p

and start d generation =
  let domain = Par.spawn (dynasty d generation) in
  locked (fun () -> running := domain :: !running)

let rec join_all () =
  match
    locked (fun () ->
        match !running with
        | [] -> None
        | d :: rest ->
            running := rest;
            Some d)
  with
  | None -> ()
  | Some d ->
      Par.join d;
      join_all ()

let settle p =
  let rec go n =
    let r, _ = born () in
    if r <> Root.none then begin
      Root.delete r;
      go n
    end
    else if customs_alive () > 0 then
      if n = 0 then complain p (Printf.sprintf "%d custom blocks are never collected although no root is left" (customs_alive ()))
      else begin
        Root.delete_elsewhere_done ();
        ignore (Root.pools_in_use ());
        Gc.full_major ();
        go (n - 1)
      end
  in
  go 30

let () =
  Arg.parse
    [ ("--seed", Arg.Set_int seed, "N"); ("--steps", Arg.Set_int steps, "N per domain"); ("--domains", Arg.Set_int domains, "N");
      ("--threads", Arg.Set_int threads, "N per domain"); ("--lives", Arg.Set_int lives, "N domains after one another");
      ("--idle-main", Arg.Set idle_main, " the main domain does not use the library"); ("--full-every", Arg.Set_int full_every, "N steps");
      ("--no-restart", Arg.Clear restarts, " no boxroot_teardown in mid-course");
      ("--no-ephemerons", Arg.Clear ephemerons, " no weak pointers: the runtime of OCaml 5 can fail on them when domains end");
      ("--trace", Arg.Set trace, " print each step") ]
    (fun s -> raise (Arg.Bad s))
    "model";
  if !seed = 0 then begin
    Random.self_init ();
    seed := 1 + Random.bits ()
  end;
  if (!domains > 1 || !lives > 1 || !idle_main) && not Par.multicore then Root.skip "needs OCaml 5";
  Printf.printf "model --seed %d --steps %d --domains %d --threads %d --lives %d%s --full-every %d\n%!" !seed !steps !domains !threads !lives
    (String.concat ""
       [ (if !idle_main then " --idle-main" else ""); (if !restarts then "" else " --no-restart"); (if !ephemerons then "" else " --no-ephemerons") ])
    !full_every;
  for d = 1 to !domains - 1 do start d 0 done;
  if !idle_main then start 0 0 else bequeath (life "0/0" !seed !steps);
  join_all ();
  (* What is left must be whole, wherever it came from, and go when it is given up. *)
  let p = player "end" !seed in
  p.doing <- "final check";
  Array.iteri (fun i x -> match x with Some x -> mailbox.(i) <- None; legacy := x :: !legacy | None -> ()) mailbox;
  let count = List.length !legacy in
  let last f =
    while !legacy <> [] do
      inherit_some p room;
      f ();
      while p.n > 0 do delete p (p.n - 1) done
    done
  in
  let rest = !legacy in
  Gc.full_major ();
  let check_rest () =
    List.iter
      (fun x ->
        p.n <- 0;
        unpack p x;
        check p 0)
      rest;
    p.n <- 0
  in
  check_rest ();
  Root.compact ();
  check_rest ();
  last (fun () -> check_all p);
  settle p;
  Gc.full_major ();
  Gc.full_major ();
  let left = Root.pools_in_use () in
  Printf.printf "done: %d roots were left to the end, %d pools in use after\n%!" count left;
  if left > 64 + (8 * !domains * !lives) then complain p (Printf.sprintf "%d pools are in use although no root is left" left)

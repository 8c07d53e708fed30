(* SPDX-License-Identifier: MIT *)
(* Several domains. *)
open Linear_checks
open Linear_domains
module N = Lists.Make (Ints) ()
module Q = L.Queue.Make (Ints) ()
module S = Lists.Make (L.Rooted (Text) ()) ()
module Key = struct
  include Ints

  let compare (a : int) b = compare a b
end
module Texts = L.Rooted (Text) ()
module T = L.Map.Make (Key) (Texts) ()

(* Each has its own containers, in pools that all use. *)
let domains () =
  let work id () =
    let random = Random.State.make [| id |] in
    let l = ref (N.create ()) and s = ref (S.create ()) and t = ref (T.create ()) and n = ref 0 and sum = ref 0 in
    for i = 1 to 20_000 do
      l := N.cons i !l;
      s := S.cons (string_of_int i) !s;
      sum := !sum + i;
      incr n;
      let k = Random.State.int random 500 in
      t := if i land 1 = 0 then T.add k (string_of_int k) !t else T.remove k !t;
      if i mod 1000 = 0 then begin
        l := N.rev !l;
        s := S.rev !s;
        if i mod 5000 = 0 then Gc.full_major ()
      end
    done;
    (!l, !s, !t, !n, !sum)
  in
  (* What a domain made is used by another. *)
  List.init several (fun id -> spawn (work id))
  |> List.iter (fun join ->
         let l, s, t, n, sum = join () in
         check "numbers" (N.length l = n && N.fold ( + ) 0 l = sum);
         check "texts" (S.fold (fun a v -> a + int_of_string v) 0 s = sum);
         check "map" (T.fold (fun k v good -> good && string_of_int k = v) t true);
         N.close l;
         S.close s;
         T.close t);
  check "nothing is left" (N.live () = 0 && S.live () = 0 && T.live () = 0);
  whole "numbers" (N.check ());
  whole "texts" (S.check ());
  whole "map" (T.check ())

(* Owners that end with their domains. *)
let ended () =
  for _ = 1 to 20 do
    List.init several (fun _ -> spawn (fun () -> ignore (opaque (N.of_list (List.init 100 Fun.id)))))
    |> List.iter (fun join -> join ())
  done;
  collect ();
  check "forgotten in domains that ended" (N.live () = 0)

(* Two at once on one container: one of them is told so; nothing is lost. *)
let racing () =
  let most = 20_000 in
  let l = Atomic.make (S.create ()) and t = Atomic.make (T.create ()) and q = Q.create () in
  let made = Atomic.make 0 and taken = Atomic.make 0 and keys = Atomic.make 0 in
  let work id () =
    let random = Random.State.make [| id |] in
    while Atomic.get made < most do
      (match Random.State.int random 6 with
      | 0 -> (
          match S.cons "element" (Atomic.get l) with
          | l' -> Atomic.set l l'; Atomic.incr made
          | exception (L.Borrowed | L.Moved) -> ())
      | 1 -> (
          match S.uncons (Atomic.get l) with
          | Some (v, l') -> Atomic.set l l'; Atomic.incr taken; check "of its type" (v = "element")
          | None | (exception (L.Borrowed | L.Moved)) -> ())
      | 2 -> (
          match S.fold (fun n v -> n + String.length v) 0 (Atomic.get l) with
          | n -> check "fold" (n mod 7 = 0)
          | exception (L.Borrowed | L.Moved) -> ())
      | 3 -> (
          let k = Random.State.int random 300 in
          match (if k land 1 = 0 then T.add k (string_of_int k) else T.remove k) (Atomic.get t) with
          | t' -> Atomic.set t t'
          | exception (L.Borrowed | L.Moved) -> ())
      | 4 -> (
          let k = Random.State.int random 300 in
          match T.find k (Atomic.get t) with
          | Some v -> check "of its type" (v = string_of_int k)
          | None | (exception (L.Borrowed | L.Moved)) -> ())
      | _ -> (
          match Q.push id q with
          | () -> Atomic.incr keys
          | exception L.Borrowed -> ()));
      if Random.State.int random 1000 = 0 then Gc.minor ()
    done
  in
  List.init several (fun id -> spawn (work id)) |> List.iter (fun join -> join ());
  let l = Atomic.get l and t = Atomic.get t in
  check "elements" (S.length l = Atomic.get made - Atomic.get taken && S.live () = S.length l);
  check "in the list" (List.length (S.to_list l) = S.length l);
  check "queue" (Q.length q = Atomic.get keys && Q.live () = Q.length q);
  T.borrow t (fun view -> ignore (Linear_maps.height Fun.id min_int max_int view));
  check "map" (T.live () = T.length t);
  S.close l;
  T.close t;
  Q.close q;
  whole "racing" (S.check ());
  whole "racing" (T.check ())

(* The same of tables, with a bound and without, until so many elements were put there: who has the table may lose the
   processor, and all that others want is refused meanwhile, or all but reading. *)
module W =
  L.Table.Make (Strings_hashed) (Texts) ()

let racing_tables most =
  let gone = Atomic.make 0 and added = Atomic.make 0 in
  let t = W.create ?most ~evicted:(fun k v -> check "evicted of its key" (k = v); Atomic.incr gone) () in
  let work id () =
    let random = Random.State.make [| id |] in
    let step k =
      match Random.State.int random 20 with
      | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 -> W.replace k k t; Atomic.incr added
      | 8 | 9 | 10 | 11 -> Option.iter (fun v -> check "of its key" (v = k)) (W.find k t)
      | 12 | 13 | 14 | 15 -> W.remove k t
      | 16 when Random.State.int random 100 = 0 -> W.iter (fun k v -> check "of its key" (k = v)) t
      | 17 when Random.State.int random 500 = 0 -> W.filter (fun k v -> k = v) t
      | _ -> ignore (W.mem k t)
    in
    while Atomic.get added < 16_000 do
      try step ("key " ^ string_of_int (Random.State.int random 3000)) with L.Borrowed -> ()
    done
  in
  List.init several (fun id -> spawn (work id)) |> List.iter (fun join -> join ());
  check "whole" (W.check_table t = "" && W.live () = W.length t);
  Option.iter (fun most -> check "the bound" (W.length t <= most && Atomic.get gone > 0)) most;
  W.iter (fun k v -> check "of its key" (k = v)) t;
  W.close t;
  check "nothing is left" (W.live () = 0 && L.Text.live () = 0);
  whole "tables" (W.check ())

(* Lists that several append to each other, queues that they empty into each other, maps that they close. *)
let racing_pairs () =
  let lists = Array.init 3 (fun _ -> Atomic.make (S.create ())) and queues = Array.init 3 (fun _ -> Q.create ()) in
  let made = Atomic.make 0 and taken = Atomic.make 0 and pushed = Atomic.make 0 and popped = Atomic.make 0 in
  let lost = Atomic.make 0 in
  let work id () =
    let random = Random.State.make [| id |] in
    let told f = try f () with L.Borrowed | L.Moved -> () in
    for _ = 1 to 10_000 do
      let i = Random.State.int random 3 and j = Random.State.int random 3 in
      let l = Atomic.get lists.(i) and l' = Atomic.get lists.(j) in
      told (fun () ->
          match Random.State.int random 5 with
          | 0 | 1 ->
              let l = S.cons "element" l in
              Atomic.incr made;
              Atomic.set lists.(i) l
          | 2 -> Option.iter (fun (_, l) -> Atomic.incr taken; Atomic.set lists.(i) l) (S.uncons l)
          | 3 ->
              (* Who has [l'] has nothing any more: put an empty one there, unless that was done. *)
              let all = if Random.State.bool random then S.append l l' else S.rev_append l l' in
              Atomic.set lists.(i) all;
              if not (Atomic.compare_and_set lists.(j) l' (S.create ())) then Atomic.incr lost
          | _ -> ignore (S.fold (fun n v -> if v = "element" then n + 1 else raise Stop) 0 l));
      told (fun () ->
          match Random.State.int random 4 with
          | 0 | 1 -> Q.push id queues.(i); Atomic.incr pushed
          | 2 -> if Q.pop queues.(i) <> None then Atomic.incr popped
          | _ -> Q.transfer queues.(i) queues.(j))
    done
  in
  List.init several (fun id -> spawn (work id)) |> List.iter (fun join -> join ());
  let all = Array.fold_left (fun n q -> n + Q.length q) 0 queues in
  check "queues" (all = Atomic.get pushed - Atomic.get popped && Q.live () = all);
  Array.iter (fun q -> check "in the queue" (List.length (Q.to_list q) = Q.length q); Q.close q) queues;
  let usable = ref 0 in
  Array.iter
    (fun l ->
      let l = Atomic.get l in
      match S.to_list l with
      | all -> check "in the list" (List.length all = S.length l); usable := !usable + S.length l; S.close l
      | exception L.Moved -> Atomic.incr lost)
    lists;
  check "no more than was made" (!usable <= Atomic.get made - Atomic.get taken);
  collect ();
  check "nothing is left" (S.live () = 0 && Q.live () = 0);
  whole "lists" (S.check ());
  whole "queues" (Q.check ())

let pairs () =
  racing_tables None;
  racing_tables (Some 200);
  racing_pairs ()

type term = Leaf of int | Pair of term * term

module C =
  L.Cells.Make
    (struct
      type t = term

      let example = Pair (Leaf 1, Leaf 2)
    end)
    ()

(* Two that take the same cells. *)
let taking () =
  let all = Array.init 20_000 (fun i -> C.make (Leaf (opaque i))) in
  let got = Atomic.make 0 in
  let work () =
    Array.iteri
      (fun i c ->
        match C.take c with
        | t ->
            check "fields" (L.Cells.fields t = Leaf i);
            Atomic.incr got;
            C.drop (C.token t)
        | exception (L.Moved | Invalid_argument _) -> ())
      all
  in
  List.init several (fun _ -> spawn work) |> List.iter (fun join -> join ());
  check "each was taken once" (Atomic.get got = 20_000 && C.live () = 0);
  whole "taking" (C.check ())

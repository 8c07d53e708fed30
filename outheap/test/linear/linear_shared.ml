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

type term = Leaf of int | Pair of term * term

module C =
  L.Cells.Make
    (struct
      type t = term
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

(* SPDX-License-Identifier: MIT *)
type +'a hash_consed = { hkey : int; tag : int; node : 'a }

external start : unit -> bool = "outheap_hashcons_ml_start"

(* Cells take their addresses from those of regions. *)
let off_heap = start () && Outheap_region.can_delete

let refuse why = invalid_arg ("Outheap_hashcons.hashcons: " ^ why)

(* Tables with values outside the heap: the C code has slots, the copy of nodes, and the lock. *)
module Off_heap = struct
  type 'a t

  external create : int -> 'a t = "outheap_hashcons_ml_create"
  external clear : 'a t -> unit = "outheap_hashcons_ml_clear"

  (* The result is [Obj.repr 0] if there is none. *)
  external find : 'a t -> (int[@untagged]) -> 'a hash_consed
    = "outheap_hashcons_ml_find_byte" "outheap_hashcons_ml_find"
  [@@noalloc]

  (* A search for the cells with one hash: struct outheap_hashcons_table_search. *)
  type search = {
    mutable epoch : int; mutable at : int; mutable newer : int; mutable since : int;
    mutable is_new : bool; (* the last result was made, not found *)
  }
  [@@warning "-69"]

  external next : 'a t -> (int[@untagged]) -> 'a -> search -> 'a hash_consed -> 'a hash_consed
    = "outheap_hashcons_ml_next_byte" "outheap_hashcons_ml_next"
  [@@noalloc]

  external insert : 'a t -> (int[@untagged]) -> 'a -> 'a hash_consed
    = "outheap_hashcons_ml_insert_byte" "outheap_hashcons_ml_insert"
  [@@noalloc]

  external explain : 'a -> string = "outheap_hashcons_ml_explain"
  external pace : int -> unit = "outheap_hashcons_ml_pace"
  external finish : unit -> unit = "outheap_hashcons_ml_finish"
  external elements : 'a t -> 'a hash_consed array = "outheap_hashcons_ml_elements"
  external sizes : 'a t -> int * int = "outheap_hashcons_ml_sizes"

  let is_cell c = Obj.is_block (Obj.repr c)
  let every = 256 (* a power of two *)

  let made c = if c.tag land (every - 1) = 0 then pace every (* tags count what is made *)
  let why c d = if (Obj.magic c : int) = 1 then raise Out_of_memory else refuse (explain d)

  (* [c] has this hash and another node. *)
  let rec search equal t hkey d s c =
    let c = next t hkey d s c in
    if not (is_cell c) then why c d
    else if s.is_new then (
      made c;
      c)
    else if equal c.node d then c
    else search equal t hkey d s c

  let rec hashcons equal t hkey d =
    let c = find t hkey in
    if is_cell c then
      if equal c.node d then c
      else search equal t hkey d { epoch = 0; at = 0; newer = 0; since = 0; is_new = false } c
    else
      let c = insert t hkey d in
      if is_cell c then (
        made c;
        c)
      else if (Obj.magic c : int) = 0 then hashcons equal t hkey d
      else why c d

  let to_array t =
    finish ();
    let a = elements t in
    let n = ref (Array.length a) in
    while !n > 0 && not (is_cell a.(!n - 1)) do decr n done;
    Array.sub a 0 !n
end

(* Tables in the heap: open addressing over a weak array and an array of hashes. Both are searched without a lock. C
   code changes them, under the lock; it neither allocates nor polls, so that no signal, finaliser or thread of the
   domain comes in between. It changes nothing if the table is not as it was when a search began: [stamp] tells. *)
module In_heap = struct
  type 'a state = { weak : 'a hash_consed Weak.t; hashes : int array (* -1: never used *) }

  (* [used]: hashes that are not -1. The C code knows the order of fields. *)
  type 'a t = { mutable state : 'a state; mutable used : int; stamp : int Atomic.t }
  [@@warning "-69"]

  (* [put t stamp i hkey v] puts v into slot i, and gives it its tag: what comes into a table later has a larger one. *)
  external put : 'a t -> int -> int -> int -> 'a hash_consed option -> bool = "outheap_hashcons_ml_put"

  (* The last tag. Whoever reads it sees all values with tags up to it. *)
  external last_tag : unit -> (int[@untagged]) = "outheap_hashcons_ml_last_tag_byte" "outheap_hashcons_ml_last_tag"
  [@@noalloc]

  (* [replace t stamp state used] gives the table another state. *)
  external replace : 'a t -> int -> 'a state -> int -> bool = "outheap_hashcons_ml_replace"

  let empty slots = { weak = Weak.create slots; hashes = Array.make slots (-1) }
  let rec power n at = if at >= n then at else power n (2 * at)
  let create n = { state = empty (power (2 * min (max n 8) 0x100000) 16); used = 0; stamp = Atomic.make 0 }

  let rec clear t =
    let stamp = Atomic.get t.stamp in
    if not (replace t stamp (empty 16) 0) then clear t

  let slot hkey mask = (hkey * 0x27d4eb2f165667c5) lsr 20 land mask

  (* Makes a larger table, or, where many values have died, one of the same size. Nobody adds values to one that is as
     full as that, so whoever is done first wins. *)
  let grow t stamp state =
    let alive = ref 0 and used = ref 0 in
    Array.iteri (fun i h -> if h <> -1 && Weak.check state.weak i then incr alive) state.hashes;
    let slots = Array.length state.hashes in
    let larger = empty (if 3 * !alive > slots then 2 * slots else slots) in
    let mask = Array.length larger.hashes - 1 in
    let rec free i = if larger.hashes.(i) = -1 then i else free ((i + 1) land mask) in
    Array.iteri
      (fun i h ->
        if h <> -1 then
          match Weak.get state.weak i with
          | Some _ as v ->
              let at = free (slot h mask) in
              larger.hashes.(at) <- h;
              Weak.set larger.weak at v;
              incr used
          | None -> ())
      state.hashes;
    ignore (replace t stamp larger !used)

  (* A search makes passes, as off the heap, and each over one state, in which values keep their places: here over those
     with [newer] < tag <= [since]. If the stamp is the same afterwards, nothing came since, and no value has a larger
     tag. Otherwise another pass is for those that came. *)
  let rec pass equal t hkey d newer =
    let stamp = Atomic.get t.stamp in
    let since = last_tag () in
    let state = t.state in
    let mask = Array.length state.hashes - 1 in
    (* [free]: a slot whose value died, or -1 *)
    let rec search i free =
      let h = state.hashes.(i) in
      if h = -1 then Error (if free >= 0 then free else i)
      else if h <> hkey then search ((i + 1) land mask) free
      else
        match Weak.get state.weak i with
        | Some c when c.hkey = hkey && c.tag > newer && c.tag <= since && equal c.node d -> Ok c
        | None -> search ((i + 1) land mask) (if free >= 0 then free else i)
        | Some _ -> search ((i + 1) land mask) free
    in
    match search (slot hkey mask) (-1) with
    | Ok c -> c
    | Error at ->
        if 3 * (t.used + 1) > 2 * (mask + 1) then (
          grow t stamp state;
          pass equal t hkey d since)
        else
          (* opaque: the tag is written where the compiler does not see it *)
          let c = Sys.opaque_identity { hkey; tag = 0; node = d } in
          if put t stamp at hkey (Some c) then c else pass equal t hkey d since

  let hashcons equal t hkey d = pass equal t hkey d 0

  let to_array t =
    let state = t.state in
    let found = ref [] in
    Array.iteri
      (fun i h -> if h <> -1 then match Weak.get state.weak i with Some c -> found := c :: !found | None -> ())
      state.hashes;
    Array.of_list !found
end

type 'a t = Off of 'a Off_heap.t | In of 'a In_heap.t

let create n = if off_heap then Off (Off_heap.create n) else In (In_heap.create n)
let clear = function Off t -> Off_heap.clear t | In t -> In_heap.clear t
let to_array = function Off t -> Off_heap.to_array t | In t -> In_heap.to_array t

let iter f t =
  let a = to_array t in
  for i = 0 to Array.length a - 1 do f a.(i) done

let stats t =
  let values = Array.length (to_array t) in
  let slots = match t with Off t -> fst (Off_heap.sizes t) | In t -> Array.length t.In_heap.state.In_heap.hashes in
  (slots, values, values, (if values < slots then 0 else 1), (if 2 * values > slots then 1 else 0), min values 1)

let find_or_add equal t hkey d =
  match t with Off t -> Off_heap.hashcons equal t hkey d | In t -> In_heap.hashcons equal t hkey d
[@@inline]

external hash : 'a -> (int[@untagged]) = "outheap_hashcons_ml_hash_byte" "outheap_hashcons_ml_hash" [@@noalloc]

let hashcons t d = find_or_add (fun a b -> compare a b = 0) t (hash d) d

module type HashedType = sig
  type t

  val equal : t -> t -> bool
  val hash : t -> int
end

module type S = sig
  type key
  type t

  val create : int -> t
  val clear : t -> unit
  val hashcons : t -> key -> key hash_consed
  val iter : (key hash_consed -> unit) -> t -> unit
  val stats : t -> int * int * int * int * int * int
end

module Make (H : HashedType) = struct
  type key = H.t
  type nonrec t = key t

  let create = create
  let clear = clear
  let iter = iter
  let stats = stats
  let hashcons t d = find_or_add H.equal t (H.hash d land max_int) d
end

module type EqualType = sig
  type t

  val equal : t -> t -> bool
end

module Make_with_hash (E : EqualType) = struct
  type key = E.t
  type nonrec t = key t

  let create = create
  let clear = clear
  let iter = iter
  let stats = stats
  let hashcons t h d = find_or_add E.equal t (h land max_int) d
end

external hkey_of_node : 'a -> (int[@untagged])
  = "outheap_hashcons_ml_hkey_of_node_byte" "outheap_hashcons_ml_hkey_of_node"
[@@noalloc]

module Tags = Map.Make (Int)

module Hmap = struct
  type (+'a, +!'b) t = ('a hash_consed * 'b) Tags.t
  type 'a key = 'a hash_consed

  let empty = Tags.empty
  let add k v m = Tags.add k.tag (k, v) m
  let find k m = snd (Tags.find k.tag m)
  let remove k m = Tags.remove k.tag m
  let mem k m = Tags.mem k.tag m
  let iter f m = Tags.iter (fun _ (k, v) -> f k v) m
  let map f m = Tags.map (fun (k, v) -> (k, f v)) m
  let mapi f m = Tags.map (fun (k, v) -> (k, f k v)) m
  let fold f m x = Tags.fold (fun _ (k, v) x -> f k v x) m x
end

module Hset = struct
  type 'a elt = 'a hash_consed
  type 'a t = 'a elt Tags.t

  let empty = Tags.empty
  let is_empty = Tags.is_empty
  let mem e s = Tags.mem e.tag s
  let add e s = Tags.add e.tag e s
  let singleton e = Tags.singleton e.tag e
  let remove e s = Tags.remove e.tag s
  let union a b = Tags.union (fun _ e _ -> Some e) a b
  let inter a b = Tags.merge (fun _ a b -> if Option.is_none b then None else a) a b
  let diff a b = Tags.merge (fun _ a b -> if Option.is_none b then a else None) a b
  let for_all f s = Tags.for_all (fun _ e -> f e) s
  let exists f s = Tags.exists (fun _ e -> f e) s
  let subset a b = for_all (fun e -> mem e b) a
  let disjoint a b = not (exists (fun e -> mem e b) a)
  let equal a b = Tags.equal ( == ) a b
  let compare a b = Tags.compare (fun a b -> Int.compare a.tag b.tag) a b
  let choose s = snd (Tags.choose s)
  let choose_opt s = Option.map snd (Tags.choose_opt s)
  let cardinal = Tags.cardinal
  let partition f s = Tags.partition (fun _ e -> f e) s
  let find e s = Tags.find e.tag s
  let find_opt e s = Tags.find_opt e.tag s
  let add_seq l s = Seq.fold_left (fun s e -> add e s) s l
  let of_seq l = add_seq l empty
  let of_list l = List.fold_left (fun s e -> add e s) empty l

  let split e s =
    let below, it, above = Tags.split e.tag s in
    (below, Option.is_some it, above)

  let iter f s = Tags.iter (fun _ e -> f e) s
  let fold f s x = Tags.fold (fun _ e x -> f e x) s x
  let map f s = fold (fun e s -> add (f e) s) s empty
  let filter f s = Tags.filter (fun _ e -> f e) s
  let filter_map f s = fold (fun e s -> match f e with Some e -> add e s | None -> s) s empty
  let elements s = List.map snd (Tags.bindings s)
  let to_seq s = Seq.map snd (Tags.to_seq s)
  let min_elt s = snd (Tags.min_binding s)
  let min_elt_opt s = Option.map snd (Tags.min_binding_opt s)
  let max_elt s = snd (Tags.max_binding s)
  let max_elt_opt s = Option.map snd (Tags.max_binding_opt s)

  (* [f] is called with elements, where [Map] has keys. *)
  let find_first_opt f s = Seq.fold_left (fun r e -> if Option.is_none r && f e then Some e else r) None (to_seq s)
  let find_last_opt f s = Seq.fold_left (fun r e -> if f e then Some e else r) None (to_seq s)
  let get = function Some e -> e | None -> raise Not_found
  let find_first f s = get (find_first_opt f s)
  let find_last f s = get (find_last_opt f s)
  let intersect a b = not (disjoint a b)
  let find_any_opt = find_first_opt
  let find_any = find_first
  let is_singleton s = if cardinal s = 1 then choose_opt s else None
  let bind f s = fold (fun e all -> union (f e) all) s empty
end

type memory = { cells : int; bytes : int; freed : int; collections : int; late : int }

external cell_memory : unit -> memory = "outheap_hashcons_ml_memory"
external is_off_heap : Obj.t -> bool = "outheap_hashcons_ml_is_cell"

external force : bool -> unit = "outheap_hashcons_ml_force"

let memory = cell_memory
let is_cell = is_off_heap

let collect () =
  if off_heap then (
    force true;
    Fun.protect ~finally:(fun () -> force false) Gc.full_major;
    Off_heap.finish ())
  else Gc.full_major ()

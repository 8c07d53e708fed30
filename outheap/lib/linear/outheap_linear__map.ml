(* SPDX-License-Identifier: MIT *)
(* Maps and sets: red-black trees. Equations: no red cell has a red branch; on every path from the root to a leaf there
   are equally many black cells; the root is black. On the way down nothing changes, so that [compare] may raise
   exceptions; on the way up no function of the user is called, and nothing is allocated. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw
module Contents = Outheap_linear__contents
module Images = Outheap_linear__image

module type STORED = Contents.STORED

module type KEY = sig
  include STORED

  val compare : t -> t -> int
end

type ('k, 'v) tree =
  | Empty
  | Red of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree
  | Black of ('k, 'v) tree * 'k * 'v * ('k, 'v) tree

(* Cells are constructors of a tree. *)
let red = '\000'
let black = '\001'
let red_shape = 4 lsl 8
let[@inline] get c i : Raw.cell = Array.unsafe_get (Raw.words c) i
let[@inline] set c i (x : Raw.cell) = Array.unsafe_set (Raw.words c) i x
let[@inline] key c : 'k = Obj.magic (get c 1)
let[@inline] data c : 'v = Obj.magic (get c 2)
let[@inline] set_data c (v : 'v) = set c 2 (Obj.magic v)
let[@inline] colour c = Raw.byte c (-8)
let[@inline] is_red c = (not (Raw.is_none c)) && colour c = red
let[@inline] paint c colour = Raw.set_byte c (-8) colour

(* The sides: fields of branches. What is done on either is written once, and inlined with the side as a constant. *)
let left = 0
let right = 3
let[@inline] other side = 3 - side

let rec outermost side c =
  let b = get c side in
  if Raw.is_none b then c else outermost side b

(* [t] is black; [b], its new branch, may be red with a red branch. *)
let[@inline] balance side t b =
  if not (is_red b) then begin
    set t side b;
    t
  end
  else begin
    let outer = get b side in
    if is_red outer then begin
      set t side (get b (other side));
      set b (other side) t;
      paint outer black;
      b
    end
    else begin
      let inner = get b (other side) in
      if is_red inner then begin
        set b (other side) (get inner side);
        set t side (get inner (other side));
        set inner side b;
        set inner (other side) t;
        paint b black;
        inner
      end
      else begin
        set t side b;
        t
      end
    end
  end

let[@inline never] balance_left t b = balance left t b
let[@inline never] balance_right t b = balance right t b

(* Below, [o.flag] says that the tree that a function returns has one black cell less on its paths than before. *)

(* The branch of [t] on this side is short by one; the other one, [s], is black. *)
let[@inline] lengthen side o t s =
  let far = get s (other side) in
  if is_red far then begin
    set t (other side) (get s side);
    set s side t;
    paint s (colour t);
    paint t black;
    paint far black;
    o.flag <- false;
    s
  end
  else begin
    let near = get s side in
    if is_red near then begin
      set t (other side) (get near side);
      set s side (get near (other side));
      set near side t;
      set near (other side) s;
      paint near (colour t);
      paint t black;
      o.flag <- false;
      near
    end
    else begin
      paint s red;
      if colour t = red then begin
        paint t black;
        o.flag <- false
      end;
      t
    end
  end

let[@inline never] lengthen_left o t s = lengthen left o t s
let[@inline never] lengthen_right o t s = lengthen right o t s

let[@inline] short side o t =
  let s = get t (other side) in
  if colour s = red then begin
    set t (other side) (get s side);
    paint s black;
    paint t red;
    let s' = get t (other side) in
    set s side (if side = left then lengthen_left o t s' else lengthen_right o t s');
    s
  end
  else if side = left then lengthen_left o t s
  else lengthen_right o t s

let[@inline never] left_is_short o t = short left o t
let[@inline never] right_is_short o t = short right o t

(* What takes the place of [c], which has one branch at most, [b]. *)
let[@inline] without o c b =
  o.flag <- false;
  if colour c = black then if is_red b then paint b black else o.flag <- true;
  b

(* Takes the least cell out; [o.last] becomes that. *)
let rec remove_least o c =
  if Raw.is_none (get c left) then begin
    o.last <- c;
    without o c (get c right)
  end
  else begin
    set c left (remove_least o (get c left));
    if o.flag then left_is_short o c else c
  end

(* Takes [c] out; [o.left] becomes that. *)
let remove_root o c =
  o.left <- c;
  if Raw.is_none (get c left) then without o c (get c right)
  else if Raw.is_none (get c right) then without o c (get c left)
  else begin
    let r = remove_least o (get c right) in
    let m = o.last in
    o.last <- Raw.none;
    set m left (get c left);
    set m right r;
    paint m (colour c);
    if o.flag then right_is_short o m else m
  end

(* --- whole trees -------------------------------------------------------------------------------------------------- *)

let[@inline] blacken c = if not (Raw.is_none c) then paint c black

(* The number of black cells on each path. *)
let rec height c =
  if Raw.is_none c then 0
  else
    let h = height (get c left) in
    if colour c = black then h + 1 else h

(* [c], which has the height [h], with [m] and [b] beyond it on this side: [b] has the height [hb], at most [h]. The
   result may be red with a red branch. *)
let rec graft side c h m b hb =
  if is_red c then begin
    set c side (graft side (get c side) h m b hb);
    c
  end
  else if h = hb then begin
    set m side b;
    set m (other side) c;
    paint m red;
    m
  end
  else
    let b' = graft side (get c side) (h - 1) m b hb in
    if side = left then balance_left c b' else balance_right c b'

(* The tree of [l], the cell [m], and [r], in this order; the root may be red. *)
let join l m r =
  blacken l;
  blacken r;
  let hl = height l and hr = height r in
  if hl >= hr then graft right l hl m r hr else graft left r hr m l hl

let join_two o l r =
  if Raw.is_none r then l
  else begin
    blacken r;
    let r = remove_least o r in
    let m = o.last in
    o.last <- Raw.none;
    join l m r
  end

(* The number of cells; that of [l], of [whole] in [l] and [r] together, in time for the smaller one. *)
external size_of : Raw.cell -> int = "outheap_linear_ml_tree_size" [@@noalloc]
external size_of_first : Raw.cell -> Raw.cell -> whole:int -> int = "outheap_linear_ml_tree_size_of_first" [@@noalloc]

(* Room on the stack for functions that take trees of so many cells apart, and cannot be left half done. *)
let room_for size =
  let rec bits n = if n = 0 then 0 else 1 + bits (n / 2) in
  room ~frames:(64 * (1 + bits size)) ()

module Make (K : KEY) (V : STORED) () = struct
  type t = right
  type key = K.t
  type view = (K.stored, V.stored) tree

  let k = K.storage
  let v = V.storage
  let plain = k.plain && v.plain
  let pool = Raw.pool 4 ~within:false
  let key_at = k.peek
  let key_of = k.get
  let data_of = v.get

  (* Inlined, as a call might find no room on the stack. Functions that free need none. *)
  let[@inline] free_cell c =
    let a : K.stored = key c and z : V.stored = data c in
    Raw.free pool c;
    k.free a;
    v.free z;
    () (* so that this is no tail call of an unknown function, before which signals are handled *)

  (* The least cell goes first. What is left of it hangs right of its right branch, so that it is a tree, if not a
     balanced one, at each step, and each cell is moved once. *)
  let free_all o =
    if plain then begin
      let c = o.root in
      clear o;
      Raw.free_tree pool c left right
    end
    else begin
      while not (Raw.is_none o.root) do
        let c = o.root in
        let l = get c left in
        if Raw.is_none l then begin
          o.root <- get c right;
          free_cell c
        end
        else begin
          set c left (get l right);
          set l right c;
          o.root <- l
        end
      done;
      clear o
    end

  include Container (struct
    let kind = Owners.tree
    let pool = pool
    let plain = plain
    let free_all = free_all
  end)

  (* The cell with this key, or none. *)
  let rec search k c =
    if Raw.is_none c then c
    else
      let order = K.compare k (key_at (key c)) in
      if order = 0 then c else search k (if order < 0 then get c left else get c right)

  let find k r =
    let o = read r in
    match
      let c = search k o.root in
      if Raw.is_none c then None else Some (data_of (data c))
    with
    | result ->
        end_reading o;
        result
    | exception e -> read_fails o e

  let mem k r =
    let o = read r in
    match search k o.root with
    | c ->
        end_reading o;
        not (Raw.is_none c)
    | exception e -> read_fails o e

  (* Calls of functions that return what they get would take a third of the time. *)
  let rec fold_plain (f : K.t -> V.t -> 'a -> 'a) c acc =
    if Raw.is_none c then acc else fold_plain f (get c right) (f (key c) (data c) (fold_plain f (get c left) acc))

  let rec fold_stored f c acc =
    if Raw.is_none c then acc
    else fold_stored f (get c right) (f (key_of (key c)) (data_of (data c)) (fold_stored f (get c left) acc))

  let fold f r acc = borrowing r (fun o -> if plain then fold_plain f o.root acc else fold_stored f o.root acc)

  let iter f r = fold (fun k v () -> f k v) r ()
  let to_seq r = List.(to_seq (rev (fold (fun k v l -> (k, v) :: l) r [])))

  let fold_range ?from ?upto f r acc =
    borrowing r (fun o ->
        let rec go c acc =
          if Raw.is_none c then acc
          else
            let here = key_at (key c) in
            let after = match from with None -> true | Some k -> K.compare k here <= 0
            and before = match upto with None -> true | Some k -> K.compare k here >= 0 in
            let acc = if after then go (get c left) acc else acc in
            let acc = if after && before then f (key_of (key c)) (data_of (data c)) acc else acc in
            if before then go (get c right) acc else acc
        in
        go o.root acc)

  let binding c = (key_of (key c), data_of (data c))

  let outermost_binding side r =
    borrowing r (fun o -> if Raw.is_none o.root then None else Some (binding (outermost side o.root)))

  let min_binding r = outermost_binding left r
  let max_binding r = outermost_binding right r

  (* [o.flag] becomes whether there is one more cell. *)
  let rec insert o key' value c =
    if Raw.is_none c then begin
      let c = Contents.new_pair k v pool red_shape ~at:1 key' value in
      set c left Raw.none;
      set c right Raw.none;
      o.flag <- true;
      c
    end
    else
      let order = K.compare key' (key_at (key c)) in
      if order = 0 then begin
        let before : V.stored = data c in
        set_data c (v.store value);
        o.flag <- false;
        v.free before;
        c
      end
      else if colour c = red then begin
        if order < 0 then set c left (insert o key' value (get c left))
        else set c right (insert o key' value (get c right));
        c
      end
      else if order < 0 then balance_left c (insert o key' value (get c left))
      else balance_right c (insert o key' value (get c right))

  let add key value r =
    let next = next r in
    let o = change r in
    match insert o key value o.root with
    | root ->
        if o.flag then begin
          o.size <- o.size + 1;
          o.root <- root;
          paint root black
        end;
        done_ o next
    | exception e -> failed o e

  (* Takes the cell with this key out; [o.left] becomes that, or none. *)
  let rec remove_from o k c =
    if Raw.is_none c then begin
      o.left <- c;
      o.flag <- false;
      c
    end
    else
      let order = K.compare k (key_at (key c)) in
      if order < 0 then begin
        set c left (remove_from o k (get c left));
        if o.flag then left_is_short o c else c
      end
      else if order > 0 then begin
        set c right (remove_from o k (get c right));
        if o.flag then right_is_short o c else c
      end
      else remove_root o c

  let remove k r =
    let next = next r in
    let o = change r in
    match remove_from o k o.root with
    | root ->
        o.root <- root; (* black, as before: its colour was passed on *)
        let c = o.left in
        o.left <- Raw.none;
        if Raw.is_none c then done_ o next
        else begin
          o.size <- o.size - 1;
          consume o;
          free_cell c;
          next
        end
    | exception e -> failed o e

  let pop_min r =
    let next = next r in
    let o = change r in
    if Raw.is_none o.root then begin
      kept o;
      None
    end
    else
      match
        let result = Some (binding (outermost left o.root), next) in
        o.left <- remove_least o o.root;
        result
      with
      | result ->
          o.root <- o.left;
          let c = o.last in
          o.left <- Raw.none;
          o.last <- Raw.none;
          o.size <- o.size - 1;
          consume o;
          free_cell c;
          result
      | exception e -> failed o e

  (* The part of [c] that comes before the key; [o.left] becomes the cell with this key, or none, and [o.last] the part
     that comes after it. *)
  let rec split_at o k c =
    if Raw.is_none c then begin
      o.left <- c;
      o.last <- c;
      c
    end
    else
      let order = K.compare k (key_at (key c)) in
      if order = 0 then begin
        o.left <- c;
        o.last <- get c right;
        get c left
      end
      else if order < 0 then begin
        let before = split_at o k (get c left) in
        o.last <- join o.last c (get c right);
        before
      end
      else
        let rest = split_at o k (get c right) in
        join (get c left) c rest

  let split k r =
    let others = create () in
    let next = next r in
    room_for (length r);
    let o = change r in
    let o' = change others in
    let found = ref Raw.none in
    match
      found := search k o.root;
      let value = if Raw.is_none !found then None else Some (data_of (data !found)) in
      let result = Sys.opaque_identity (next, value, others) in
      o.root <- split_at o k o.root;
      result
    with
    | result ->
        (* Of an order that is none another cell may be found by now, which stays. *)
        let goes = o.left == !found && not (Raw.is_none o.left) in
        if not (goes || Raw.is_none o.left) then o.last <- join Raw.none o.left o.last;
        let c = o.left and whole = if goes then o.size - 1 else o.size in
        o'.root <- o.last;
        o.left <- Raw.none;
        o.last <- Raw.none;
        blacken o.root;
        blacken o'.root;
        o.size <- size_of_first o.root o'.root ~whole;
        o'.size <- whole - o.size;
        kept o';
        consume o;
        if goes then free_cell c;
        result
    | exception e ->
        kept o';
        failed o e

  (* [u] gets what the function makes of its data and that of [m]. [o.flag] becomes whether that is nothing. *)
  let merge f o m u =
    match f (key_of (key u)) (data_of (data m)) (data_of (data u)) with
    | None -> o.flag <- true
    | Some value ->
        let before : V.stored = data u in
        set_data u (v.store value);
        o.flag <- false;
        v.free before

  (* [t], of [o], and [u], of [o'], as one tree; elements that this takes are subtracted from the size of [o']. When a
     function raises an exception, what is left of them is the root of each. *)
  let rec unite f o o' t u =
    if Raw.is_none u then t
    else if Raw.is_none t then u
    else
      match split_at o (key_at (key u)) t with
      | exception e ->
          o.root <- t;
          o'.root <- u;
          raise e
      | l -> (
          let m = o.left and r = o.last in
          o.left <- Raw.none;
          o.last <- Raw.none;
          match if not (Raw.is_none m) then merge f o m u with
          | exception e ->
              o.root <- join l m r;
              o'.root <- u;
              raise e
          | () -> (
              let goes = (not (Raw.is_none m)) && o.flag in
              let ul = get u left and ur = get u right in
              if not (Raw.is_none m) then begin
                o'.size <- (o'.size - if goes then 2 else 1);
                free_cell m;
                if goes then free_cell u
              end;
              match unite f o o' l ul with
              | exception e ->
                  o.root <- join_two o o.root r;
                  o'.root <- (if goes then join_two o o'.root ur else join o'.root u ur);
                  raise e
              | l -> (
                  match unite f o o' r ur with
                  | exception e ->
                      o.root <- (if goes then join_two o l o.root else join l u o.root);
                      raise e
                  | r -> if goes then join_two o l r else join l u r)))

  let union f r r' =
    let next = next r in
    room_for (length r + length r');
    let o = change r in
    match change r' with
    | exception e -> failed o e
    | o' -> (
        match unite f o o' o.root o'.root with
        | root ->
            o.root <- root;
            blacken root;
            o.size <- o.size + o'.size;
            clear o';
            consume o';
            done_ o next
        | exception e ->
            blacken o.root;
            blacken o'.root;
            o.size <- size_of o.root;
            o'.size <- size_of o'.root;
            kept o';
            failed o e)

  let update k f r = match f (find k r) with Some v -> add k v r | None -> remove k r
  let of_seq s = Seq.fold_left (fun r (k, v) -> add k v r) (create ()) s

  type image = (K.t, V.t) Images.map

  let save schema ~path r =
    borrowing r (fun o ->
        let image =
          if Raw.is_none o.root then { Images.keys = [||]; values = [||] }
          else
            let c = outermost left o.root in
            { keys = Array.make o.size (k.peek (key c)); values = Array.make o.size (v.peek (data c)) }
        in
        let rec fill i c =
          if Raw.is_none c then i
          else begin
            let i = fill i (get c left) in
            image.keys.(i) <- k.peek (key c);
            image.values.(i) <- v.peek (data c);
            fill (i + 1) (get c right)
          end
        in
        ignore (fill 0 o.root);
        Outheap_region.save schema ~path image)

  module Image = struct
    type t = image Outheap_region.root

    let region = Outheap_region.region
    let map schema ~path ?verify () = Images.map_checked schema ~path ?verify (Images.wrong_map K.compare)
    let length t = Array.length (Outheap_region.get t).Images.keys

    let find k t =
      let i = Outheap_region.get t in
      let n = Images.place K.compare k i in
      if n < Array.length i.keys && K.compare k i.keys.(n) = 0 then Some i.values.(n) else None

    let mem k t = Option.is_some (find k t)

    let fold_range ?from ?upto f t acc =
      let i = Outheap_region.get t in
      let first = match from with None -> 0 | Some k -> Images.place K.compare k i in
      let within n =
        n < Array.length i.keys && match upto with None -> true | Some k -> K.compare k i.keys.(n) >= 0
      in
      let rec go n acc = if within n then go (n + 1) (f i.keys.(n) i.values.(n) acc) else acc in
      go first acc

    let fold f t acc = fold_range f t acc
    let iter f t = fold (fun k v () -> f k v) t ()
  end
end

module Unit = Contents.Plain (struct
  type t = unit
end)

module Set (K : KEY) () = struct
  module M = Make (K) (Unit) ()
  include M

  type elt = K.t

  let add k r = M.add k () r
  let min_elt r = Option.map fst (M.min_binding r)
  let max_elt r = Option.map fst (M.max_binding r)
  let split k r = match M.split k r with l, found, r -> (l, Option.is_some found, r)
  let union r r' = M.union (fun _ () () -> Some ()) r r'
  let pop_min r = match M.pop_min r with Some ((k, ()), r) -> Some (k, r) | None -> None
  let fold f r acc = M.fold (fun k () acc -> f k acc) r acc
  let fold_range ?from ?upto f r acc = M.fold_range ?from ?upto (fun k () acc -> f k acc) r acc
  let iter f r = M.iter (fun k () -> f k) r
  let to_seq r = Seq.map fst (M.to_seq r)
  let of_seq s = Seq.fold_left (fun r k -> add k r) (create ()) s
end

(* SPDX-License-Identifier: MIT *)
(* Maps and sets, as trees. On the way down nothing changes, so that [compare] may raise exceptions; on the way up no
   function of the program is called. *)
open Outheap_linear__owner
open Outheap_linear__tree
module Raw = Outheap_linear__raw
module Contents = Outheap_linear__contents
module Images = Outheap_linear__image

module type STORED = Contents.STORED

module type KEY = sig
  include STORED

  val compare : t -> t -> int
end

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

  (* The trees of both as one; elements that this takes are subtracted from the size of [o']. When a function raises an
     exception, what is left of the trees is there; so it is at each call, before which signals may be handled. *)
  let rec unite f o o' =
    let t = o.root and u = o'.root in
    if Raw.is_none u then t
    else if Raw.is_none t then u
    else
      let l = split_at o (key_at (key u)) t in
      let m = o.left and r = o.last in
      o.left <- Raw.none;
      o.last <- Raw.none;
      match if not (Raw.is_none m) then merge f o m u with
      | exception e ->
          o.root <- (if Raw.is_none m then join_two o l r else join l m r);
          raise e
      | () -> (
          let goes = (not (Raw.is_none m)) && o.flag in
          let ur = get u right in
          o.root <- l;
          o'.root <- get u left;
          if not (Raw.is_none m) then begin
            o'.size <- (o'.size - if goes then 2 else 1);
            free_cell m;
            if goes then free_cell u
          end;
          match unite f o o' with
          | exception e ->
              o.root <- join_two o o.root r;
              o'.root <- (if goes then join_two o o'.root ur else join o'.root u ur);
              raise e
          | l -> (
              o.root <- r;
              o'.root <- ur;
              match unite f o o' with
              | exception e ->
                  o.root <- (if goes then join_two o l o.root else join l u o.root);
                  raise e
              | r -> if goes then join_two o l r else join l u r))

  let union f r r' =
    let next = next r in
    room_for (length r + length r');
    let o = change r in
    match change r' with
    | exception e -> failed o e
    | o' -> (
        match unite f o o' with
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

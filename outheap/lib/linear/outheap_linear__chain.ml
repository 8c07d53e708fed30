(* SPDX-License-Identifier: MIT *)
(* Lists and queues. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw
module Contents = Outheap_linear__contents

module type STORED = Contents.STORED

(* Cells are constructors of 'a list. *)
let shape = 2 lsl 8
let[@inline] get c i : Raw.cell = Array.unsafe_get (Raw.words c) i
let[@inline] set c i (x : Raw.cell) = Array.unsafe_set (Raw.words c) i x
let[@inline] head c : 's = Obj.magic (get c 0)
let[@inline] tail c = get c 1
let[@inline] set_head c (v : 's) = set c 0 (Obj.magic v)
let[@inline] set_tail c l = set c 1 l

let[@inline] new_cell pool free v tl =
  let c = Raw.fresh pool shape in
  if Raw.is_none c then begin
    free v;
    raise Out_of_memory
  end;
  set_head c v;
  set_tail c tl;
  c

(* Without its contents. *)
let[@inline] drop_first pool o =
  let c = o.root in
  let rest = tail c in
  o.root <- rest;
  if Raw.is_none rest then o.last <- Raw.none;
  o.size <- o.size - 1;
  Raw.free pool c

module Chain (X : STORED) () = struct
  type view = X.stored list

  let { Contents.plain; store; get = get_stored; peek; free } = X.storage
  let[@inline] value (s : X.stored) : X.t = if plain then Obj.magic s else get_stored s
  let pool = Raw.pool 2 ~within:false

  let free_all o =
    if plain then begin
      let c = o.root in
      clear o;
      Raw.free_chain pool c 1
    end
    else
      while not (Raw.is_none o.root) do
        let v : X.stored = head o.root in
        drop_first pool o;
        free v
      done

  include Container (struct
    let kind = Owners.chain
    let pool = pool
    let plain = plain
    let free_all = free_all
  end)

  let fold f acc r =
    borrowing r (fun o ->
        let rec go acc c = if Raw.is_none c then acc else go (f acc (value (head c))) (tail c) in
        go acc o.root)

  let iter f r = fold (fun () v -> f v) () r
  let iteri f r = ignore (fold (fun i v -> f i v; i + 1) 0 r)

  let find p r =
    borrowing r (fun o ->
        let rec go c =
          if Raw.is_none c then None
          else
            let v = value (head c) in
            if p v then Some v else go (tail c)
        in
        go o.root)

  let exists p r = Option.is_some (find p r)
  let for_all p r = not (exists (fun v -> not (p v)) r)
  let to_list r = Stdlib.List.rev (fold (fun acc v -> v :: acc) [] r)
  let to_seq r = Stdlib.List.to_seq (to_list r)
end

module List = struct
  module Make (X : STORED) () = struct
    include Chain (X) ()

    type t = right

    let cons v r =
      let next = next r in
      let o = change r in
      match new_cell pool free (store v) o.root with
      | c ->
          o.root <- c;
          o.size <- o.size + 1;
          done_ o next
      | exception e -> failed o e

    let uncons r =
      let next = next r in
      let o = change r in
      if Raw.is_none o.root then begin
        kept o;
        None
      end
      else
        match Some (value (head o.root), next) with
        | result ->
            let v : X.stored = head o.root in
            drop_first pool o;
            free v;
            consume o;
            result
        | exception e -> failed o e

    let of_list l =
      let r = create () in
      let rec add r = function [] -> r | v :: rest -> add (cons v r) rest in
      let r = add r (Stdlib.List.rev l) in
      r

    let of_seq s = of_list (Stdlib.List.of_seq s)

    let rev r =
      let next = next r in
      let o = change r in
      o.root <- Raw.reverse o.root Raw.none;
      done_ o next

    (* Moves the cells of [o'] out of it. *)
    let[@inline] take_all o' =
      let c = o'.root in
      clear o';
      consume o';
      c

    let append r r' =
      let next = next r in
      let o = change r in
      match change r' with
      | o' ->
          o.size <- o.size + o'.size;
          if Raw.is_none o.root then o.root <- take_all o' else set_tail (Raw.last o.root) (take_all o');
          done_ o next
      | exception e -> failed o e

    let rev_append r r' =
      let next = next r in
      let o = change r in
      match change r' with
      | o' ->
          o.size <- o.size + o'.size;
          o.root <- Raw.reverse o.root (take_all o');
          done_ o next
      | exception e -> failed o e

    (* Functions that are made here are made where exceptions end the change: memory for them may be taken in a signal
       handler's turn. *)
    let map f r =
      let next = next r in
      let o = change r in
      match
        let rec go c =
          if not (Raw.is_none c) then begin
            let before : X.stored = head c in
            let after = store (f (value before)) in
            set_head c after;
            free before;
            go (tail c)
          end
        in
        go o.root
      with
      | () -> done_ o next
      | exception e -> failed o e

    let filter p r =
      let next = next r in
      let o = change r in
      match
        (* [before] is the cell in front of [c], which stays; none at the beginning. *)
        let rec go before c =
          if not (Raw.is_none c) then
            if p (value (head c)) then go c (tail c)
            else begin
              let next = tail c and v = head c in
              if Raw.is_none before then o.root <- next else set_tail before next;
              o.size <- o.size - 1;
              Raw.free pool c;
              free v;
              go before next
            end
        in
        go Raw.none o.root
      with
      | () -> done_ o next
      | exception e -> failed o e

    (* Moves contents, not cells, which stay in the order of their addresses as far as they were. Up to [seen], which
       are [number], contents of the first list are in the first cells, before [free], and the others' in [aside].
       [last]: the cell before [free]. *)
    let partition p r =
      let others = create () in
      let result = Sys.opaque_identity (next r, others) in
      let aside : int array ref = ref [||] in
      let o = change r in
      let o' = change others in
      let seen = ref o.root and free = ref o.root and last = ref Raw.none and number = ref 0 in
      match
        aside := Array.make o.size 0;
        while not (Raw.is_none !seen) do
          let c = !seen in
          let first = p (value (head c)) in
          let v = get c 0 in
          seen := tail c;
          if first then begin
            let to_ = !free in
            set to_ 0 v;
            last := to_;
            free := tail to_
          end
          else begin
            Array.unsafe_set !aside !number v;
            incr number
          end
        done
      with
      | () ->
          Raw.write_back !free !aside !number;
          o'.root <- !free;
          o'.size <- !number;
          o.size <- o.size - !number;
          if Raw.is_none !last then o.root <- Raw.none else set_tail !last Raw.none;
          kept o';
          consume o;
          result
      | exception e ->
          Raw.write_back !free !aside !number;
          kept o';
          failed o e

    (* Merge sort of the contents, which the cells get back in their order. *)
    let sort compare r =
      let[@inline] in_order (a : Raw.cell) (b : Raw.cell) =
        let a : X.stored = Obj.magic a and b : X.stored = Obj.magic b in
        (if plain then compare (Obj.magic a : X.t) (Obj.magic b : X.t) else compare (peek a) (peek b)) <= 0
      in
      (* [source] and [result] have the same at [from, to_); [result] becomes sorted there. *)
      let rec sort_part source result from to_ =
        if to_ - from <= 6 then
          for i = from + 1 to to_ - 1 do
            let v = Array.unsafe_get result i in
            let j = ref (i - 1) in
            while !j >= from && not (in_order (Array.unsafe_get result !j) v) do
              Array.unsafe_set result (!j + 1) (Array.unsafe_get result !j);
              decr j
            done;
            Array.unsafe_set result (!j + 1) v
          done
        else begin
          let middle = (from + to_) / 2 in
          sort_part result source from middle;
          sort_part result source middle to_;
          let i = ref from and j = ref middle in
          for k = from to to_ - 1 do
            if
              !j = to_ || (!i < middle && in_order (Array.unsafe_get source !i) (Array.unsafe_get source !j))
            then begin
              Array.unsafe_set result k (Array.unsafe_get source !i);
              incr i
            end
            else begin
              Array.unsafe_set result k (Array.unsafe_get source !j);
              incr j
            end
          done
        end
      in
      let next = next r in
      let o = change r in
      match
        let result : int array = Array.make o.size 0 in
        Raw.read_out o.root result;
        if o.size > 1 then sort_part (Array.copy result) result 0 o.size;
        result
      with
      | result ->
          Raw.write_back o.root result o.size;
          done_ o next
      | exception e -> failed o e
  end
end

module Queue = struct
  module Make (X : STORED) () = struct
    include Chain (X) ()

    type t = right

    let push v r =
      let o = change r in
      match new_cell pool free (store v) Raw.none with
      | c ->
          if Raw.is_none o.root then o.root <- c else set_tail o.last c;
          o.last <- c;
          o.size <- o.size + 1;
          kept o
      | exception e -> failed o e

    let pop r =
      let o = change r in
      if Raw.is_none o.root then begin
        kept o;
        None
      end
      else
        match Some (value (head o.root)) with
        | result ->
            let v : X.stored = head o.root in
            drop_first pool o;
            free v;
            kept o;
            result
        | exception e -> failed o e

    let peek r =
      let o = read r in
      match if Raw.is_none o.root then None else Some (value (head o.root)) with
      | result ->
          end_reading o;
          result
      | exception e -> read_fails o e

    let of_seq s =
      let r = create () in
      Seq.iter (fun v -> push v r) s;
      r

    let transfer r r' =
      let o = change r in
      match change r' with
      | exception e -> failed o e
      | o' ->
          if not (Raw.is_none o.root) then begin
            if Raw.is_none o'.root then o'.root <- o.root else set_tail o'.last o.root;
            o'.last <- o.last;
            o'.size <- o'.size + o.size
          end;
          clear o;
          kept o;
          kept o'

    let clear r =
      room ();
      finish free_all ~consumed:false (change r)
  end
end

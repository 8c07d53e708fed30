(* SPDX-License-Identifier: MIT *)
(* Red-black trees. Equations: no red cell has a red branch; on every path from the root to a leaf there are equally
   many black cells; the root is black. No function of the program is called here, and nothing is allocated. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw

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

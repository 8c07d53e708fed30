(* SPDX-License-Identifier: MIT *)
(* What a player does with its own roots: create, check, modify, delete. *)

open Values
open Model_player

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

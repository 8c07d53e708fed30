(* SPDX-License-Identifier: MIT *)
(* Random operations, beside a model: what a term is made of, and which terms are held. *)
open Hashcons_checks
open Hashcons_terms

module Run (T : Hashcons.S with type key = node) = struct
  type slot = { mutable term : term option; mutable shape : shape }

  let new_shape slots =
    let pick () = slots.(below (Array.length slots)).shape in
    match below 9 with
    | 0 -> SNil
    | 1 -> SLeaf (below 40)
    | 2 -> SText (String.make (below 30) 'x')
    | 3 -> SReal (float (below 40))
    | 4 -> SWide (Int64.of_int (below 40))
    | 5 -> SMany (List.init (below 5) (fun _ -> pick ()))
    | 6 ->
        let more = if below 2 = 0 then None else Some (below 3, String.make (below 20) 'm') in
        SNamed (string_of_int (below 5), pick (), more, Array.init (below 4) float)
    | _ -> SPair (pick (), pick ())

  let collect () =
    match below 60 with
    | 0 -> Gc.full_major ()
    | 1 -> Gc.major ()
    | 2 -> Gc.compact ()
    | n when n < 40 -> major_slice (1 + below 2000)
    | _ -> Gc.minor ()

  let step table slots =
    let slot = slots.(below (Array.length slots)) in
    let make s =
      let t = build (T.hashcons table) s in
      check "as the model" (same t s);
      t
    in
    (match below 14 with
    | 0 | 1 | 2 ->
        let s = new_shape slots in
        if depth s < 5 then (
          slot.term <- Some (make s);
          slot.shape <- s)
    | 3 | 4 | 5 -> slot.term <- None
    | 6 | 7 | 8 | 9 -> (
        (* the same again: the one that is held, or what may just be dying *)
        let t = make slot.shape in
        match slot.term with
        | Some old -> check "the same value" (t == old)
        | None -> if below 2 = 0 then slot.term <- Some t)
    | 10 -> if off_heap then slice (below 40)
    | _ -> ( match slot.term with Some t -> check "content" (same t slot.shape) | None -> ()));
    if below 6 = 0 then collect ()

  let[@inline never] life table slots steps =
    for i = 1 to steps do
      step table slots;
      if i mod 100 = 0 then validate "in between"
    done;
    Array.iter (fun s -> match s.term with Some t -> check "at the end" (same t s.shape) | None -> ()) slots

  let terms slots = List.filter_map (fun s -> s.term) (Array.to_list slots)

  let run steps =
    let table = T.create 3 in
    let slots = Array.init 60 (fun _ -> { term = None; shape = SNil }) in
    life table slots steps;
    majors 3;
    let wanted = reachable (terms slots) and there = count T.iter table in
    check (Printf.sprintf "%d values are left of %d reachable ones" there wanted) (there = wanted);
    let _, entries, _, _, _, _ = T.stats table in
    check "statistics" (entries = wanted);
    let slots = opaque slots in
    (* equal shapes are one value *)
    Array.iter
      (fun s ->
        Array.iter
          (fun r ->
            match (s.term, r.term) with
            | Some a, Some b ->
                check "one value for each shape" ((s.shape = r.shape) = (a == b) && (a == b) = (a.tag = b.tag))
            | _ -> ())
          slots)
      slots;
    Array.iter (fun s -> s.term <- None) slots;
    majors 3;
    check "all ends" (count T.iter table = 0);
    validate "at the end";
    ignore (opaque table)
end

module Plain = Run (Table)
module Full = Run (Crowded)

let random steps =
  for _ = 1 to 4 do
    Plain.run steps;
    Full.run (steps / 4)
  done

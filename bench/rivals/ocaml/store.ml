(* SPDX-License-Identifier: MIT *)
(* The same hash table in the OCaml heap, entry for entry. *)
type entry = Empty | Entry of { mutable held : Obj.t; mutable next : entry; mutable newer : entry; key : int }

let buckets = ref [||]
let oldest = ref Empty
let newest = ref Empty
let size = ref 0
let limit = ref 0
let bucket_of key = key land (Array.length !buckets - 1)

let create ~most =
  let rec power_of_two n = if n < most then power_of_two (2 * n) else n in
  limit := most;
  buckets := Array.make (power_of_two 1) Empty

let rec find key entry =
  match entry with Entry e when e.key <> key -> find key e.next | _ -> entry

let rec without key entry =
  match entry with
  | Entry e when e.key = key -> e.next
  | Entry e ->
    (match e.next with
     | Entry next when next.key = key -> e.next <- next.next
     | next -> ignore (without key next));
    entry
  | Empty -> Empty

let remove_oldest () =
  match !oldest with
  | Empty -> ()
  | Entry e ->
    let i = bucket_of e.key in
    let rest = without e.key !buckets.(i) in
    if rest != !buckets.(i) then !buckets.(i) <- rest;
    oldest := e.newer;
    if !oldest == Empty then newest := Empty;
    decr size

let put key v =
  let i = bucket_of key in
  match find key !buckets.(i) with
  | Entry e -> e.held <- Obj.repr v
  | Empty ->
    let entry = Entry { held = Obj.repr v; next = !buckets.(i); newer = Empty; key } in
    !buckets.(i) <- entry;
    (match !newest with Empty -> oldest := entry | Entry last -> last.newer <- entry);
    newest := entry;
    incr size;
    if !size > !limit then remove_oldest ()

let get key = match find key !buckets.(bucket_of key) with Empty -> None | Entry e -> Some (Obj.obj e.held)

let clear () =
  while !size > 0 do
    remove_oldest ()
  done

(* SPDX-License-Identifier: MIT *)
(* Images of tables and maps, of values of the heap, or of strings in cells: a region has copies of them. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw
module Contents = Outheap_linear__contents
module Buckets = Outheap_linear__buckets

let has_tag_0 v = Obj.is_block v && Raw.byte (Obj.magic v : Raw.cell) (-8) = '\000'
let is_record v ~fields = has_tag_0 v && Obj.size v = fields

(* Maps what was saved with this schema, which may be another value: [wrong] says what it is then. *)
let map_checked schema ~path ?verify wrong =
  match Outheap_region.map schema ~path ?verify () with
  | Error _ as e -> e
  | Ok root -> (
      match wrong (Outheap_region.get root) with
      | "" -> Ok root
      | what -> Error (Outheap_region.Damaged { file = path; what }))

(* --- maps: in ascending order ------------------------------------------------------------------------------------- *)

type ('k, 'v) map = { keys : 'k array; values : 'v array }

let is_array v = has_tag_0 v || (Obj.is_block v && Raw.byte (Obj.magic v : Raw.cell) (-8) = '\254')

let is_map v =
  is_record v ~fields:2
  && is_array (Obj.field v 0)
  && is_array (Obj.field v 1)
  && Obj.size (Obj.field v 0) = Obj.size (Obj.field v 1)

(* A program whose keys have another order would find nothing. *)
let wrong_map compare i =
  if not (is_map (Obj.repr i)) then "no map: another value"
  else
    let n = Array.length i.keys in
    if n < 2 || compare i.keys.(0) i.keys.(n - 1) < 0 then ""
    else "keys have another order than in the program that saved it"

(* How many keys come before this one. *)
let place compare k i =
  let rec go from upto =
    if from = upto then from
    else
      let middle = (from + upto) / 2 in
      if compare k i.keys.(middle) > 0 then go (middle + 1) upto else go from middle
  in
  go 0 (Array.length i.keys)

(* --- tables: buckets and chains as in a table --------------------------------------------------------------------- *)

type ('k, 'v) chain = End | Link of { key : 'k; value : 'v; hash : int; next : ('k, 'v) chain }
type ('k, 'v) table = { chains : ('k, 'v) chain array; halved : int; elements : int }

(* Saves tables whose keys differ as one. They are borrowed until the file is written. *)
let save_tables k v schema ~path tables =
  let save () =
    let elements = List.fold_left (fun n o -> n + o.size) 0 tables in
    let count = max Buckets.least elements in
    let rec halved n = if 2 * n > count then n else halved (2 * n) in
    let buckets = { Buckets.mark = mark (); segments = [||]; count; half = halved Buckets.least } in
    let chains = Array.make count End in
    let add c =
      let hash = Buckets.hash_of c in
      let i = Buckets.index buckets hash in
      let key = k.Contents.peek (Buckets.key c) and value = v.Contents.peek (Buckets.contents c) in
      chains.(i) <- Link { key; value; hash; next = chains.(i) }
    in
    let rec add_chain c =
      if not (Raw.is_none c) then begin
        add c;
        add_chain (Buckets.next c)
      end
    in
    let add_all o =
      let { Buckets.b; _ } = Buckets.table o in
      for i = 0 to b.count - 1 do add_chain (Buckets.bucket b i) done
    in
    List.iter add_all tables;
    Outheap_region.save schema ~path { chains; halved = buckets.half; elements }
  in
  let rec borrowed = function
    | [] -> save ()
    | o :: others -> borrowing (Buckets.right o) (fun _ -> borrowed others)
  in
  borrowed tables

let is_table v =
  is_record v ~fields:3 && has_tag_0 (Obj.field v 0) && Obj.is_int (Obj.field v 1) && Obj.is_int (Obj.field v 2)

let is_link c = is_record c ~fields:4 && Obj.is_int (Obj.field c 2)

(* The first element, if there is one. *)
let first i =
  let rec go n = if n = Array.length i.chains then End else match i.chains.(n) with End -> go (n + 1) | c -> c in
  go 0

(* A program whose keys have other hashes would find nothing. *)
let wrong_table hash_of_key i =
  if not (is_table (Obj.repr i)) then "no table: another value"
  else
    let count = Array.length i.chains in
    if i.halved < Buckets.least || i.halved land (i.halved - 1) <> 0 || count < i.halved || count >= 2 * i.halved then
      "no table: the number of buckets"
    else
      match first i with
      | End -> if i.elements = 0 then "" else "no table: the number of elements"
      | Link _ as c when not (is_link (Obj.repr c)) -> "no table: the first element"
      | Link { key; hash; _ } ->
          if hash = hash_of_key key then "" else "a key has another hash than in the program that saved it"

let search equal hash wanted i =
  let n = hash land ((2 * i.halved) - 1) in
  let rec go = function
    | Link l as c -> if l.hash = hash && equal wanted l.key then c else go l.next
    | End -> End
  in
  go i.chains.(if n >= Array.length i.chains then n - i.halved else n)

let fold_table f i acc =
  let rec chain c acc = match c with End -> acc | Link { key; value; next; _ } -> chain next (f key value acc) in
  Array.fold_left (fun acc c -> chain c acc) acc i.chains

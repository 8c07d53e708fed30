(* SPDX-License-Identifier: MIT *)
(* The functor of Coq's module Hashset over Outheap_hashcons: `coq-hashcons` puts it behind that of Coq, which it names
   Weak_arrays. The canonical value is the node of a hash-consed one, off the heap, whose cell lives as long as a
   pointer leads there. Immediates are canonical as they are. In the heap a node does not keep the value that it is the
   node of, so there the functor of Coq remains. *)
module Make (E : EqType) = struct
  type elt = E.t

  module Arrays = Weak_arrays (E)

  module Cells = Outheap_hashcons.Make_with_hash (struct
    type t = elt

    let equal = E.eq
  end)

  type t = Cells of Cells.t | Arrays of Arrays.t

  let create n = if Outheap_hashcons.off_heap then Cells (Cells.create n) else Arrays (Arrays.create n)
  let clear = function Cells t -> Cells.clear t | Arrays t -> Arrays.clear t

  let repr h d = function
    | Arrays t -> Arrays.repr h d t
    | Cells t -> if Obj.is_int (Obj.repr d) then d else (Cells.hashcons t h d).Outheap_hashcons.node

  (* A bucket of cells is a slot, with one value or none. *)
  let stats = function
    | Arrays t -> Arrays.stats t
    | Cells t ->
        let slots, values, _, _, _, longest = Cells.stats t in
        {
          num_bindings = values;
          num_buckets = slots;
          max_bucket_length = longest;
          bucket_histogram = [| slots - values; values |];
        }
end

(* SPDX-License-Identifier: MIT *)
(* The interface of hash-consing over weak pointers of the heap: what is compared with Outheap_hashcons. *)
module type HashedType = sig
  type t

  val equal : t -> t -> bool
  val hash : t -> int
end

let last_tag = ref 0

(* Over the library's weak hash sets. *)
module Over_weak = struct
  type 'a hash_consed = { hkey : int; mutable tag : int; node : 'a }

  module Make (H : HashedType) = struct
    module W = Weak.Make (struct
      type t = H.t hash_consed

      let equal a b = H.equal a.node b.node
      let hash a = a.hkey
    end)

    let create = W.create

    let hashcons t node =
      let v = { hkey = H.hash node land max_int; tag = 0; node } in
      let found = W.merge t v in
      if found == v then (
        incr last_tag;
        v.tag <- !last_tag);
      found

    let iter = W.iter
  end
end

(* Over an array of weak arrays, without a copy of the hashes. *)
module Over_buckets = struct
  type 'a hash_consed = { hkey : int; tag : int; node : 'a }

  module Make (H : HashedType) = struct
    type t = { mutable buckets : H.t hash_consed Weak.t array; mutable room : int (* places in all of them *) }

    let create n = { buckets = Array.init (max n 7) (fun _ -> Weak.create 0); room = 0 }

    let iter f t =
      let look b = for i = 0 to Weak.length b - 1 do match Weak.get b i with Some v -> f v | None -> () done in
      Array.iter look t.buckets

    let rec add t v =
      let at = v.hkey mod Array.length t.buckets in
      let b = t.buckets.(at) in
      let n = Weak.length b in
      let rec free i = if i < n && Weak.check b i then free (i + 1) else i in
      let i = free 0 in
      if i < n then Weak.set b i (Some v)
      else
        let larger = Weak.create (n + 3) in
        Weak.blit b 0 larger 0 n;
        Weak.set larger n (Some v);
        t.buckets.(at) <- larger;
        t.room <- t.room + 3;
        if t.room > 4 * Array.length t.buckets then (
          let all = create (2 * Array.length t.buckets) in
          iter (add all) t;
          t.buckets <- all.buckets;
          t.room <- all.room)

    let hashcons t node =
      let hkey = H.hash node land max_int in
      let b = t.buckets.(hkey mod Array.length t.buckets) in
      let n = Weak.length b in
      let rec search i =
        if i = n then (
          incr last_tag;
          let v = { hkey; tag = !last_tag; node } in
          add t v;
          v)
        else
          match Weak.get b i with
          | Some v when v.hkey = hkey && H.equal v.node node -> v
          | _ -> search (i + 1)
      in
      search 0
  end
end

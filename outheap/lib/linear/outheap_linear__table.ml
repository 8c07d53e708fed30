(* SPDX-License-Identifier: MIT *)
(* Hash tables. *)
open Outheap_linear__owner
open Outheap_linear__buckets
module Raw = Outheap_linear__raw
module Contents = Outheap_linear__contents
module Images = Outheap_linear__image
module Shards = Outheap_linear__shards

module type HASHED = sig
  include Contents.STORED

  val equal : t -> t -> bool
  val hash : t -> int
end

module Make (K : HASHED) (V : Contents.STORED) () = struct
  type key = K.t
  type t = owner

  let k = K.storage
  let v = V.storage
  let plain = k.plain && v.plain
  let free_pool = Raw.pool 4 ~within:true (* of tables without bound *)
  let bound_pool = Raw.pool 6 ~within:true
  let free_shape = 4 lsl 8
  let bound_shape = 6 lsl 8
  let[@inline] data o : (K.t, V.t) table = table o
  let key_at = k.peek
  let key_of = k.get
  let value_of = v.get

  (* Inlined, as in maps. *)
  let[@inline] free_cell d c =
    let a : K.stored = key c and z : V.stored = contents c in
    Raw.free d.pool c;
    k.free a;
    v.free z;
    ()

  (* Frees the cells, bucket by bucket. *)
  let empty o =
    let d = data o in
    let b = d.b in
    clear o;
    for i = 0 to b.count - 1 do
      if plain then begin
        let c = bucket b i in
        set_bucket b i Raw.none;
        Raw.free_chain d.pool c 2
      end
      else
        while not (Raw.is_none (bucket b i)) do
          let c = bucket b i in
          set_bucket b i (next c);
          free_cell d c
        done
    done

  (* And the buckets. *)
  let free_all o =
    empty o;
    let b = (data o).b in
    b.count <- 0;
    for i = 0 to Array.length b.segments - 1 do
      let s = b.segments.(i) in
      b.segments.(i) <- 0;
      free s ~first:(i = 0)
    done

  let finaliser = forgotten free_all
  let owners = Owners.create Owners.table ~plain

  let create ?(most = max_int) ?evicted () : t =
    if most < 1 then invalid_arg "Outheap_linear.Table.create: room for no element";
    let b = { mark = mark (); segments = [||]; count = 0; half = least } in
    let pool = if most = max_int then free_pool else bound_pool in
    let o = owner_with (Obj.repr { b; most; pool; evicted; evictions = 0 }) finaliser in
    if not (has_room b 0) then raise Out_of_memory;
    b.count <- least;
    Owners.add owners o;
    o

  let[@inline] change o =
    let why = begin_change o 0 in
    if why <> 0 then refused why

  let[@inline] read o =
    let why = begin_reading o 0 in
    if why <> 0 then refused why

  let length o = length (right o)

  let close o =
    room ();
    change o;
    finish free_all ~consumed:true o

  let clear o =
    room ();
    change o;
    finish empty ~consumed:false o

  let empty_and_shrink o =
    let b = (data o).b in
    empty o;
    shrink b 0 least b.count

  let reset o =
    room ();
    change o;
    finish empty_and_shrink ~consumed:false o

  let rec search wanted hash c =
    if Raw.is_none c || (hash_of c = hash && K.equal wanted (key_at (key c))) then c else search wanted hash (next c)

  let new_cell d wanted hash value =
    let bound = is_bound d in
    let c = Contents.new_pair k v d.pool (if bound then bound_shape else free_shape) ~at:0 wanted value in
    set_next c Raw.none;
    set_hash c hash;
    if bound then begin
      set_newer c Raw.none;
      set_older c Raw.none
    end;
    c

  (* The table is whole again, and may be used by [evicted]. From here to its call no signal is handled: reading and
     freeing handle none, and the unit at the end is there because a function that ends by calling another may handle
     signals when it begins. Where reading finds no memory, or no room on the stack, the element goes unseen. *)
  let evict d c =
    match d.evicted with
    | None -> free_cell d c
    | Some f -> (
        match (key_of (key c), value_of (contents c)) with
        | a, z ->
            free_cell d c;
            f a z;
            ()
        | exception e ->
            let trace = Printexc.get_raw_backtrace () in
            free_cell d c;
            Printexc.raise_with_backtrace e trace)

  let replace_hashed hash wanted value o =
    change o;
    let d = data o in
    let b = d.b in
    match
      let c = search wanted hash (bucket b (index b hash)) in
      if Raw.is_none c then new_cell d wanted hash value
      else begin
        let before : V.stored = contents c in
        set_contents c (v.store value);
        v.free before;
        if is_bound d then touch o c;
        Raw.none
      end
    with
    | exception e -> failed o e
    | c when Raw.is_none c -> kept o
    | c ->
        let i = index b hash in
        set_next c (bucket b i);
        set_bucket b i c;
        o.size <- o.size + 1;
        if is_bound d then link_newest o c;
        if o.size > d.most then begin
          let oldest = o.last in
          unlink o oldest;
          detach b oldest;
          o.size <- o.size - 1;
          d.evictions <- d.evictions + 1;
          kept o;
          evict d oldest
        end
        else begin
          match if o.size > b.count then divide b with
          | () | (exception Out_of_memory) -> kept o
          | exception e -> failed o e
        end

  (* Without a look at the order of use. *)
  let look_hashed hash wanted o =
    let d = data o in
    read o;
    match
      let c = search wanted hash (bucket d.b (index d.b hash)) in
      if Raw.is_none c then None else Some (value_of (contents c))
    with
    | result ->
        end_reading o;
        result
    | exception e -> read_fails o e

  let find_hashed hash wanted o =
    let d = data o in
    if is_bound d then begin
      change o;
      match
        let c = search wanted hash (bucket d.b (index d.b hash)) in
        if Raw.is_none c then None
        else begin
          touch o c;
          Some (value_of (contents c))
        end
      with
      | result ->
          kept o;
          result
      | exception e -> failed o e
    end
    else look_hashed hash wanted o

  let mem_hashed hash wanted o =
    let d = data o in
    read o;
    match search wanted hash (bucket d.b (index d.b hash)) with
    | c ->
        end_reading o;
        not (Raw.is_none c)
    | exception e -> read_fails o e

  let remove_hashed hash wanted o =
    change o;
    let d = data o in
    match search wanted hash (bucket d.b (index d.b hash)) with
    | c ->
        if not (Raw.is_none c) then begin
          detach d.b c;
          if is_bound d then unlink o c;
          o.size <- o.size - 1;
          shrink d.b o.size least 4;
          free_cell d c
        end;
        kept o
    | exception e -> failed o e

  let update_hashed hash wanted f o =
    match f (look_hashed hash wanted o) with
    | Some value -> replace_hashed hash wanted value o
    | None -> remove_hashed hash wanted o

  let hash_of_key wanted = mix (K.hash wanted)
  let replace wanted value o = replace_hashed (hash_of_key wanted) wanted value o
  let find wanted o = find_hashed (hash_of_key wanted) wanted o
  let mem wanted o = mem_hashed (hash_of_key wanted) wanted o
  let remove wanted o = remove_hashed (hash_of_key wanted) wanted o
  let update wanted f o = update_hashed (hash_of_key wanted) wanted f o

  let fold f o acc =
    borrowing (right o) (fun o ->
        let b = (data o).b in
        let rec chain c acc =
          if Raw.is_none c then acc
          else
            let acc = if plain then f (key c) (contents c) acc else f (key_of (key c)) (value_of (contents c)) acc in
            chain (next c) acc
        in
        let rec all i acc =
          if i = b.count then acc
          else
            let c = bucket b i in
            all (i + 1) (if Raw.is_none c then acc else chain c acc)
        in
        all 0 acc)

  let iter f o = fold (fun a z () -> f a z) o ()
  let to_seq o = List.to_seq (fold (fun a z l -> (a, z) :: l) o [])

  let of_seq s =
    let o = create () in
    Seq.iter (fun (a, z) -> replace a z o) s;
    o

  let filter p o =
    change o;
    let d = data o in
    let b = d.b in
    match
      for i = 0 to b.count - 1 do
        let rec go c =
          if not (Raw.is_none c) then begin
            let after = next c in
            if not (p (key_of (key c)) (value_of (contents c))) then begin
              detach b c;
              if is_bound d then unlink o c;
              o.size <- o.size - 1;
              free_cell d c
            end;
            go after
          end
        in
        go (bucket b i)
      done;
      shrink b o.size least b.count
    with
    | () -> kept o
    | exception e -> failed o e

  let live () = Raw.used free_pool + Raw.used bound_pool
  let memory () = Raw.bytes free_pool + Raw.bytes bound_pool
  let trim () = Owners.trim owners free_pool + Owners.trim owners bound_pool
  let check () = Raw.check free_pool ^ Raw.check bound_pool
  let check_table o = Outheap_linear__buckets.check o (data o).b ~bound:(is_bound (data o))
  let evictions o =
    ignore (length o);
    (data o).evictions

  type image = (K.t, V.t) Images.table

  let save schema ~path o = Images.save_tables k v schema ~path [ o ]

  module Sharded = struct
    type t = (K.t, V.t) Shards.t

    let create ?(shards = 16) ?(most = max_int) ?evicted () : t =
      Shards.create (fun ~most evicted -> create ~most ?evicted ()) ~shards ~most evicted

    let replace wanted value t =
      let hash = hash_of_key wanted in
      Shards.evicting t (Shards.shard t hash) (replace_hashed hash wanted value)

    let find wanted t =
      let hash = hash_of_key wanted in
      Shards.locked (Shards.shard t hash) (find_hashed hash wanted)

    let mem wanted t =
      let hash = hash_of_key wanted in
      Shards.locked (Shards.shard t hash) (mem_hashed hash wanted)

    let remove wanted t =
      let hash = hash_of_key wanted in
      Shards.locked (Shards.shard t hash) (remove_hashed hash wanted)

    let update wanted f t =
      let hash = hash_of_key wanted in
      Shards.evicting t (Shards.shard t hash) (update_hashed hash wanted f)

    let length t = Shards.sum length t
    let evictions t = Shards.sum evictions t
    let fold f t acc = Shards.fold (fold f) t acc
    let iter f t = Shards.iter (iter f) t
    let filter p t = Shards.iter (filter p) t
    let clear t = Shards.iter clear t
    let close t = Shards.close close t
    let check_table t = Shards.fold (fun o wrong -> if wrong = "" then check_table o else wrong) t ""
    let save schema ~path t = Shards.all_locked t (Images.save_tables k v schema ~path)
  end

  module Image = struct
    type t = image Outheap_region.root

    let get = Outheap_region.get
    let region = Outheap_region.region
    let map schema ~path ?verify () = Images.map_checked schema ~path ?verify (Images.wrong_table hash_of_key)
    let length t = (get t).Images.elements
    let search wanted t = Images.search K.equal (hash_of_key wanted) wanted (get t)
    let find wanted t = match search wanted t with Link { value; _ } -> Some value | End -> None
    let mem wanted t = match search wanted t with Link _ -> true | End -> false
    let fold f t acc = Images.fold_table f (get t) acc
    let iter f t = fold (fun a z () -> f a z) t ()
  end
end

(* SPDX-License-Identifier: MIT *)
(* What a cache keeps its strings in. All but LMDB and [none] have a bound, and take what was not used for longest
   out. *)

type store = {
  get : string -> string option;
  set : string -> string -> unit;
  length : unit -> int;
  turn : unit -> unit; (* after some commands, before their replies are sent *)
}

(* --- owned data --------------------------------------------------------------------------------------------------- *)

let owned ~most =
  let module T =
    Outheap_linear.Table.Make
      (struct
        include Outheap_linear.Text

        let equal = String.equal
        let hash = Hashtbl.hash
      end)
      (Outheap_linear.Text)
      ()
  in
  let t = T.create ~most () in
  {
    get = (fun k -> T.find k t);
    set = (fun k v -> T.replace k v t);
    length = (fun () -> T.length t);
    turn = ignore;
  }

(* --- the library's hash table, its elements in a ring in the order of their use ----------------------------------- *)

type element = { key : string; mutable text : string; mutable newer : element; mutable older : element }

let heap ~most =
  let module H =
    Hashtbl.Make (struct
      type t = string

      let equal = String.equal
      let hash = Hashtbl.hash
    end)
  in
  let t = H.create 16 in
  (* [older] of this one is the newest, [newer] the oldest. *)
  let rec ends = { key = ""; text = ""; newer = ends; older = ends } in
  let unlink e =
    e.newer.older <- e.older;
    e.older.newer <- e.newer
  in
  let link e =
    e.newer <- ends;
    e.older <- ends.older;
    ends.older.newer <- e;
    ends.older <- e
  in
  let touch e =
    if ends.older != e then begin
      unlink e;
      link e
    end
  in
  let drop e =
    unlink e;
    H.remove t e.key
  in
  {
    get =
      (fun k ->
        match H.find_opt t k with
        | Some e ->
            touch e;
            Some e.text
        | None -> None);
    set =
      (fun k v ->
        match H.find_opt t k with
        | Some e ->
            e.text <- v;
            touch e
        | None ->
            let e = { key = k; text = v; newer = ends; older = ends } in
            H.add t k e;
            link e;
            if H.length t > most then drop ends.newer);
    length = (fun () -> H.length t);
    turn = ignore;
  }

(* --- a table encoded in bigarrays --------------------------------------------------------------------------------- *)

module Encoded = struct
  open Bigarray

  type numbers = (int32, int32_elt, c_layout) Array1.t
  type bytes_outside = (char, int8_unsigned_elt, c_layout) Array1.t

  external get64 : bytes_outside -> int -> int64 = "%caml_bigstring_get64"
  external set64 : bytes_outside -> int -> int64 -> unit = "%caml_bigstring_set64"
  external bytes_set64 : Bytes.t -> int -> int64 -> unit = "%caml_bytes_set64"
  external string_get64 : string -> int -> int64 = "%caml_string_get64"

  (* Elements are numbers below [most]; -1 is none. An element's strings lie in one piece of an arena: the lengths of
     the key and of the text, 32 bits each, then the key from the next multiple of 8, and the text. *)
  type t = {
    most : int;
    mask : int;
    buckets : numbers;
    next : numbers; (* in its bucket, or of the free ones *)
    hashes : numbers;
    newer : numbers;
    older : numbers;
    places : numbers; (* in units of 16 bytes *)
    mutable begun : int; (* numbers that have been in use *)
    mutable free : int;
    mutable newest : int;
    mutable oldest : int;
    mutable count : int;
    mutable chunks : bytes_outside array;
    mutable filled : int; (* bytes of the last chunk *)
    free_places : int array; (* by size class; the next one is in the piece *)
  }

  let chunk_bits = 22
  let chunk = 1 lsl chunk_bits
  let longest = chunk - 32
  let[@inline] get (a : numbers) i = Int32.to_int (Array1.unsafe_get a i)
  let[@inline] set (a : numbers) i n = Array1.unsafe_set a i (Int32.of_int n)

  let numbers n : numbers = Array1.create int32 c_layout n

  let rec power_of_two n from = if from >= n then from else power_of_two n (2 * from)

  let create most =
    let size = power_of_two most 16 and all () = numbers (most + 1) in
    let buckets = numbers size in
    Array1.fill buckets (-1l);
    { most; mask = size - 1; buckets; next = all (); hashes = all (); newer = all (); older = all (); places = all ();
      begun = 0; free = -1; newest = -1; oldest = -1; count = 0; chunks = [||]; filled = chunk;
      free_places = Array.make 128 (-1) }

  (* Sizes are multiples of 16 up to 1024, then powers of two: the class, and the size. *)
  let size_class bytes =
    if bytes <= 1024 then ((bytes + 15) / 16, (bytes + 15) / 16 * 16)
    else
      let rec go c size = if size >= bytes then (c, size) else go (c + 1) (2 * size) in
      go 65 2048

  let[@inline] part t place = Array.unsafe_get t.chunks (place lsr (chunk_bits - 4))
  let[@inline] offset place = (place lsl 4) land (chunk - 1)
  let padded n = (n + 7) land lnot 7
  let bytes_of key text = 8 + padded key + padded text

  let take_place t bytes =
    let c, size = size_class bytes in
    let place = t.free_places.(c) in
    if place >= 0 then begin
      t.free_places.(c) <- Int64.to_int (get64 (part t place) (offset place));
      place
    end
    else begin
      if t.filled + size > chunk then begin
        t.chunks <- Array.append t.chunks [| Array1.create char c_layout chunk |];
        t.filled <- 0
      end;
      let at = t.filled in
      t.filled <- at + size;
      ((Array.length t.chunks - 1) lsl (chunk_bits - 4)) + (at lsr 4)
    end

  let give_place t place bytes =
    let c, _ = size_class bytes in
    set64 (part t place) (offset place) (Int64.of_int t.free_places.(c));
    t.free_places.(c) <- place

  let write (b : bytes_outside) at s =
    let n = String.length s in
    for i = 0 to (n / 8) - 1 do set64 b (at + (8 * i)) (string_get64 s (8 * i)) done;
    for i = n land lnot 7 to n - 1 do Array1.unsafe_set b (at + i) (String.unsafe_get s i) done

  let read (b : bytes_outside) at n =
    let s = Bytes.create n in
    for i = 0 to (n / 8) - 1 do bytes_set64 s (8 * i) (get64 b (at + (8 * i))) done;
    for i = n land lnot 7 to n - 1 do Bytes.unsafe_set s i (Array1.unsafe_get b (at + i)) done;
    Bytes.unsafe_to_string s

  let is_key (b : bytes_outside) at s =
    let n = String.length s in
    let rec words i = i >= n / 8 || (get64 b (at + (8 * i)) = string_get64 s (8 * i) && words (i + 1)) in
    let rec rest i = i >= n || (Array1.unsafe_get b (at + i) = String.unsafe_get s i && rest (i + 1)) in
    words 0 && rest (n land lnot 7)

  let[@inline] lengths t i =
    let both = Int64.to_int (get64 (part t (get t.places i)) (offset (get t.places i))) in
    (both land 0xffffffff, both lsr 32)

  let rec search t key hash i =
    if i < 0 then -1
    else if
      get t.hashes i = hash
      &&
      let k, _ = lengths t i in
      k = String.length key && is_key (part t (get t.places i)) (offset (get t.places i) + 8) key
    then i
    else search t key hash (get t.next i)

  let hash key = Hashtbl.hash key land 0x3fffffff
  let find t key hash = search t key hash (get t.buckets (hash land t.mask))

  let unlink t i =
    let n = get t.newer i and o = get t.older i in
    if n < 0 then t.newest <- o else set t.older n o;
    if o < 0 then t.oldest <- n else set t.newer o n

  let link t i =
    set t.newer i (-1);
    set t.older i t.newest;
    if t.newest < 0 then t.oldest <- i else set t.newer t.newest i;
    t.newest <- i

  let touch t i =
    if t.newest <> i then begin
      unlink t i;
      link t i
    end

  let drop_strings t i =
    let k, v = lengths t i in
    give_place t (get t.places i) (bytes_of k v)

  let put_strings t i key text =
    let k = String.length key and v = String.length text in
    let place = take_place t (bytes_of k v) in
    let b = part t place and at = offset place in
    set64 b at (Int64.of_int ((v lsl 32) lor k));
    write b (at + 8) key;
    write b (at + 8 + padded k) text;
    set t.places i place

  let drop t i =
    unlink t i;
    let bucket = get t.hashes i land t.mask in
    let after = get t.next i in
    let rec go at = if get t.next at = i then set t.next at after else go (get t.next at) in
    if get t.buckets bucket = i then set t.buckets bucket after else go (get t.buckets bucket);
    drop_strings t i;
    set t.next i t.free;
    t.free <- i;
    t.count <- t.count - 1

  let new_number t =
    if t.free >= 0 then begin
      let i = t.free in
      t.free <- get t.next i;
      i
    end
    else begin
      t.begun <- t.begun + 1;
      t.begun - 1
    end

  let add t key text =
    if bytes_of (String.length key) (String.length text) > longest then failwith "longer than 4 MiB";
    let h = hash key in
    let i = find t key h in
    if i >= 0 then begin
      let place = get t.places i and k, v = lengths t i in
      put_strings t i key text;
      give_place t place (bytes_of k v);
      touch t i
    end
    else begin
      let i = new_number t in
      put_strings t i key text;
      set t.hashes i h;
      set t.next i (get t.buckets (h land t.mask));
      set t.buckets (h land t.mask) i;
      link t i;
      t.count <- t.count + 1;
      if t.count > t.most then drop t t.oldest
    end

  let text t i =
    let k, v = lengths t i in
    let place = get t.places i in
    read (part t place) (offset place + 8 + padded k) v
end

let encoded ~most =
  let t = Encoded.create most in
  let find k = Encoded.find t k (Encoded.hash k) in
  {
    get =
      (fun k ->
        let i = find k in
        if i < 0 then None
        else begin
          Encoded.touch t i;
          Some (Encoded.text t i)
        end);
    set = Encoded.add t;
    length = (fun () -> t.count);
    turn = ignore;
  }

(* --- LMDB: without a bound; commands that come together are one transaction, without synchronisation -------------- *)

module Lmdb = struct
  external open_ : string -> int -> unit = "cache_lmdb_open"
  external get : string -> string option = "cache_lmdb_get"
  external put : string -> string -> unit = "cache_lmdb_put"
  external length : unit -> int = "cache_lmdb_length"
  external commit : unit -> unit = "cache_lmdb_commit"
end

let lmdb ~folder ~most =
  Lmdb.open_ folder ((most * 1024) + (1 lsl 30));
  { get = Lmdb.get; set = Lmdb.put; length = Lmdb.length; turn = Lmdb.commit }

(* --- no store: what the server costs without one ------------------------------------------------------------------ *)

(* What was set is forgotten. Each key of a client's has a text at any time, which is made from the key. *)
let none =
  let text k =
    let n = String.length k in
    let rec first i = if i < n - 1 && k.[i] = '0' then first (i + 1) else i in
    let from = first 4 in
    Some (String.concat "" [ String.sub k from (n - from); ":"; k; k ])
  in
  { get = text; set = (fun _ _ -> ()); length = (fun () -> 0); turn = ignore }

let make name ~folder ~most =
  match name with
  | "owned" -> owned ~most
  | "hashtbl" -> heap ~most
  | "bigarray" -> encoded ~most
  | "lmdb" -> lmdb ~folder ~most
  | "none" -> none
  | other -> failwith ("no store " ^ other)

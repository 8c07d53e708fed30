(* SPDX-License-Identifier: MIT *)
(* The buckets of tables: chains of cells, by linear hashing. With each new cell beyond one for each bucket, one bucket
   is divided in two. Buckets are words outside the heap, in segments. The first segment has room for [least] buckets at
   first, and doubles until it is as large as the others. There are [half] buckets to 2 * [half]; bucket n was divided
   off from bucket n - [half]. *)
open Outheap_linear__owner
module Raw = Outheap_linear__raw

let least = 8
let segment_bits = 12
let segment = 1 lsl segment_bits

(* The stubs know where these fields are. *)
type buckets = {
  mark : Obj.t;
  mutable segments : int array; (* addresses, as immediates *)
  mutable count : int;
  mutable half : int;
}
[@@warning "-69"]

(* What is in a table, beside its owner. [most]: so many elements at most; [max_int]: any number, and cells have no
   [newer] and [older]. [evicted] is called with what has to go. *)
type ('k, 'v) table = {
  b : buckets;
  most : int;
  pool : Raw.pool;
  evicted : ('k -> 'v -> unit) option;
  mutable evictions : int;
}

let[@inline] table o : ('k, 'v) table = Obj.obj o.more
let[@inline] is_bound d = d.most <> max_int

(* Tables are not consumed, but for [close]: [version] is 0 until then. *)
let[@inline] right owner : right = { owner; version = 0 }

external array_at : int -> int array = "%int_as_pointer"

(* [first]: the first ones of a table. *)
external resize : int -> words:int -> first:bool -> int = "outheap_linear_ml_buckets_resize" [@@noalloc]
external free : int -> first:bool -> unit = "outheap_linear_ml_buckets_free" [@@noalloc]
external shrink : buckets -> int -> int -> int -> unit = "outheap_linear_ml_buckets_shrink" [@@noalloc]

(* Moves the cells of one whose hash ends in [n] to another; takes a cell out. In C, so that no signal is handled in
   between. *)
external move : from:int -> into:int -> mask:int -> n:int -> unit = "outheap_linear_ml_divide" [@@noalloc]
external unchain : int -> Raw.cell -> unit = "outheap_linear_ml_unchain" [@@noalloc]

(* The address of bucket [i]: words are 8 bytes, and an address a is the immediate a / 2. *)
let[@inline] place b i = Array.unsafe_get b.segments (i lsr segment_bits) + (4 * (i land (segment - 1)))
let[@inline] bucket b i : Raw.cell = Array.unsafe_get (array_at (place b i)) 0
let[@inline] set_bucket b i (c : Raw.cell) = Array.unsafe_set (array_at (place b i)) 0 c

let[@inline] index b hash =
  let i = hash land ((2 * b.half) - 1) in
  if i >= b.count then i - b.half else i

let mix hash = (hash * 0x1E3779B97F4A7C15) lsr 17

(* Makes room for bucket [i], the next one. *)
let has_room b i =
  let s = i lsr segment_bits in
  let doubles = i < segment && i land (i - 1) = 0 in
  if i land (segment - 1) <> 0 && not doubles then true
  else begin
    if s >= Array.length b.segments then begin
      let more = Array.make ((2 * s) + 4) 0 in
      Array.blit b.segments 0 more 0 (Array.length b.segments);
      b.segments <- more
    end;
    let words = if doubles then max least (2 * i) else segment in
    let segment = resize b.segments.(s) ~words ~first:(s = 0) in
    if segment <> 0 then b.segments.(s) <- segment;
    segment <> 0
  end

let divide b =
  let n = b.count in
  if has_room b n then begin
    let from = n - b.half in
    move ~from:(place b from) ~into:(place b n) ~mask:((2 * b.half) - 1) ~n;
    b.count <- n + 1;
    if b.count = 2 * b.half then b.half <- b.count
  end

(* --- cells: of tables with a bound, with [newer] and [older] ------------------------------------------------------ *)

let[@inline] get c i : Raw.cell = Array.unsafe_get (Raw.words c) i
let[@inline] set c i (x : Raw.cell) = Array.unsafe_set (Raw.words c) i x
let[@inline] key c : 'k = Obj.magic (get c 0)
let[@inline] contents c : 'v = Obj.magic (get c 1)
let[@inline] set_contents c (s : 'v) = set c 1 (Obj.magic s)
let[@inline] next c = get c 2
let[@inline] set_next c x = set c 2 x
let[@inline] hash_of c : int = get c 3
let[@inline] set_hash c (hash : int) = set c 3 hash
let[@inline] newer c = get c 4
let[@inline] older c = get c 5
let[@inline] set_newer c x = set c 4 x
let[@inline] set_older c x = set c 5 x
let[@inline] detach b c = unchain (place b (index b (hash_of c))) c

(* The list of a table with a bound, from [o.root], the newest, to [o.last]. *)
let unlink o c =
  let n = newer c and p = older c in
  if Raw.is_none n then o.root <- p else set_older n p;
  if Raw.is_none p then o.last <- n else set_newer p n

let link_newest o c =
  let p = o.root in
  set_newer c Raw.none;
  set_older c p;
  if Raw.is_none p then o.last <- c else set_newer p c;
  o.root <- c

let touch o c =
  if c <> o.root then begin
    unlink o c;
    link_newest o c
  end

(* Every equation of a table; the first that does not hold. *)
let check o b ~bound =
  let n = ref 0 and wrong = ref "" in
  for i = 0 to b.count - 1 do
    let c = ref (bucket b i) in
    while not (Raw.is_none !c) do
      incr n;
      if index b (hash_of !c) <> i then wrong := "bucket";
      if bound then begin
        if (not (Raw.is_none (newer !c))) && older (newer !c) <> !c then wrong := "list";
        if Raw.is_none (newer !c) && o.root <> !c then wrong := "newest"
      end;
      c := next !c
    done
  done;
  if !n <> o.size then wrong := "size";
  if b.count < b.half || b.count >= 2 * b.half then wrong := "buckets";
  if bound then begin
    let c = ref o.root and m = ref 0 and last = ref Raw.none in
    while not (Raw.is_none !c) do
      incr m;
      last := !c;
      c := older !c
    done;
    if !m <> o.size || !last <> o.last then wrong := "order"
  end;
  !wrong

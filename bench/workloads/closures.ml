(* SPDX-License-Identifier: MIT *)
(* closures: a binding with a table of callbacks in C, as binding authors write them: each entry keeps an OCaml closure
   alive. So many closures are added, each is replaced by another, the collector runs twenty times, each is called, and
   all are removed in random order. Reports the processor time of each part, the GC included. A closure that does not
   compute what it should, one that is gone too early, or one that stays after its removal, is an error. Arguments:
   closures. *)

let majors = 20
let watched i = i land 1023 = 0 (* the life of these is checked *)

(* The [i]-th closure of a kind: a young block each time, which computes something that only it does. *)
let[@inline never] closure kind i =
  let k = (kind * 0x9E3779B1) lxor i in
  fun x -> x + k

let expected kind i x = x + ((kind * 0x9E3779B1) lxor i)

let milliseconds name f =
  let start = Bench.cpu () in
  f ();
  Bench.metric name ((Bench.cpu () -. start) *. 1e3) "ms"

let alive weak = List.length (List.filter (Weak.check weak) (List.init (Weak.length weak) Fun.id))

let () =
  let count = Bench.int_argument 1 ~default:300_000 in
  let numbers = Array.make count (-1) in
  let seen = (count + 1023) / 1024 in
  let added = Weak.create seen and replaced = Weak.create seen in
  Gc.full_major ();
  let start = Bench.cpu () in
  milliseconds "add" (fun () ->
      for i = 0 to count - 1 do
        let f = closure 1 i in
        if watched i then Weak.set added (i lsr 10) (Some f);
        numbers.(i) <- Callbacks.add f
      done);
  milliseconds "replace" (fun () ->
      for i = 0 to count - 1 do
        let f = closure 2 i in
        if watched i then Weak.set replaced (i lsr 10) (Some f);
        Callbacks.replace numbers.(i) f
      done);
  milliseconds "twenty full majors" (fun () ->
      for _ = 1 to majors do
        Gc.full_major ()
      done);
  if alive added > 0 then Bench.fail "%d closures are alive that were replaced" (alive added);
  if alive replaced < seen then Bench.fail "%d of %d closures are alive that the table holds" (alive replaced) seen;
  milliseconds "call each" (fun () ->
      for i = 0 to count - 1 do
        if Callbacks.call numbers.(i) 7 <> expected 2 i 7 then Bench.fail "callback %d has another closure" i
      done);
  Rng.shuffle numbers;
  milliseconds "remove at random" (fun () -> Array.iter Callbacks.remove numbers);
  Bench.metric "all of it" ((Bench.cpu () -. start) *. 1e3) "ms";
  for _ = 1 to 4 do
    Gc.full_major ()
  done;
  if alive replaced > 0 then Bench.fail "%d closures are alive that were removed" (alive replaced);
  Bench.gc_metrics ()

(* SPDX-License-Identifier: MIT *)
(* Minor heaps that adapt their size: OUTHEAP=minor=adaptive:8k-1M, OCAMLRUNPARAM=s=32k. Trials of two sizes, beyond 1M
   words: OUTHEAP=minor=adaptive:8k-4M, OCAMLRUNPARAM=s=1M. *)
open Outheap

let expect what condition = if not condition then failwith what
let size () = (Gc.get ()).minor_heap_size
let least = 8_192
let most = 1_048_576

(* Small blocks of which some live for a while. *)
let work seed =
  let random = Random.State.make [| seed |] in
  let held = Array.make 1_000 [] in
  for i = 1 to 20_000 do
    let k = Random.State.int random 1_000 in
    List.iter (fun s -> expect "contents" (s = string_of_int k)) held.(k);
    held.(k) <- (if i land 7 = 0 then [] else string_of_int k :: held.(k))
  done

(* A deep stack: what a collection costs does not depend on the size of the minor heap, so that it grows. *)
let rec deep n f = if n = 0 then f () else 1 + deep (n - 1) f
let under_a_stack f = expect "the stack" (deep 60_000 (fun () -> f (); 0) = 60_000)

(* Works until something is so; a limit that only a fault reaches. *)
let rec until ?(n = 3_000) what condition =
  expect what (n > 0);
  if not (condition ()) then begin
    work n;
    until ~n:(n - 1) what condition
  end

let grows () =
  let before = (statistics ()).minor_grown in
  under_a_stack (fun () -> until "grows to the largest size" (fun () -> size () = most));
  expect "that is counted" ((statistics ()).minor_grown >= before + 5);
  expect "young is counted" ((statistics ()).young >= most * 8);
  work 1

(* Another parameter leaves it as it is; a size stays. *)
let set () =
  Gc.set { (Gc.get ()) with space_overhead = 100 };
  under_a_stack (fun () -> until "grows" (fun () -> size () >= 131_072));
  List.iter
    (fun words ->
      Gc.set { (Gc.get ()) with minor_heap_size = words };
      let changes () = let s = statistics () in s.minor_grown + s.minor_shrunk in
      let before = changes () in
      under_a_stack (fun () -> for i = 1 to 15 do work i done);
      expect "the size that was set" (size () = words);
      expect "no change" (changes () = before))
    [ 65_536; 4_096; 2_097_152; 32_768 ]

external limit : int -> unit = "variant_limit"

(* There is no address space for a larger one: it stops growing, and the program goes on. *)
let refused () =
  limit 4_000_000;
  under_a_stack (fun () -> until "is refused" (fun () -> (statistics ()).minor_refused > 0));
  let before = size () in
  for i = 1 to 20 do work i done;
  expect "as large as it could be" (size () = before && before < most);
  limit (-1);
  under_a_stack (fun () -> until "grows at last" (fun () -> size () = most))

(* Two sizes are tried in turn: it falls, although collections cost much, so many times; then the trial goes on. *)
let fall times =
  let last = ref (size ()) and falls = ref 0 in
  under_a_stack (fun () ->
    until "two sizes are tried" (fun () ->
      let now = size () in
      if now < !last then incr falls;
      last := now;
      !falls = times))

let tries () =
  expect "the size at first" (size () = most);
  fall 1;
  expect "memory for both" ((statistics ()).young >= 8 * size ());
  Gc.compact ();
  fall 2;
  if Unix.fork () = 0 then begin
    fall 1;
    Unix._exit 0
  end;
  fall 1;
  expect "the child" (snd (Unix.wait ()) = Unix.WEXITED 0);
  (* The program chooses in the middle of a trial. *)
  Gc.set { (Gc.get ()) with minor_heap_size = 65_536 };
  work 1;
  expect "the size that was set" (size () = 65_536)

let tests = [ "adaptive-tries", tries; "adaptive-grows", grows; "adaptive-set", set; "adaptive-refused", refused ]

(* SPDX-License-Identifier: MIT *)
external create : int -> unit = "demo_create"
external set : int -> 'a -> unit = "demo_set"
external get : int -> 'a = "demo_get"
external address : int -> int = "demo_address" [@@noalloc]
external delete_half : unit -> unit = "demo_delete_half"
external print_stats : unit -> unit = "demo_print_stats"

let n = 1_000_000
let say format = Printf.printf (format ^^ "\n%!")

let timed what f =
  let start = Sys.time () in
  f ();
  say "%-62s %8.2f ms" what ((Sys.time () -. start) *. 1e3)

let check step =
  let i = ref 0 in
  while !i < n do
    assert (get !i = (!i, string_of_int !i));
    i := !i + step
  done

let () =
  say "OCaml %s; a table of C owns OCaml pairs, one root each" Sys.ocaml_version;
  create n;
  set 0 (0, string_of_int 0);
  let young = address 0 in
  Gc.minor ();
  say "root 0: its value was at %x; a minor collection moved it to %x" (young * 2) (address 0 * 2);
  timed "a million roots created" (fun () ->
      for i = 0 to n - 1 do
        set i (i, string_of_int i)
      done);
  timed "a minor collection, with a million roots" Gc.minor;
  timed "a full major collection" Gc.full_major;
  timed "a compaction" Gc.compact;
  check 1;
  say "every root still holds its value";
  timed "every second root deleted, by a thread without OCaml's lock" delete_half;
  timed "a full major collection" Gc.full_major;
  check 2;
  say "every root left still holds its value\n";
  print_stats ()

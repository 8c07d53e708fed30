(* SPDX-License-Identifier: MIT *)
(* Addresses that malloc or mmap once handed out must not become a part of OCaml's heap while OCaml blocks hold them.

     recycle malloc|mmap|chunks|beside           with OUTHEAP=reserve=SIZE, more than the heap comes to (about 1 GB): no
                                                 such address ever does
     recycle malloc|mmap|chunks|beside met       without: those that the collector met while they were foreign never do
     recycle malloc|mmap|chunks|beside control   without both, and without holding them: says how many do; fails when
                                                 none does *)

external get : int -> int array -> int = "recycle_get"
external give : int -> unit = "recycle_give" [@@noalloc]
external trim : unit -> unit = "recycle_trim" [@@noalloc]
external address : int -> int -> Obj.t = "recycle_address" [@@noalloc]
external same : Obj.t -> int -> int -> bool = "recycle_same" [@@noalloc]
external taken : bool -> int = "recycle_taken"
external kind : Obj.t -> int = "recycle_kind"

let fail format = Printf.ksprintf (fun s -> prerr_endline ("recycle: " ^ s); exit 1) format

let how, count = match Sys.argv.(1) with "malloc" -> 0, 3000 | "mmap" -> 1, 300 | "chunks" -> 2, 6 | "beside" -> 3, 6
  | s -> fail "%s?" s
let mode = if Array.length Sys.argv > 2 then Sys.argv.(2) else ""

(* What OCaml holds: pairs of an area's number and addresses in it. *)
let old = Array.make 100_000 0 (* a block of the major heap *)
let held : (int * Obj.t array) list ref = ref []

let check when_ =
  List.iter (fun (n, a) ->
    Array.iteri (fun k v -> if not (same v n k) then fail "an address has changed (%s)" when_) a) !held;
  if mode <> "control" then
    let n = taken (mode = "") in
    if n < 0 then fail "this is the stock runtime"
    else if n > 0 then fail "%d addresses have become the heap's (%s)" n when_

(* About `mb` MB of small and of large blocks. *)
let grow mb =
  let small = List.init (mb / 2) (fun i -> List.init (1024 * 1024 / 24) (fun j -> i + j)) in
  let large = List.init (mb / 2) (fun i -> Array.make (1024 * 1024 / 8) i) in
  (small, large)

let () =
  if mode = "" && (match Sys.getenv_opt "OUTHEAP" with Some s ->
                     not (List.exists (fun s -> String.length s > 8 && String.sub s 0 8 = "reserve=")
                          (String.split_on_char ',' s)) | None -> true)
  then fail "no reserve= in OUTHEAP";
  let heap = ref [] in
  let most = ref 0 in
  for round = 1 to 4 do
    let numbers = List.init count (fun _ -> get how old) in
    if mode <> "control" then
      held := List.rev_append (List.rev_map (fun n ->
        (n, Array.init (if mode = "" then 8 else 1) (address n))) numbers) !held;
    if mode = "met" then Gc.full_major ();
    (* Given back in another order. *)
    List.iter (fun n -> if n land 1 = 0 then give n) numbers;
    if round land 1 = 0 then heap := grow 100 :: !heap;
    List.iter give numbers;
    trim ();
    check "given back";
    heap := grow 200 :: !heap;
    check "grown";
    Gc.full_major ();
    check "collected";
    Gc.set { (Gc.get ()) with minor_heap_size = 262144 * round };
    most := max !most (taken true);
    if round = 2 then begin heap := []; Gc.compact (); check "compacted" end
  done;
  most := max !most (taken true);
  List.iter (fun (_, a) ->
    Array.iter (fun v -> if kind v = 1 || kind v = 2 then fail "an address is the heap's") a) !held;
  ignore (Sys.opaque_identity !heap);
  if mode = "control" then begin
    Printf.printf "%d areas have become the heap's\n" !most;
    if !most = 0 then exit 1
  end else Printf.printf "ok: %d areas\n" (List.length !held)

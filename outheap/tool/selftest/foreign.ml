(* SPDX-License-Identifier: MIT *)
(* Patterns that are no values, by number (foreign.c). *)

type kind =
  | Null | Low | Unreadable | Readable | Unaligned | Malloc | C_code | Ocaml_code | Static | Stack | Edge | Wild
  | Non_canonical | Alias
  | Freed | Unmapped | Near_maps | User_wild

let names = [
  "null", Null; "low", Low; "unreadable", Unreadable; "readable", Readable; "unaligned", Unaligned; "malloc", Malloc;
  "c-code", C_code;
  "ocaml-code", Ocaml_code; "static", Static; "stack", Stack; "edge", Edge; "wild", Wild;
  "non-canonical", Non_canonical; "alias", Alias;
  "freed", Freed; "unmapped", Unmapped; "near-maps", Near_maps; "user-wild", User_wild ]

(* Memory that is given back, and addresses that are nobody's: only for a runtime that reserves address space for its
   heap. *)
let recycled = [Freed; Unmapped; Near_maps; User_wild]
let held = List.filter (fun k -> not (List.mem k recycled)) (List.map snd names)

type t = Obj.t (* never looked into *)

external make : kind -> Obj.t -> int = "torture_make"
external seed : int -> unit = "torture_seed"
external number : unit -> int = "torture_number" [@@noalloc]
external foreign : int -> t = "torture_foreign" [@@noalloc]
external same : t -> int -> bool = "torture_same" [@@noalloc]
external unaligned : int -> bool = "torture_unaligned" [@@noalloc]
external show : int -> string = "torture_show"
external has_variant : unit -> bool = "torture_has_variant"
external taken : unit -> int = "torture_taken"
external intact : unit -> bool = "torture_intact"
external begin_marking : unit -> unit = "torture_begin_marking" [@@noalloc]
external note : string -> unit = "torture_note" [@@noalloc]

let old = Array.make 10 0 (* a block of the major heap, soon *)

let create rng kind =
  let block =
    match kind with
    | Ocaml_code ->
      let fs : Obj.t array = [| Obj.repr List.map; Obj.repr (fun x -> x + 1); Obj.repr Foreign_code.f;
                                Obj.repr Printf.printf |] in
      fs.(Random.State.int rng 4)
    | _ -> if Random.State.bool rng then Obj.repr old else Obj.repr (ref 0) in
  make kind block

exception Wrong of string
let wrong format = Printf.ksprintf (fun s -> raise (Wrong s)) format

(* A value and what the test knows of it. *)
type item =
  | Foreign of int
  | Int of int
  | String of int (* decimal digits, in a fresh string *)
  | Float of int  (* a boxed float *)

let value = function
  | Foreign n -> foreign n
  | Int n -> Obj.repr n
  | String n -> Obj.repr (string_of_int n)
  | Float n -> Obj.repr (float_of_int n)

let text = function
  | Foreign n -> Printf.sprintf "foreign %d (%s)" n (show n)
  | Int n -> string_of_int n
  | String n -> Printf.sprintf "%S" (string_of_int n)
  | Float n -> Printf.sprintf "%d." n

let holds item (v : Obj.t) =
  match item with
  | Foreign n -> same v n
  | Int n -> v == Obj.repr n
  | String n -> Obj.is_block v && Obj.tag v = Obj.string_tag && (Obj.obj v : string) = string_of_int n
  | Float n -> Obj.is_block v && Obj.tag v = Obj.double_tag && (Obj.obj v : float) = float_of_int n

let check item v = if not (holds item v) then wrong "a field does not hold %s any more" (text item)

(* What a player may use: where its random numbers and patterns come from. *)
type context = {
  rng : Random.State.t;
  patterns : int array;   (* to choose from *)
  only_foreign : bool;    (* no ordinary values *)
  (* weak arrays and ephemerons, which a domain that ends must not have in OCaml 5 (boxroot/test/README.md) *)
  ephemerons : bool;
  compaction : bool;
}

let int c n = Random.State.int c.rng n
let bool c = Random.State.bool c.rng
let pick c a = a.(int c (Array.length a))
let pattern c = pick c c.patterns

let item c = (* for an array: no float *)
  if c.only_foreign then Foreign (pattern c)
  else match int c 10 with
    | 0 -> Int (int c 1000 - 500)
    | 1 | 2 -> String (int c 1_000_000)
    | _ -> Foreign (pattern c)
let item_or_float c = if c.only_foreign || int c 12 > 0 then item c else Float (int c 1000)

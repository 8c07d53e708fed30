(* SPDX-License-Identifier: MIT *)
(* Cells outside the heap. They are read and written as arrays of immediates: without the barrier, and by loads that the
   compiler does not move over stores, as it may move those of the fields of constructors. All that is stored are
   immediates and pointers to what the collector does not move.

   Dune's development profile inlines nothing of another unit but primitives. A call in the middle of a change would be
   slow, and one at the end of a function handles signals. So what is needed there is a primitive here, or is defined in
   the unit that needs it. *)
exception Moved
exception Borrowed

let () = Callback.register_exception "Outheap_linear.Moved" Moved

type pool = int
type cell = int

external words : cell -> int array = "%identity"
external is_none : cell -> bool = "%obj_is_int"
external byte : cell -> int -> char = "%bytes_unsafe_get"
external set_byte : cell -> int -> char -> unit = "%bytes_unsafe_set"
external to_view : cell -> 'a = "%opaque"
external start : unit -> unit = "outheap_linear_ml_start"

(* [within]: a free cell may be written to, as nobody reads one. *)
external pool : int -> within:bool -> pool = "outheap_linear_ml_pool"
external fresh : pool -> int -> cell = "outheap_linear_ml_new" [@@noalloc]
external free : pool -> cell -> unit = "outheap_linear_ml_free" [@@noalloc]
external free_chain : pool -> cell -> int -> unit = "outheap_linear_ml_free_chain" [@@noalloc]
external free_tree : pool -> cell -> int -> int -> unit = "outheap_linear_ml_free_tree" [@@noalloc]
external reverse : cell -> cell -> cell = "outheap_linear_ml_reverse" [@@noalloc]
external last : cell -> cell = "outheap_linear_ml_last" [@@noalloc]
external read_out : cell -> int array -> unit = "outheap_linear_ml_read_out" [@@noalloc]
external write_back : cell -> int array -> int -> unit = "outheap_linear_ml_write_back" [@@noalloc]
external used : pool -> int = "outheap_linear_ml_used" [@@noalloc]
external bytes : pool -> int = "outheap_linear_ml_bytes" [@@noalloc]
external trim : pool -> int = "outheap_linear_ml_trim" [@@noalloc]
external thin : pool -> bool = "outheap_linear_ml_thin" [@@noalloc]
external poison : bool -> unit = "outheap_linear_ml_poison" [@@noalloc]
external check : pool -> string = "outheap_linear_ml_check"

(* What a cell may hold. *)
external is_plain : 'a -> bool = "outheap_linear_ml_is_plain" [@@noalloc]
external hold : 'a -> bool = "outheap_linear_ml_hold"
external slots : unit -> int = "outheap_linear_ml_slots"
external slot_take : int -> int = "outheap_linear_ml_slot_take" [@@noalloc]
external slot_give : int -> int -> unit = "outheap_linear_ml_slot_give" [@@noalloc]
external texts : unit -> int = "outheap_linear_ml_texts" [@@noalloc]
external text_new : string -> cell = "outheap_linear_ml_text_new" [@@noalloc]
external text_free : cell -> unit = "outheap_linear_ml_text_free" [@@noalloc]
external text_copy : string -> string = "outheap_linear_ml_text_copy"

(* Cells of a program's own types: a group of pools. *)
external group : unit -> int = "outheap_linear_ml_group"
external next : int -> pool -> pool = "outheap_linear_ml_next" [@@noalloc]
external make : int -> 'a -> Obj.t = "outheap_linear_ml_make" [@@noalloc]
external take : int -> 'a -> int = "outheap_linear_ml_take" [@@noalloc]
external untake : int -> unit = "outheap_linear_ml_untake" [@@noalloc]
external put : int -> int -> 'a -> Obj.t = "outheap_linear_ml_put" [@@noalloc]
external drop : int -> int -> int = "outheap_linear_ml_drop" [@@noalloc]
external is_ordinary : 'a -> bool = "outheap_linear_ml_is_ordinary" [@@noalloc]

let none : cell = 0
let () = start ()

module Group = struct
  let sum group f =
    let rec go pool sum = if pool = 0 then sum else go (next group pool) (sum + f pool) in
    go (next group 0) 0

  let check group =
    let rec go pool = if pool = 0 then "" else match check pool with "" -> go (next group pool) | w -> w in
    go (next group 0)
end

(* Moves what is in thin pages together, and gives back the pages that this leaves. *)
let gather ~thin ~move trim =
  match if thin then move () with
  | () -> trim ()
  | exception e ->
      let trace = Printexc.get_raw_backtrace () in
      ignore (trim ());
      Printexc.raise_with_backtrace e trace

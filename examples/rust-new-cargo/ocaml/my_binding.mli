(* Written by ocaml-boxroot from the types of the Rust library `my_binding`. Changes here are lost. *)

[@@@warning "-30"]

(** What OCaml knows of Rust. *)

type entry = {
  word : string;  (** The word. *)
  times : int;  (** How often. *)
}
(** A word, and how often it occurs. *)

external is_ignored : string -> bool = "ocaml_export_my_binding__is_ignored"
(** Words that are not counted: what OCaml asks Rust. *)


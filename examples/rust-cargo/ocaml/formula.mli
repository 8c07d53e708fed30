(* Written by ocaml-boxroot from the types of the Rust library `formula`. Changes here are lost. *)

[@@@warning "-30"]

(** The Rust side of the program. *)

type expr =
  | Number of float
  | Variable of string
  | Sum of expr * expr
  | Product of expr * expr
(** A formula, as OCaml's parser returns it. *)

external variable : string -> float = "ocaml_export_formula__variable"
(** The value of a variable: in this program, of the environment. *)


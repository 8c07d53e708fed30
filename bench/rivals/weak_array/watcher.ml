(* SPDX-License-Identifier: MIT *)
(* A C array of observers: what foreign code keeps of a value, so as to find it again while it is there. *)
external make : int -> unit = "watcher_make" (* so many places, all without an observer *)
external fill : int -> 'a array -> unit = "watcher_fill" [@@noalloc]
(** [fill first values]: observers in the places from [first] on, one for each of the values. *)

external turn : int -> 'a array -> unit = "watcher_turn" [@@noalloc]
(** [turn rounds values]: so many times, an observer for each value in the first places, and then none. *)

external alive : unit -> int = "watcher_alive" (* looks each value up; how many are there *)
external root_each : unit -> int = "watcher_root_each" (* the same, with a root for a moment *)
external delete_all : unit -> unit = "watcher_delete_all" [@@noalloc]

external delete_by_thread : unit -> float = "watcher_delete_by_thread"
(** All, by a thread that OCaml does not know; the seconds it took. The caller keeps the domain lock. *)

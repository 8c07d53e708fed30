(* SPDX-License-Identifier: MIT *)
(* What the plug-in is to call when it is loaded and has not used the library yet. *)
let before_use : (unit -> unit) ref = ref ignore

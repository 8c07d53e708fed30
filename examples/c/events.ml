(* SPDX-License-Identifier: MIT *)
type id

external subscribe : (string -> unit) -> id = "events_subscribe"
external unsubscribe : id -> unit = "events_unsubscribe"
external fire : string -> unit = "events_fire"

let heard = ref []
let listener name = subscribe (fun event -> heard := (name ^ " hears " ^ event) :: !heard)

let () =
  let a = listener "a" in
  let _b = listener "b" in
  Gc.full_major ();
  Gc.compact ();
  (* nothing of OCaml refers to the closures any more *)
  fire "one";
  unsubscribe a;
  Gc.full_major ();
  fire (String.concat "" [ "t"; "w"; "o" ]);
  List.iter print_endline (List.rev !heard);
  assert (List.rev !heard = [ "a hears one"; "b hears one"; "b hears two" ])

(* SPDX-License-Identifier: MIT *)
(* Sessions of a server, by number, with the time of their last use; the longest unused ones end when there are too
   many. The tables are owned: they lie outside the heap, change in place, and the collector passes them by.

   ocamlfind ocamlopt -package outheap.linear -linkpkg sessions.ml -o sessions
   With the runtime variant (-I DIR -runtime-variant _outheap) their memory goes back to the system. *)
module Linear = Outheap_linear

module Number = struct
  include Linear.Plain (Int)

  let compare = Int.compare
end

(* Names are strings of the heap; the collector marks these, and nothing else. *)
module Names = Linear.Map.Make (Number) (Linear.Rooted (String) ()) ()
module Times = Linear.Map.Make (Number) (Linear.Plain (Int)) ()

(* What is to be looked at when room is needed, in the order of use: numbers and times, in turns. *)
module Uses = Linear.Queue.Make (Linear.Plain (Int)) ()

type sessions = { mutable names : Names.t; mutable times : Times.t; uses : Uses.t; most : int }

let create most = { names = Names.create (); times = Times.create (); uses = Uses.create (); most }

let touch s number now =
  s.times <- Times.add number now s.times;
  Uses.push number s.uses;
  Uses.push now s.uses

(* Ends the session that was unused for longest. What the queue has of one that was used later counts for nothing. *)
let rec expire s =
  match (Uses.pop s.uses, Uses.pop s.uses) with
  | Some number, Some time when Times.find number s.times = Some time ->
      s.times <- Times.remove number s.times;
      s.names <- Names.remove number s.names
  | Some _, Some _ -> expire s
  | _ -> ()

let enter s number name now =
  s.names <- Names.add number name s.names;
  touch s number now;
  if Names.length s.names > s.most then expire s

let use s number now =
  match Names.find number s.names with
  | Some name ->
      touch s number now;
      Some name
  | None -> None

let close s =
  Names.close s.names;
  Times.close s.times;
  Uses.close s.uses

let () =
  let s = create 500 and found = ref 0 in
  for now = 1 to 100_000 do
    let number = now * now mod 1999 in
    match use s number now with
    | Some name ->
        assert (name = Printf.sprintf "user %d" number);
        incr found
    | None -> enter s number (Printf.sprintf "user %d" number) now
  done;
  Printf.printf "%d sessions, %d uses of known ones\n" (Names.length s.names) !found;
  close s;
  assert (Names.live () + Times.live () + Uses.live () = 0)

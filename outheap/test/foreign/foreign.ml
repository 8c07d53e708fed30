(* SPDX-License-Identifier: MIT *)
(* What operations of the runtime and the library make of a pointer to C's memory, a line for each.
     foreign KIND         all of them, for one kind of memory
     foreign lazies KIND  lazy values that are the pointer itself
     foreign withdrawn    memory that was declared, and is unmapped later *)

external pair : int -> Obj.t = "foreign_pair" [@@noalloc]
external string : int -> Obj.t = "foreign_string" [@@noalloc]
external float : int -> Obj.t = "foreign_float" [@@noalloc]
external format_exception : exn -> string = "foreign_format"
external declare : unit -> Obj.t = "foreign_declare" [@@noalloc]
external withdraw : unit -> unit = "foreign_withdraw" [@@noalloc]

exception Item of Obj.t

let kinds = [ "data", 0; "constants", 1; "malloc", 2; "mmap", 3; "unreadable", 4; "white", 5; "edge", 6;
              "unaligned", 7; "odd-bytes", 8 ]

let say operation f =
  let result = try f () with Invalid_argument _ -> "Invalid_argument" | Not_found -> "Not_found" in
  Printf.printf "%s: %s\n%!" operation result

let truth b = if b then "yes" else "no"
let collect () = Gc.full_major (); Gc.compact ()
let copy_of v = Obj.repr (Sys.opaque_identity v)

let run kind =
  let p = pair kind and s = string kind and f = float kind in
  let hp = copy_of (1, 2) and hs = copy_of (Bytes.to_string (Bytes.of_string "hello")) and hf = copy_of 1.5 in
  let each name test = say name (fun () -> String.concat " " (List.map (fun (a, b) -> truth (test a b)) [ p, hp; s, hs;
                                                                                                       f, hf ])) in
  each "= itself" (fun a _ -> a = a);
  each "compare itself" (fun a _ -> compare a a = 0);
  each "= its copy" (fun a b -> a = b && b = a);
  each "compare its copy" (fun a b -> compare a b = 0 && compare b a = 0);
  each "within a block" (fun a b -> (1, [ a ]) = (1, [ b ]));
  each "less than an int" (fun a _ -> a < Obj.repr 5);
  each "hash" (fun a b -> Hashtbl.hash a = Hashtbl.hash b);
  each "Hashtbl" (fun a b ->
    let t = Hashtbl.create 1 in
    Hashtbl.add t b ();
    Hashtbl.mem t a);
  each "Marshal" (fun a b -> Marshal.to_string a [] = Marshal.to_string b []);
  each "Marshal, no sharing" (fun a b -> Marshal.to_string [ a ] [ Marshal.No_sharing ]
                                         = Marshal.to_string [ b ] [ Marshal.No_sharing ]);
  say "Obj.tag" (fun () -> Printf.sprintf "%d %d %d" (Obj.tag p) (Obj.tag s) (Obj.tag f));
  say "Obj.reachable_words" (fun () -> string_of_int (Obj.reachable_words (Obj.repr (Some [ p; s; f ]))));
  say "Gc.finalise" (fun () ->
    Gc.finalise (fun _ -> print_endline "finalised") p;
    Gc.finalise_last (fun () -> print_endline "finalised") s;
    collect ();
    "set");
  each "Array.make" (fun a b -> Obj.tag (Obj.repr (Array.make 2 a)) = Obj.tag (Obj.repr (Array.make 2 b)));
  each "array literal" (fun a b ->
    let make x = [| x; x |] in
    let make = Sys.opaque_identity make in
    Obj.tag (Obj.repr (make a)) = Obj.tag (Obj.repr (make b)));
  say "exception" (fun () -> format_exception (Item s));
  say "exception, library" (fun () -> Printexc.to_string (Item s));
  let w = Weak.create 3 in
  List.iteri (fun i v -> Weak.set w i (Some v)) [ p; s; f ];
  collect ();
  say "Weak" (fun () -> truth (Weak.check w 0 && Weak.get w 1 == Some s |> not && Option.get (Weak.get w 1) == s));
  say "Weak copies" (fun () ->
    let copy = Option.get (Weak.get_copy w 0) in
    truth (copy != p && copy = hp));
  let e = Ephemeron.K1.make p (ref 5) in
  collect ();
  say "Ephemeron" (fun () -> match Ephemeron.K1.query e p with Some { contents = 5 } -> "alive" | _ -> "dead");
  let l = Sys.opaque_identity (lazy (Sys.opaque_identity p)) in
  ignore (Lazy.force l);
  let other = lazy (Sys.opaque_identity p) in
  ignore (Lazy.force (Sys.opaque_identity other));
  collect ();
  say "lazy" (fun () -> truth (Lazy.force_val l == p && Lazy.force_val other == p));
  say "lazy = its copy" (fun () -> truth (Obj.repr l = hp));
  let fields = Sys.opaque_identity (Array.make 1000 p) in
  collect ();
  Array.fill fields 0 500 s;
  collect ();
  say "array" (fun () -> truth (fields.(0) == s && fields.(999) == p));
  let tokens = ref [ Parser.ITEM s; Parser.ITEM f; Parser.ITEM p; Parser.END ] in
  let next _ =
    let t = List.hd !tokens in
    tokens := List.tl !tokens;
    t
  in
  let before = Parsing.set_trace true in
  let read = Parser.list next (Lexing.from_string "") in
  ignore (Parsing.set_trace before);
  say "parser" (fun () -> truth (List.nth read 0 == s && List.length read = 3))

(* The collector must not look at the memory once it is gone. *)
let withdrawn () =
  let v = declare () in
  let w = Weak.create 1 and old = ref v in
  Weak.set w 0 (Some v);
  let e = Ephemeron.K1.make v (ref 5) in
  let l = Sys.opaque_identity (lazy (Sys.opaque_identity v)) in
  ignore (Lazy.force l);
  if Sys.ocaml_version >= "5" then begin (* OCaml 4 refuses what is not in the heap *)
    Gc.finalise (fun _ -> print_endline "finalised") v;
    Gc.finalise_last (fun () -> print_endline "finalised") v
  end;
  collect ();
  let young = ref v in
  withdraw ();
  for _ = 1 to 3 do
    Gc.minor ();
    collect ();
    ignore (Sys.opaque_identity (List.init 10_000 string_of_int))
  done;
  say "withdrawn" (fun () -> truth (!old == v && !young == v && Lazy.force_val l == v && Weak.check w 0
                                    && Ephemeron.K1.query e v <> None))

let () =
  match Sys.argv with
  | [| _; "withdrawn" |] -> withdrawn ()
  | [| _; "results"; distance |] -> Results.run (int_of_string distance)
  | [| _; "lazies"; kind |] -> Lazies.run (pair (List.assoc kind kinds))
  | [| _; kind |] -> run (List.assoc kind kinds)
  | _ -> prerr_endline "which kind of memory?"; exit 2

(* SPDX-License-Identifier: MIT *)
(* Errors of Rust that are exceptions of OCaml, exceptions of OCaml in Rust, backtraces. See ../src/errors.rs. *)

open Check
open Exports

(* Other exceptions of the same names. *)
module Others = struct
  exception Parse_error of string * int
  exception Full
end

let raised () =
  test "typed" (fun () -> parse_line 5 = 5);
  raises "its own constructor" (( = ) (Parse_error ("empty", 3))) (fun () -> parse_line 0);
  let each n expected =
    raises (Printf.sprintf "exception %d" n) (( = ) expected) (fun () -> fail_with n)
  in
  each 0 (Parse_error ("boxed", 1));
  each 1 (Missing { path = "/tmp"; type_ = 0.5 });
  each 2 Full;
  each 3 (One (3, true));
  each 4 (Speed 1.5);
  each 5 (Closed_by (Some "me", Somebody));
  each 6 Host.Closed;
  each 7 (Host.Refused ("no", 2.5));
  each 8 (Host.Pair (1, false));
  each 9 (Host.Located { file = "f"; line = 7 });
  each 10 Sys.Break;
  each 11 Not_found;
  each 12 (Failure "built in");
  raises "an error that is no exception" (invalid "the exception for `line") (fun () -> fail_with 13);
  test "none" (fun () -> fail_with 14 = ());
  for _ = 1 to 1000 do
    each 7 (Host.Refused ("no", 2.5))
  done

exception Inside of int ref

let wrapped () =
  let inside = Inside (ref 1) in
  for depth = 0 to 3 do
    raises "inside another error" (( == ) inside) (fun () -> wrapped (fun () -> raise inside) depth false);
    raises "hidden by another error" (( == ) inside) (fun () -> wrapped (fun () -> raise inside) depth true);
    raises "an error inside" (( = ) (Parse_error ("inside", 4))) (fun () -> wrapped ignore depth false)
  done

let recognised () =
  let is text e = equal text text (fun () -> classify (fun () -> raise e)) in
  is {|ParseError("a", -5)|} (Parse_error ("a", -5));
  is {|Missing { path: "p", type: 2.5 }|} (Missing { path = "p"; type_ = 2.5 });
  is "Full" Full;
  is "One((-1, false))" (One (-1, false));
  is "Speed(-0.5)" (Speed (-0.5));
  is "ClosedBy(None, Somebody)" (Closed_by (None, Somebody));
  is "Rough([0.5, 1.5], 3)" (Rough ([| 0.5; 1.5 |], 3));
  is "Closed" Host.Closed;
  is {|Refused("r", 0.25)|} (Host.Refused ("r", 0.25));
  is "Pair((1, true))" (Host.Pair (1, true));
  is {|Located { file: "f", line: 3 }|} (Host.Located { file = "f"; line = 3 });
  is "Break" Sys.Break;
  (* By identity, not by name. *)
  is {|unknown Exceptions.Others.Parse_error("a", 1)|} (Others.Parse_error ("a", 1));
  is "unknown Exceptions.Others.Full" Others.Full;
  is "unknown Not_found" Not_found;
  equal "nothing" "nothing" (fun () -> classify ignore);
  (* A printer. *)
  is "unknown Rust error: outer: inner" (Ocaml_boxroot.Rust_error { message = "outer"; causes = [ "inner" ] });
  (* An argument that Rust cannot take. *)
  is "an argument: not UTF-8: invalid utf-8 sequence of 1 bytes from index 0" (Parse_error ("\xff", 1));
  test "made by Rust" (fun () ->
      exception_of 0 = Parse_error ("made", 2) && exception_of 1 == Full
      && exception_of 2 = Host.Located { file = "g"; line = 8 })

exception Deep of int

(* Calls that are not tail calls, on lines of their own. *)
let rec raise_deep n =
  if n = 0 then raise (Deep 1)
  else
    1
    + raise_deep (n - 1)

let lines () =
  match Printexc.backtrace_slots (Printexc.get_raw_backtrace ()) with
  | None -> []
  | Some slots ->
    List.filter_map (fun slot -> Option.map (fun l -> l.Printexc.line_number) (Printexc.Slot.location slot))
      (Array.to_list slots)

let rec take n l = match l with x :: l when n > 0 -> x :: take (n - 1) l | _ -> []

let traced () =
  Printexc.record_backtrace true;
  let raise_it () = ignore (raise_deep 2) in
  let direct = match raise_it () with () -> [] | exception Deep 1 -> lines () in
  (* The raise, two calls of raise_deep, the call in raise_it. *)
  let origin = take 4 direct in
  let text, places = backtrace raise_it in
  test "backtrace in Rust" (fun () ->
      List.length origin = 4
      && take 4 (Array.to_list places) = origin
      && match text with Some text -> String.length text > 20 && String.sub text 0 9 = "Raised at" | None -> false);
  (* Raised again by Rust, it goes on from where it was. Bytecode, and OCaml 5 for other processors, forget at any raise
     of C what was before: there the backtrace begins with the call of Rust, in this function. *)
  let goes_on = Sys.backend_type = Sys.Native in
  test "backtrace after Rust" (fun () ->
      let first = __LINE__ + 1 in
      match pass_through raise_it with
      | () -> false
      | exception Deep 1 when goes_on -> take 4 (lines ()) = origin && List.length (lines ()) > 4
      | exception Deep 1 -> take 1 (lines ()) = [ first ]);
  test "through two frames" (fun () ->
      let first = __LINE__ + 1 in
      match pass_through (fun () -> pass_through raise_it; ignore (Sys.opaque_identity 1)) with
      | () -> false
      | exception Deep 1 when goes_on -> take 4 (lines ()) = origin && List.length (lines ()) > 5
      | exception Deep 1 -> take 1 (lines ()) = [ first ]);
  (* Rust itself has all of it everywhere, also of what went through Rust before. *)
  test "backtrace in Rust of what Rust raised" (fun () ->
      let first = __LINE__ + 1 in
      let _, places = backtrace (fun () -> pass_through raise_it; ignore (Sys.opaque_identity 1)) in
      let places = Array.to_list places in
      if goes_on then take 4 places = origin else take 1 places = [ first ]);
  test "the same exception, with its backtrace" (fun () ->
      let e = Deep 5 in
      match pass_through (fun () -> raise e) with () -> false | exception e' -> e == e' && lines () <> []);
  Printexc.record_backtrace false;
  test "not recorded" (fun () -> backtrace raise_it = (None, [||]))

external inner : (int[@untagged]) -> string -> string
  = "ocaml_export_exports__inner_bytecode" "ocaml_export_exports__inner"
external innermost : (int[@untagged]) -> int
  = "ocaml_export_exports__innermost_bytecode" "ocaml_export_exports__innermost"
external blocking : unit -> int = "test_blocking"

let others () =
  List.iter
    (fun (name, f) -> equal name (name ^ " x 1") (fun () -> f "x" 1))
    [ ("words", words); ("lock", lock); ("rt", rt); ("places", places); ("result", result); ("x0", x0); ("a0", a0);
      ("w0", w0); ("body", body); ("native", native); ("describe", describe); ("held", held) ];
  equal "in a function's body" "4 y" (fun () -> inner 3 "y");
  test "in a body below it" (fun () -> innermost 1 = 2);
  (* C code opened a blocking section in a thread where no function of Rust is below: OCaml knows the thread, nobody
     here knows how to close the section. *)
  test "attach in a blocking section of C" (fun () -> blocking () = 2);
  test "on another thread" (fun () ->
      let answer = ref 0 in
      Thread.join (Thread.create (fun () -> answer := blocking ()) ());
      !answer = 2);
  (* A function without access records nothing, and OCaml 4 cannot tell. *)
  let four = Sys.ocaml_version.[0] = '4' in
  test "attach in a function that OCaml called" (fun () -> let n = attached () in n = 1 || (four && n = 2))

let run () =
  raised ();
  recognised ();
  wrapped ();
  others ()

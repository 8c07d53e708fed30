(* SPDX-License-Identifier: MIT *)
(* Calls everything that the Rust library exports; see ../src. The last line is `exports: ok`. *)

open Check
open Exports

let panic ?file message e =
  match e with
  | Ocaml_boxroot.Rust_panic p ->
    p.message = message && (match file with None -> true | Some file -> Filename.basename p.file = file && p.line > 0)
  | _ -> false

let error message e =
  match e with Ocaml_boxroot.Rust_error e -> e.message = message | _ -> false

let big = 1 lsl 61
let fresh_string s = String.init (String.length s) (String.get s)

let arguments () =
  test "add" (fun () -> add 40 2 = 42);
  test "half" (fun () -> half 5. = 2.5);
  test "negate" (fun () -> negate false && not (negate true));
  test "nothing" (fun () -> nothing () = ());
  test "mixed" (fun () -> mixed (-3) 0.5 true "four" = 2.5);
  raises "i32" (invalid "argument 1: the number does not fit in i32") (fun () -> mixed big 0.5 true "four");
  test "small" (fun () -> small 255 = 256);
  raises "u8" (invalid "argument 1") (fun () -> small 256);
  raises "u8, negative" (invalid "argument 1") (fun () -> small (-1));
  test "large" (fun () -> large 21 = 42);
  raises "63 bits" (invalid "result: the number does not fit in int") (fun () -> large big);
  test "far" (fun () -> far max_int = max_int);
  raises "u64" (invalid "argument 1") (fun () -> far (-1));
  test "length" (fun () -> length "caf\xc3\xa9" = 4);
  raises "UTF-8" (invalid "argument 1: not UTF-8") (fun () -> length "\xff");
  test "greet" (fun () -> greet "you" 2 = "hello youhello you");
  test "lists" (fun () -> double_all [ 1; 2; 3 ] = [ 2; 4; 6 ]);
  test "a long list" (fun () -> double_all (List.init 1_000_000 Fun.id) = List.init 1_000_000 (fun n -> 2 * n));
  test "a flat record of types that are float" (fun () ->
      volume { width = Metres 2.; length = Metres 3.; height = 4. } = 24.
      && (cube 2.).height = 2. && Obj.tag (Obj.repr (cube 2.)) = Obj.double_array_tag);
  test "find" (fun () -> find [| "a"; "b" |] "b" = Some 1 && find [| "a" |] "b" = None);
  test "first" (fun () -> first ("x", 1) = "x");
  test "same" (fun () -> let x = ref 1 in same x (ref 2) == x);
  test "kept" (fun () ->
      keep (fresh_string "kept");
      Gc.compact ();
      kept () = Some "kept");
  test "place" (fun () -> let x = ref 1 in place x == x);
  test "through a root" (fun () -> let x = [ fresh_string "x" ] in through_root x == x && !(through_root (ref 3)) = 3);
  test "apply" (fun () -> apply (fun s -> s ^ "!") "a" = "a!" && apply succ 1 = 2);
  raises "apply raises" (( = ) Not_found) (fun () -> apply (fun () -> raise Not_found) ());
  test "survivor" (fun () ->
      survivor (fresh_string "a") 7 (fresh_string "b") (fresh_string "c") = "a 7 b c made");
  test "results" (fun () ->
      fresh "s" = "s" && frozen "s" = "s" && rooted "s" = "s" && maybe "s" = Some "s" && maybe "" = None);
  test "options" (fun () ->
      maybe_value [ 1; 2 ] = Some 1 && maybe_value ([] : int list) = None
      && maybe_value [ fresh_string "young" ] = Some "young"
      && maybe_place "x" true = Some "x" && maybe_place 1 false = None);
  test "options keep what they hold" (fun () ->
      let ok = ref true in
      for i = 1 to 100_000 do
        match maybe_value [ string_of_int i ] with Some s -> ok := !ok && s = string_of_int i | None -> ok := false
      done;
      !ok);
  test "nine" (fun () -> nine 1 0.5 2 0.5 3 0.5 4 0.5 true = 4321. +. 7.5 && nine 0 1. 0 0. 0 0. 0 0. false = -1.);
  test "twelve" (fun () ->
      twelve (fresh_string "a") "b" 0.5 4 (fresh_string "e") true (fresh_string "g") (Some 8) "i" 255 (1, 2.5) ()
      = "a b 0.5 4 e true g Some(8) i 255 (1, 2.5) ()");
  raises "the tenth argument" (invalid "argument 10") (fun () -> twelve "" "" 0. 0 "" true "" None "" 256 (0, 0.) ());
  test "swap" (fun () -> swap (1, "x") = ("x", 1));
  test "keyword" (fun () -> end_ 3 = 3);
  test "values of Rust" (fun () ->
      let c = counter () in
      next c = 0 && next c = 1 && next_later c (fresh_string "later") = "later 2");
  test "queues" (fun () ->
      let strings : string queue = queue_create () and numbers = queue_create () in
      queue_push strings (fresh_string "a");
      queue_push strings (fresh_string "b");
      queue_push numbers 3;
      Gc.compact ();
      queue_pop strings = Some "a" && queue_pop strings = Some "b" && queue_pop strings = None
      && queue_pop numbers = Some 3);
  raises "another value of Rust" (invalid "argument 1") (fun () -> next (Obj.magic (queue_create ())));
  test "methods" (fun () -> next_of 1 = 2 && twice "ab" = "abab");
  test "borrowed" (fun () -> borrowed "abc" "ab" && not (borrowed "abc" "b"));
  test "released" (fun () -> released (fresh_string "here") = "here");
  test "noalloc with read access" (fun () -> length_noalloc "four" = 4);
  test "deferred closures run before the arguments are read" (fun () ->
      let ok = ref true in
      let before = fst (later_count "") in
      for _ = 1 to 20 do
        later ();
        ok := !ok && snd (later_count (fresh_string "later")) = "later"
      done;
      (* Another domain may be at one of them. *)
      !ok && fst (later_count "") >= before + 19);
  test "sizes" (fun () -> huge 1000 = 8000)

let errors () =
  test "parse" (fun () -> parse "80" = 80);
  raises "Rust_error" (error "invalid digit found in string") (fun () -> parse "x");
  raises "causes"
    (function Ocaml_boxroot.Rust_error e -> e.causes = [ "invalid digit found in string" ] | _ -> false)
    error_chain;
  test "printer" (fun () ->
      match error_chain () with
      | _ -> false
      | exception e -> Printexc.to_string e = "Rust error: outer: invalid digit found in string");
  let exception Mine of int ref in
  let mine = Mine (ref 1) in
  raises "the same exception" (fun e -> e == mine) (fun () -> reraise (fun () -> raise mine));
  raises "the same exception from a box" (fun e -> e == mine) (fun () -> forward (fun () -> raise mine));
  test "index" (fun () -> index 2 = 3);
  for i = 1 to 1000 do
    raises (Printf.sprintf "panic %d" i)
      (panic ~file:"kinds.rs" "index out of bounds: the len is 3 but the index is 3")
      (fun () -> index 3)
  done;
  raises "plain" (panic ~file:"kinds.rs" "plain") (fun () -> explode 0);
  raises "formatted" (panic ~file:"kinds.rs" "formatted 1") (fun () -> explode 1);
  raises "any" (panic ~file:"kinds.rs" "Box<dyn Any>") (fun () -> explode 2);
  raises "resumed" (panic "resumed") (fun () -> explode 3);
  raises "a payload that panics" (panic ~file:"kinds.rs" "Box<dyn Any>") (fun () -> explode 4);
  raises "a message that panics" (panic ~file:"kinds.rs" "a message that panics") (fun () -> explode 5);
  raises "in a frame" (panic ~file:"kinds.rs" "in a frame") (fun () -> explode 6);
  raises "without the lock" (panic ~file:"kinds.rs" "without the lock") (fun () -> explode 7);
  test "caught" (fun () -> explode 8 = "survived");
  raises "string" (error "no such way") (fun () -> explode 9);
  test "panic printer" (fun () ->
      match explode 0 with
      | _ -> false
      | exception e ->
        let text = Printexc.to_string e in
        let first = List.hd (String.split_on_char '\n' text) in
        String.sub text 0 13 = "Rust panic at" && Filename.check_suffix first ": plain");
  test "backtrace" (fun () ->
      match explode 0 with
      | exception Ocaml_boxroot.Rust_panic p -> (p.backtrace <> "") = (Sys.getenv_opt "RUST_BACKTRACE" = Some "1")
      | _ -> false)

(* Rust frames at depths [n], …, 1, each called by OCaml. [how depth] is what the frame does, [ocaml depth] what OCaml
   does below it: 0 goes on, 1 raises, 2 catches what comes from below. The model says what comes out. *)
type outcome = Number of int | Raised | Panicked

let rec down how ocaml depth =
  match ocaml depth with
  | 1 -> raise Exit
  | 2 -> ( try go how ocaml depth with _ -> -100)
  | _ -> go how ocaml depth

and go how ocaml depth = if depth = 0 then 0 else frame (down how ocaml) depth (how depth)

let rec model how ocaml depth =
  match ocaml depth with
  | 1 -> Raised
  | 2 -> ( match model_go how ocaml depth with Number n -> Number n | _ -> Number (-100))
  | _ -> model_go how ocaml depth

and model_go how ocaml depth =
  if depth = 0 then Number 0
  else
    match how depth with
    | 1 -> Panicked
    | 3 -> Raised
    | how_here -> (
      match (how_here, model how ocaml (depth - 1)) with
      | 2, _ -> Panicked
      | 4, _ -> Raised
      | 5, (Raised | Panicked) -> Panicked
      | 6, (Raised | Panicked) -> Number (-1)
      | _, Number n -> Number (n + 1)
      | _, other -> other)

let nested () =
  let entered = ref 0 in
  let count how ocaml depth =
    let rec frames depth =
      if ocaml depth = 1 || depth = 0 then 0 else 2 + (if how depth = 1 || how depth = 3 then 0 else frames (depth - 1))
    in
    frames depth
  in
  let try_one how ocaml =
    let expected = model how ocaml 5 in
    entered := !entered + count how ocaml 5;
    let got =
      match down how ocaml 5 with
      | n -> Number n
      | exception (Exit | Failure _) -> Raised
      | exception Ocaml_boxroot.Rust_panic _ -> Panicked
    in
    if got <> expected then (incr failed; Printf.printf "FAILED nested\n%!");
    let made, left = dropped () in
    if made <> !entered || left <> !entered then (
      incr failed;
      Printf.printf "FAILED drops: %d expected, %d made, %d dropped\n%!" !entered made left;
      entered := made)
  in
  (* One thing that goes wrong, at every position; what handles it, at every position above. *)
  for how = 0 to 6 do
    for at = 1 to 5 do
      for catch = 0 to 5 do
        for kind = 0 to 2 do
          let how depth = if depth = at then how else if depth = catch && kind > 0 then 4 + kind else 0 in
          try_one how (fun depth -> if depth = catch && kind = 0 then 2 else 0);
          (* and OCaml raises below *)
          for raised = 0 to 4 do
            try_one how (fun depth -> if depth = raised then 1 else if depth = catch && kind = 0 then 2 else 0)
          done
        done
      done
    done
  done;
  (* Everything at random. *)
  for seed = 1 to 3000 do
    let state = Random.State.make [| seed |] in
    let hows = Array.init 6 (fun _ -> Random.State.int state 7) in
    let ocamls = Array.init 6 (fun _ -> Random.State.int state 4) in
    try_one (fun depth -> hows.(depth)) (fun depth -> ocamls.(depth))
  done

let imports () =
  test "import" (fun () -> import_add 40 2 = 42 && import_count () = 42);
  test "import that raises" (fun () -> import_fail "oh" = "Failure(\"oh\")");
  test "polymorphic import" (fun () -> import_identity 3 = 3 && import_identity "s" = "s");
  test "two variables" (fun () -> import_pair 1 "x" = (1, "x"));
  test "walk" (fun () -> walk 3 0 = 3 && walk 3 2 = 3);
  raises "walk raises" (( = ) Not_found) (fun () -> walk 0 1);
  raises "walk panics" (panic "before, at 4") (fun () -> walk 4 3)

let threads () =
  test "a thread of Rust" (fun () -> spawn (fun n -> n + 1) = 21);
  raises "an exception on a thread of Rust" (error "Not_found") (fun () -> spawn (fun _ -> raise Not_found));
  test "threads" (fun () ->
      let work () =
        for _ = 1 to 50 do
          assert (survivor (fresh_string "a") 7 (fresh_string "b") (fresh_string "c") = "a 7 b c made");
          (try ignore (index 3) with Ocaml_boxroot.Rust_panic _ -> ());
          assert (apply (fun s -> Thread.yield (); s ^ "!") (fresh_string "a") = "a!")
        done
      in
      List.iter Thread.join (List.init 3 (fun _ -> Thread.create work ()));
      true)

let () =
  if Array.length Sys.argv > 1 && Sys.argv.(1) = "noalloc" then ignore (explode_noalloc 3);
  arguments ();
  errors ();
  nested ();
  imports ();
  threads ();
  Exceptions.run ();
  Domains.run (fun () -> arguments (); errors (); Exceptions.run ());
  Exceptions.traced ();
  finish ()

(* SPDX-License-Identifier: MIT *)
(* Tests that run themselves once more, or in a child, to see how that ends. *)

(* Runs this program with the argument `name`, and `environment` ("NAME=VALUE") added; how it ended, and what it
   said. *)
let run_self ?(environment = []) name =
  let input, output = Unix.pipe ~cloexec:true () in
  let pid =
    Unix.create_process_env Sys.executable_name
      [| Sys.executable_name; name |]
      (Array.append (Array.of_list environment) (Unix.environment ()))
      Unix.stdin output output
  in
  Unix.close output;
  let buffer = Buffer.create 1000 and chunk = Bytes.create 4096 in
  let rec read () =
    let n = Unix.read input chunk 0 4096 in
    if n > 0 then begin
      Buffer.add_subbytes buffer chunk 0 n;
      read ()
    end
  in
  read ();
  Unix.close input;
  let _, status = Unix.waitpid [] pid in
  (status, Buffer.contents buffer)

let contains s sub =
  let n = String.length sub in
  let rec go i = i + n <= String.length s && (String.sub s i n = sub || go (i + 1)) in
  go 0

(* Runs this program with the argument `name`, which must abort with a message of the library that contains each of
   `parts`. *)
let expect_fault name parts =
  match run_self name with
  | Unix.WSIGNALED s, said when s = Sys.sigabrt ->
      List.iter (fun part ->
        if not (contains said part) then Root.fail "expected a message with \"%s\", got: %s" part said)
          ("boxroot: " :: parts);
      print_string said
  | _, said -> Root.fail "the fault was not detected: %s" said

(* Whether tests that are run by others, whose names begin with "do-", are wanted. *)
let is_rerun = Array.length Sys.argv = 2 && String.length Sys.argv.(1) > 3 && String.sub Sys.argv.(1) 0 3 = "do-"

(* Misuse, with what the checked build says: a test each. *)
let misuse_tests misuses =
  List.concat_map (fun (name, act, parts) ->
    let expected () =
      if not (Root.is_checked ()) then Root.skip "for the checked build";
      expect_fault ("do-" ^ name) parts
    in
    ("misuse-" ^ name, expected)
    :: (if is_rerun then [ ("do-" ^ name, fun () -> ignore (act (Root.text 1))) ] else []))
    misuses

(* f's result, a number other than 1, in a child. *)
let code_of_child f =
  flush_all ();
  match Unix.fork () with
  | 0 -> (
      match f () with
      | code -> Root.exit_now code
      | exception e -> prerr_endline (Printexc.to_string e); Root.exit_now 1)
  | pid -> (
      match snd (Unix.waitpid [] pid) with
      | Unix.WEXITED code when code <> 1 -> code
      | _ -> Root.fail "the child failed")

let in_child f = ignore (code_of_child (fun () -> f (); 0))

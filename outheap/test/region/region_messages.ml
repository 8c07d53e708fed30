(* SPDX-License-Identifier: MIT *)
(* What errors say: which file or field, what was wanted, what was found. *)
open Outheap_region
open Region_checks

(* outheap_region_error_text of an error of that kind whose members are those of [made] *)
external text_of_kind : int -> string * int = "region_c_text"

exception Own of int

let says what wanted = function
  | Ok _ -> check (what ^ ": Ok") false
  | Error e ->
      let text = error_to_string e in
      check (Printf.sprintf "%s: %S instead of %S" what text wanted) (text = wanted)

let begins what wanted r =
  let text = show r in
  let good = String.length text > String.length wanted && String.sub text 0 (String.length wanted) = wanted in
  check (Printf.sprintf "%s: %S does not begin with %S" what text wanted) good

(* In the order of outheap_region_error_kind. *)
let made =
  [
    Unsupported "F: T"; No_memory; Too_many; Refused { kind = "custom"; identifier = "I"; path = ".2.0[17]" };
    In_use { pointers = 1; from = [ Roots; Regions ] }; Ended; System { file = "F"; call = "T"; message = "" };
    Damaged { file = "F"; what = "T" };
    Other_program { file = "F"; what = "T"; identifier = "I"; wanted = "W" };
    Other_schema { file = "F"; name = "I"; version = 1; wanted_name = "W"; wanted_version = -2 };
    Missing { file = "F"; digest = "I" };
  ]

let same_in_c () =
  List.iteri
    (fun kind e ->
      let e = match e with
        | System s -> System { s with message = Unix.error_message EPERM }
        | e -> e
      in
      let text, length = text_of_kind kind in
      check (Printf.sprintf "C: %S, OCaml: %S" text (error_to_string e)) (text = error_to_string e);
      check "its length, and a short buffer" (length = String.length text))
    made

let fields () =
  let refuses what wanted r = says what ("cannot be copied: " ^ wanted) r in
  let free = Sys.opaque_identity (List.length made) in
  refuses "a function" "at .1, a function; ~closures:true copies functions, but not into images"
    (copy (1, fun x -> x + free));
  refuses "itself" "the value itself, a function; ~closures:true copies functions, but not into images"
    (copy (fun x -> x + free));
  refuses "an object" "at .0, an object; ~closures:true copies objects, but not into images"
    (copy [ object method m = free end ]);
  refuses "a lazy value" "at .1.0, a lazy value that is not forced; force it before" (copy (1, [ lazy (free + 1) ]));
  refuses "a channel" "at .0, a custom block \"_chan\", of a type that was not registered" (copy [ stdout ]);
  refuses "an abstract block" "at .0, an abstract block of C code" (copy [ abstract () ]);
  refuses "an exception"
    "at .0.0, the constructor of an exception or of an extensible type \"Region_messages.Own\"" (copy [ Own free ])

let files () =
  let path = Filename.temp_file "region" ".image" in
  let written : int list schema = schema ~name:"a" ~version:2 in
  let wanted : int list schema = schema ~name:"b" ~version:(-1) in
  ok "save" (save written ~path [ 1 ]);
  says "another schema" (path ^ ": holds schema \"a\" version 2, wanted \"b\" version -1") (map wanted ~path ());
  (match map wanted ~path () with
  | Error (Other_schema { file; name = "a"; version = 2; wanted_name = "b"; wanted_version = -1 }) ->
      check "file" (file = path)
  | r -> check (show r) false);
  says "no file" "/nowhere/x: open: No such file or directory" (map written ~path:"/nowhere/x" ());
  says "an empty path" "the path is empty" (map written ~path:"" ());
  says "an empty path, to save" "the path is empty" (save written ~path:"" [ 1 ]);
  let ended = ": damaged: not an image: the file ends before the offset, or less than 4096 bytes after it" in
  List.iter
    (fun offset -> says "a part behind the end" (path ^ ended) (map_part written ~path ~offset ()))
    [ 1 lsl 16; 1 lsl 40; max_int land lnot 0xffff ];
  says "a path with a zero" "/tmp/x: open: No such file or directory" (map written ~path:"/tmp/x\000y" ());
  says "no folder" "/nowhere/x: open: No such file or directory" (save written ~path:"/nowhere/x" [ 1 ]);
  let long = String.make 300 'x' in
  begins "a long path" (String.make 255 'x' ^ ": open: ") (map written ~path:long ());
  says "a folder" "/tmp: the path is that of a folder, device, pipe or socket" (save written ~path:"/tmp" [ 1 ]);
  let text = In_channel.with_open_bin path In_channel.input_all in
  let put text = Out_channel.with_open_bin path (fun c -> Out_channel.output_string c text) in
  put (String.sub text 0 (String.length text - 1));
  says "truncated" (path ^ ": damaged: its length: truncated, or something was added") (map written ~path ());
  put (String.make 5000 'x');
  says "no image" (path ^ ": damaged: not an image: it begins with something else") (map written ~path ());
  put (Region_images.of_another_ocaml text);
  let here = Scanf.sscanf Sys.ocaml_version "%d.%d" (Printf.sprintf "%d.%d") in
  says "another version" (path ^ ": made by another program: version of OCaml \"5.2\", wanted " ^ here)
    (map written ~path ());
  Sys.remove path

(* An image that needs another, in a process where that is not mapped. *)
let missing () =
  let base = Filename.temp_file "region" ".base" and path = Filename.temp_file "region" ".image" in
  let s : int list schema = schema ~name:"missing" ~version:1 in
  let both =
    in_child (fun () ->
        ok "save" (save s ~path:base [ 1; 2 ]);
        let b = ok "map" (map s ~path:base ()) in
        ok "save" (save s ~needs:[ region b ] ~path (0 :: get b));
        !failures)
  in
  check "made" (both = Unix.WEXITED 0);
  begins "missing" (path ^ ": needs an image that is not mapped: the one with digest ") (map s ~path ());
  Sys.remove base;
  Sys.remove path

let uses () =
  let r = ok "copy" (copy [ 1; 2; 3 ]) in
  let v = get r in
  (if can_delete then begins "in use" "in use: " (delete (region r))
   else says "delete" "this runtime cannot tell whether a region is in use: it lives until exit" (delete (region r)));
  ignore (opaque v);
  if can_delete then (
    ok "revoke" (revoke (region r));
    says "again" "the region was deleted or revoked before" (revoke (region r)))

let names () =
  let is_good name = match schema ~name ~version:1 with _ -> true | exception Invalid_argument _ -> false in
  List.iter (fun name -> check "a good name" (is_good name)) [ "a"; "a b\n"; "\xff"; String.make 127 'n' ];
  List.iter (fun name -> check "a bad name" (not (is_good name))) [ ""; "\000"; "a\000"; String.make 128 'n' ]

let messages () =
  same_in_c ();
  fields ();
  files ();
  missing ();
  names ();
  uses ()

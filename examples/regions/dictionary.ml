(* SPDX-License-Identifier: MIT *)
(* A dictionary that several processes share: an image is mapped by each worker, which takes no time and no memory of
   its own, and a new edition replaces it while they work.

   ocamlfind ocamlopt -package unix,outheap.region -linkpkg dictionary.ml -o dictionary
   With the runtime variant (-I DIR -runtime-variant _outheap), the memory of the old edition is returned as soon as no
   pointer to it is left; with the stock runtime, at exit. *)
module R = Outheap_region

type entry = { word : string; meanings : string list }
type dictionary = (string, entry) Hashtbl.t

let schema : dictionary R.schema = R.schema ~name:"dictionary" ~version:1
let ok = function Ok x -> x | Error e -> failwith (R.error_to_string e)
let image edition = Printf.sprintf "dictionary-%d.image" edition

(* An edition: made in the heap of a process that then ends. *)
let publish edition words =
  match Unix.fork () with
  | 0 ->
      let d = Hashtbl.create words in
      for i = 1 to words do
        let word = Printf.sprintf "word%d" i in
        let meanings = [ Printf.sprintf "meaning %d of edition %d" i edition; "another" ] in
        Hashtbl.replace d word { word; meanings }
      done;
      ok (R.save ~sharing:`Max schema ~path:(image edition) d);
      Unix._exit 0
  | pid -> assert (snd (Unix.waitpid [] pid) = Unix.WEXITED 0)

let opened edition = R.get (ok (R.map schema ~path:(image edition) ()))

(* A worker answers requests: a word, or the number of an edition to change to. *)
let work input output =
  let dictionary = ref (opened 1) in
  let answer request =
    match int_of_string_opt request with
    | Some edition ->
        dictionary := opened edition;
        Gc.full_major ();
        let s = R.stats () in
        Printf.sprintf "edition %d%s" edition
          (if R.can_delete && s.live > 1 then ", the old one is still there" else "")
    | None -> (
        match Hashtbl.find_opt !dictionary request with
        | Some entry -> List.hd entry.meanings
        | None -> "unknown")
  in
  try
    while true do
      output_string output (answer (input_line input) ^ "\n");
      flush output
    done
  with End_of_file -> ()

let worker () =
  let from_us, to_them = Unix.pipe ~cloexec:true () and from_them, to_us = Unix.pipe ~cloexec:true () in
  match Unix.fork () with
  | 0 ->
      Unix.close to_them;
      Unix.close from_them;
      work (Unix.in_channel_of_descr from_us) (Unix.out_channel_of_descr to_us);
      Unix._exit 0
  | _ ->
      Unix.close from_us;
      Unix.close to_us;
      (Unix.in_channel_of_descr from_them, Unix.out_channel_of_descr to_them)

let ask (answers, questions) question =
  output_string questions (question ^ "\n");
  flush questions;
  input_line answers

let () =
  publish 1 20_000;
  let workers = List.init 4 (fun _ -> worker ()) in
  List.iteri (fun i w -> Printf.printf "worker %d: %s\n" i (ask w "word17")) workers;
  publish 2 30_000;
  List.iter (fun w -> print_endline (ask w "2")) workers;
  print_endline (ask (List.hd workers) "word25000");
  List.iter Sys.remove [ image 1; image 2 ];
  (* A file that is removed stays as long as somebody maps it. *)
  print_endline (ask (List.nth workers 3) "word30000");
  print_endline (ask (List.nth workers 2) "word0")

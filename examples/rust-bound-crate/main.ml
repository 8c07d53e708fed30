(* SPDX-License-Identifier: MIT *)
open Bigarray

let data_of_string text = Array1.init int8_unsigned c_layout (String.length text) (fun i -> Char.code text.[i])
let string_of_data data = String.init (Array1.dim data) (fun i -> Char.chr data.{i})

let () =
  let text = String.concat "\n" (List.init 50_000 (fun i -> Printf.sprintf "line %d" (i mod 1000))) in
  let data = data_of_string text in
  let there_and_back level =
    let { Deflate.data = compressed; input; output; ratio } = Deflate.compress level data in
    assert (input = String.length text && output = Array1.dim compressed && ratio < 0.5);
    Gc.compact ();
    assert (string_of_data (Deflate.decompress compressed) = text);
    output
  in
  let fast = there_and_back Fast and best = there_and_back Best in
  Printf.printf "%d bytes: %b\n" (String.length text) (best <= fast);
  (* Threads that work at the same time. *)
  let results = Array.make 4 0 in
  let work i () = results.(i) <- there_and_back (Level (2 * i + 1)) in
  List.iter Thread.join (List.init 4 (fun i -> Thread.create (work i) ()));
  assert (Array.for_all (fun n -> n > 0) results);
  List.iter
    (fun f ->
      match f () with
      | _ -> assert false
      | exception Deflate.ZlibError message -> Printf.printf "error: %s\n" message)
    [ (fun () -> ignore (Deflate.compress (Level 10) data)); (fun () -> ignore (Deflate.decompress data)) ]

(* SPDX-License-Identifier: MIT *)
(* Tables that are saved to a file, and mapped. *)
open Linear_checks
module R = Outheap_region

let unwrap what = function Ok v -> v | Error e -> failwith (what ^ ": " ^ R.error_to_string e)

let in_folder f =
  let folder = Filename.temp_file "linear" "" in
  Sys.remove folder;
  Unix.mkdir folder 0o700;
  Fun.protect
    ~finally:(fun () ->
      Array.iter (fun name -> Sys.remove (Filename.concat folder name)) (Sys.readdir folder);
      Unix.rmdir folder)
    (fun () -> f (fun name -> Filename.concat folder name))

module Model (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  module T =
    L.Table.Make
      (struct
        include K

        let equal a b = K.number a = K.number b
        let hash a = K.number a land 1023 (* some are equal *)
      end)
      (V)
      ()

  module I = T.Image

  let schema : T.image R.schema = R.schema ~name:"table of a test" ~version:3
  let contents fold t = List.sort compare (fold (fun k v l -> (K.number k, V.number v) :: l) t [])

  (* What is mapped is what there was, whatever happens to the table after that. *)
  let same ?most size file =
    let t = T.create ?most () in
    for n = 1 to size do T.replace (K.make n) (V.make (n * 3)) t done;
    let wanted = contents T.fold t in
    unwrap "save" (T.save schema ~path:file t);
    check "the table is as before" (contents T.fold t = wanted);
    whole "table" (T.check_table t);
    T.close t;
    List.iter
      (fun verify ->
        let i = unwrap "map" (I.map schema ~path:file ~verify ()) in
        Gc.compact ();
        check "length" (I.length i = List.length wanted);
        check "contents" (contents I.fold i = wanted);
        for n = 0 to size + 1 do
          let there = List.mem_assoc n wanted in
          check "find" (Option.map V.number (I.find (K.make n) i) = if there then Some (n * 3) else None);
          check "mem" (I.mem (K.make n) i = there)
        done)
      [ `Full; `Header ];
    check "no cell is left" (T.live () = 0)

  let run () =
    in_folder (fun file ->
        List.iter (fun size -> same size (file (string_of_int size))) [ 0; 1; 7; 8; 9; 300 ];
        same ~most:100 300 (file "bound"))
end

module Numbers = Model (Linear_chains.Numbers) (Linear_chains.Numbers) ()
module Copied = Model (Linear_chains.Texts) (Linear_chains.Copied) ()
module Texts = Model (Linear_chains.Copied) (Linear_chains.Texts) ()

module Words (H : sig val hash : string -> int end) () =
  L.Table.Make
    (struct
      include L.Text

      let equal = String.equal
      let hash = H.hash
    end)
    (L.Text)
    ()

module W = Words (struct let hash = Hashtbl.hash end) ()
module Other = Words (struct let hash s = Hashtbl.hash s + 1 end) ()

let text n = String.init (n * 7 mod 1000) (fun i -> Char.chr ((n + i) land 255))

let refuses what = function
  | Error (R.Damaged _ | R.Other_schema _ | R.Other_program _ | R.System _) -> ()
  | Error e -> check (what ^ ": " ^ R.error_to_string e) false
  | Ok _ -> check (what ^ " is refused") false

let contents_of fold t = List.sort compare (fold (fun k v l -> (k, v) :: l) t [])

(* Files that are not what they should be. *)
let damaged () =
  in_folder (fun file ->
      let schema () = R.schema ~name:"words" ~version:1 and path = file "words" in
      let t = W.create () in
      for n = 1 to 200 do W.replace (string_of_int n) (text n) t done;
      unwrap "save" (W.save (schema ()) ~path t);
      let image = In_channel.with_open_bin path In_channel.input_all in
      let size = String.length image in
      let write name s = Out_channel.with_open_bin (file name) (fun c -> Out_channel.output_string c s); file name in
      let map ?(verify = `Full) path = W.Image.map (schema ()) ~path ~verify () in
      refuses "no file" (map (file "nothing"));
      refuses "an empty file" (map (write "empty" ""));
      refuses "a text" (map (write "text" (String.make 10_000 't')));
      refuses "half a file" (map ~verify:`Header (write "half" (String.sub image 0 (size / 2))));
      refuses "a longer file" (map ~verify:`Header (write "longer" (image ^ String.make 4096 '\000')));
      refuses "another version" (W.Image.map (R.schema ~name:"words" ~version:2) ~path ());
      refuses "another name" (W.Image.map (R.schema ~name:"birds" ~version:1) ~path ());
      let another what v =
        let path = file "another" in
        unwrap "save" (R.save (R.schema ~name:"words" ~version:1) ~path (Obj.repr v));
        refuses (what ^ " of that schema") (map path);
        Sys.remove path
      in
      another "a number" 5;
      another "a text" "text";
      another "a float" 1.5;
      another "a list" [ 1; 2; 3 ];
      another "three numbers" (1, 8, 3);
      another "three floats" [| 8.; 8.; 8. |];
      another "an empty array, and numbers" ([||], 8, 0);
      another "no numbers" (Array.make 8 0, "8", "0");
      another "floats in the place of chains" (Array.make 8 1., 8, 1);
      another "a text in the place of chains" (String.make 71 'c', 8, 1);
      another "other chains" (Array.make 8 (Some 3), 8, 1);
      another "chains of texts" (Array.make 8 (String.make 31 'c'), 8, 1);
      another "no hash" (Array.make 8 ("key", "value", "hash", 0), 8, 1);
      refuses "other hashes" (Other.Image.map (R.schema ~name:"words" ~version:1) ~path ());
      for n = 1 to 40 do
        let at = if n <= 10 then below 4096 else below size in
        let changed = Bytes.of_string image in
        Bytes.set changed at (Char.chr (Char.code image.[at] lxor (1 lsl below 8)));
        refuses (Printf.sprintf "byte %d" at) (map (write ("changed" ^ string_of_int n) (Bytes.to_string changed)))
      done;
      (* The smallest one: each byte in turn, and each length. What is accepted is as it was written. *)
      let t' = W.create () in
      List.iter (fun n -> W.replace (string_of_int n) (text n) t') [ 1; 2; 3 ];
      let path = file "small" in
      unwrap "save" (W.save (schema ()) ~path t');
      let wanted = contents_of W.fold t' in
      W.close t';
      let image = In_channel.with_open_bin path In_channel.input_all in
      let size = String.length image in
      let accepted = ref 0 in
      let tried what s =
        let path = write "tried" s in
        (match map path with
        | Ok i -> incr accepted; check (what ^ ": what is accepted") (contents_of W.Image.fold i = wanted)
        | r -> refuses what r);
        Sys.remove path
      in
      let at = ref 0 in
      while !at < size do
        let changed = Bytes.of_string image in
        Bytes.set changed !at (Char.chr (Char.code image.[!at] lxor (1 lsl below 8)));
        tried (Printf.sprintf "byte %d of the small one" !at) (Bytes.to_string changed);
        at := !at + if image.[!at] <> '\000' then 1 else 1 + below 16
      done;
      check "none in what is of use" (!accepted < size / 16);
      let length = ref (size - 1) in
      while !length > 0 do
        let cut = write "tried" (String.sub image 0 !length) in
        refuses "a short file" (map cut);
        refuses "a short file, its header" (map ~verify:`Header cut);
        Sys.remove cut;
        length := !length - 1 - below 100
      done;
      (* What cannot be saved; the table stays usable. *)
      (match W.save (schema ()) ~path:(file "no/where") t with
      | Error (R.System _) -> ()
      | _ -> check "a folder that is not there" false);
      check "the table" (W.find "17" t = Some (text 17));
      W.replace "17" "other" t;
      W.close t;
      raises "closed" L.Moved (fun () -> W.save (schema ()) ~path:(file "closed") t))

module Functions =
  L.Table.Make (Ints_hashed) (L.Rooted (struct type t = unit -> int end) ()) ()

let functions () =
  in_folder (fun file ->
      let t = Functions.create () in
      let n = opaque 3 in
      Functions.replace 1 (fun () -> n) t;
      (match Functions.save (R.schema ~name:"functions" ~version:1) ~path:(file "f") t with
      | Error (R.Refused { kind; _ }) -> check "kind" (kind = "closure")
      | _ -> check "functions are refused" false);
      check "it is there" ((Option.get (Functions.find 1 t)) () = 3);
      Functions.replace 2 (fun () -> n) t;
      Functions.close t)

(* Another process maps it; so do several readers at once; the values outlive the handle. *)
let shared () =
  in_folder (fun file ->
      let schema = R.schema ~name:"words" ~version:1 and path = file "words" in
      let t = W.create () in
      for n = 1 to 1000 do W.replace (string_of_int n) (text n) t done;
      unwrap "save" (W.save schema ~path t);
      W.close t;
      let reads () =
        let i = unwrap "map" (W.Image.map schema ~path ()) in
        List.init 1000 (fun n -> W.Image.find (string_of_int (n + 1)) i = Some (text (n + 1))) |> List.for_all Fun.id
      in
      let kept = Option.get (W.Image.find "77" (unwrap "map" (W.Image.map schema ~path ()))) in
      List.init Linear_domains.several (fun _ -> Linear_domains.spawn reads)
      |> List.iter (fun join -> check "read by several" (join ()));
      collect ();
      check "a value stays" (kept = text 77);
      (* A new file does not change what is mapped. *)
      let i = unwrap "map" (W.Image.map schema ~path ()) in
      let t = W.create () in
      W.replace "1" "new" t;
      unwrap "save" (W.save schema ~path t);
      W.close t;
      check "the old one" (W.Image.find "1" i = Some (text 1));
      check "the new one" (W.Image.find "1" (unwrap "map" (W.Image.map schema ~path ())) = Some "new");
      if variant && ocaml5 then begin
        unwrap "revoke" (R.revoke (W.Image.region i));
        raises "deleted" R.Deleted (fun () -> W.Image.find "1" i)
      end)

let mapped_elsewhere () =
  in_folder (fun file ->
      let schema = R.schema ~name:"words" ~version:1 and path = file "words" in
      let code =
        in_child (fun () ->
            let t = W.create () in
            for n = 1 to 1000 do W.replace (string_of_int n) (text n) t done;
            unwrap "save" (W.save schema ~path t);
            0)
      in
      check "saved by a child" (code = Unix.WEXITED 0);
      let i = unwrap "map" (W.Image.map schema ~path ~verify:`Full ()) in
      let read () = if W.Image.find "999" i = Some (text 999) && W.Image.length i = 1000 then 0 else 1 in
      check "read here" (read () = 0);
      check "read by a child" (in_child read = Unix.WEXITED 0))

let images () =
  Numbers.run ();
  Copied.run ();
  Texts.run ();
  functions ();
  shared ();
  check "no text is left" (W.live () = 0)

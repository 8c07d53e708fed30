(* SPDX-License-Identifier: MIT *)
(* Tables and maps that are saved to a file, and mapped. *)
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

(* --- maps --------------------------------------------------------------------------------------------------------- *)

module Of_maps (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  module Make (Order : sig val compare : int -> int -> int end) =
    L.Map.Make
      (struct
        include K

        let compare a b = Order.compare (K.number a) (K.number b)
      end)
      (V)

  module M = Make (Stdlib.Int) ()
  module Backwards = Make (struct let compare a b = Stdlib.Int.compare b a end) ()
  module I = M.Image

  let schema : M.image R.schema = R.schema ~name:"map of a test" ~version:1
  let contents fold t = List.rev (fold (fun k v l -> (K.number k, V.number v) :: l) t [])

  let same path size =
    let t = M.of_seq (Seq.init size (fun n -> (K.make (2 * (size - n))), V.make n)) in
    let wanted = contents M.fold t in
    unwrap "save" (M.save schema ~path t);
    check "the map is as before" (contents M.fold t = wanted);
    M.close t;
    let i = unwrap "map" (I.map schema ~path ~verify:`Full ()) in
    Gc.compact ();
    check "length" (I.length i = size);
    check "contents" (contents I.fold i = wanted);
    for n = 0 to (2 * size) + 3 do
      check "find" (Option.map V.number (I.find (K.make n) i) = List.assoc_opt n wanted);
      check "mem" (I.mem (K.make n) i = List.mem_assoc n wanted)
    done;
    for _ = 1 to 30 do
      let bound () = if below 4 = 0 then None else Some (below ((2 * size) + 4)) in
      let from = bound () and upto = bound () in
      let within bound holds k = Option.fold ~none:true ~some:(holds k) bound in
      let inside (k, _) = within from ( >= ) k && within upto ( <= ) k in
      let found = contents (I.fold_range ?from:(Option.map K.make from) ?upto:(Option.map K.make upto)) i in
      check "a range" (found = List.filter inside wanted)
    done;
    check "no cell is left" (M.live () = 0)

  let damaged path =
    let refuses what v =
      unwrap "save" (R.save (R.schema ~name:"map of a test" ~version:1) ~path (Obj.repr v));
      match I.map schema ~path () with
      | Error (R.Damaged _) -> ()
      | _ -> check (what ^ " is no map") false
    in
    let key n = K.make n and value = V.make 1 in
    refuses "a number" 5;
    refuses "a text" "text";
    refuses "a pair of numbers" (1, 2);
    refuses "one array" ([| key 1 |], 2);
    refuses "arrays of two lengths" ([| key 1; key 2 |], [| value |]);
    refuses "a table" ([| key 1 |], [| value |], 8);
    refuses "another order" ([| key 2; key 1 |], [| value; value |]);
    let other : Backwards.image R.schema = R.schema ~name:"map of a test" ~version:1 in
    match Backwards.Image.map other ~path () with
    | Ok i -> check "in that order" (Backwards.Image.mem (key 1) i)
    | Error _ -> check "it is a map in that order" false

  let run () =
    in_folder (fun file ->
        List.iter (fun size -> same (file (string_of_int size)) size) [ 0; 1; 2; 7; 300 ];
        damaged (file "damaged"))
end

module Maps_of_numbers = Of_maps (Linear_chains.Numbers) (Linear_chains.Copied) ()
module Maps_of_texts = Of_maps (Linear_chains.Copied) (Linear_chains.Texts) ()

module Floats = L.Map.Make (struct include Ints let compare = Stdlib.Int.compare end) (L.Float) ()

(* An array of floats has them unboxed. *)
let floats () =
  in_folder (fun file ->
      let schema = R.schema ~name:"floats" ~version:1 and path = file "floats" in
      let t = Floats.of_seq (Seq.init 100 (fun n -> (n, float n /. 3.))) in
      unwrap "save" (Floats.save schema ~path t);
      Floats.close t;
      let i = unwrap "map" (Floats.Image.map schema ~path ()) in
      check "floats" (Floats.Image.fold (fun n v good -> good && v = float n /. 3.) i true))

let images () =
  Maps_of_numbers.run ();
  Maps_of_texts.run ();
  floats ();
  Numbers.run ();
  Copied.run ();
  Texts.run ();
  functions ();
  shared ();
  check "no text is left" (W.live () = 0)

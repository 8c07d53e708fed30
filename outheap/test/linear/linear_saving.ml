(* SPDX-License-Identifier: MIT *)
(* Tables in parts that are saved: as one image, of one moment, while others write. *)
open Linear_checks
open Linear_images
module S = W.Sharded
module C = Linear_sharded.Counts
module Counts = C.Sharded

let schema = R.schema ~name:"words" ~version:1
let numbers : C.image R.schema = R.schema ~name:"numbers" ~version:1
let sorted l = List.sort compare l
let seen fold t = sorted (fold (fun k v l -> (k, v) :: l) t [])

let same file ?most shards size =
  let path = file "words" in
  let t = S.create ~shards ?most () in
  for n = 1 to size do S.replace (string_of_int n) (text n) t done;
  let wanted = seen S.fold t in
  unwrap "save" (S.save schema ~path t);
  check "the table is as before" (seen S.fold t = wanted && S.check_table t = "");
  S.replace "1" "changed later" t;
  S.close t;
  let i = unwrap "map" (W.Image.map schema ~path ~verify:`Full ()) in
  check "length" (W.Image.length i = List.length wanted);
  check "contents" (seen W.Image.fold i = wanted);
  for n = 0 to size + 1 do
    let k = string_of_int n in
    check "find" (W.Image.find k i = List.assoc_opt k wanted)
  done

(* What goes wrong leaves all parts unlocked. *)
let refused_calls file =
  let t = S.create ~shards:4 () and path = file "refused" in
  for n = 1 to 100 do S.replace (string_of_int n) (text n) t done;
  let usable what =
    for n = 1 to 100 do S.update (string_of_int n) (fun v -> check what (v = Some (text n)); v) t done
  in
  let inside what = raises what L.Borrowed (fun () -> S.save schema ~path t) in
  for n = 1 to 20 do S.update (string_of_int n) (fun v -> inside "inside of update"; v) t done;
  S.iter (fun _ _ -> inside "inside of iter") t;
  usable "after a call inside";
  (match S.save schema ~path:(file "no/where") t with
  | Error (R.System _) -> ()
  | _ -> check "a folder that is not there" false);
  usable "after an error";
  check "nothing was written" (not (Sys.file_exists path));
  S.close t;
  raises "closed" L.Moved (fun () -> S.save schema ~path t);
  raises "closed" L.Moved (fun () -> S.find "1" t)

(* Each process saves what it has, after a fork in the middle of a change too. *)
let forked file =
  let t = S.create ~shards:4 () in
  for n = 1 to 200 do S.replace (string_of_int n) (text n) t done;
  let child = ref (-1) in
  flush_all ();
  (match S.update "7" (fun _ -> child := Unix.fork (); Some (if !child = 0 then "child" else "parent")) t with
  | () -> if !child = 0 then ignore (Unix.alarm 30)
  | exception _ when !child = 0 -> Unix._exit 1);
  if !child = 0 then
    Unix._exit (match S.save schema ~path:(file "child") t with Ok () -> 7 | Error _ -> 2 | exception _ -> 3);
  for n = 201 to 300 do S.replace (string_of_int n) (text n) t done;
  unwrap "save" (S.save schema ~path:(file "parent") t);
  check "saved by a child" (snd (Unix.waitpid [] !child) = Unix.WEXITED 7);
  List.iter
    (fun (name, size) ->
      let i = unwrap "map" (W.Image.map schema ~path:(file name) ~verify:`Full ()) in
      check "length" (W.Image.length i = size);
      for n = 1 to size do
        let wanted = if n = 7 then name else text n in
        check "find" (W.Image.find (string_of_int n) i = Some wanted)
      done)
    [ ("child", 200); ("parent", 300) ];
  S.close t

(* Paths at which no file can be. The table is as before, and what was there, too. *)
let nowhere file =
  let t = W.create () and p = S.create ~shards:4 () in
  for n = 1 to 50 do
    W.replace (string_of_int n) (text n) t;
    S.replace (string_of_int n) (text n) p
  done;
  let names () = List.sort compare (Array.to_list (Sys.readdir (Filename.dirname (file "x")))) in
  Out_channel.with_open_bin (file "a text") (fun c -> Out_channel.output_string c "text");
  Unix.mkdir (file "a folder") 0o700;
  Unix.symlink "round" (file "round");
  Unix.mkfifo (file "pipe") 0o600;
  let before = names () in
  List.iter
    (fun path ->
      let refuses what = function
        | Error (R.System _ | R.Unsupported _) -> ()
        | Error e -> check (what ^ ": " ^ R.error_to_string e) false
        | Ok () -> check (Printf.sprintf "%s at %S is refused" what path) false
      in
      refuses "a table" (W.save schema ~path t);
      refuses "parts" (S.save schema ~path p);
      check "no file is left" (names () = before))
    [
      ""; "/dev/full"; "/dev/null"; "/proc/self/image"; "/sys/image"; file "a folder"; file "a text/image"; file "pipe";
      file "round/image"; file "a folder/../no folder/image"; file (String.make 300 'n'); file "a\000b"; "/"; ".";
      file (String.concat "/" (List.init 2000 (fun _ -> "d")));
    ];
  check "what was there" (In_channel.with_open_bin (file "a text") In_channel.input_all = "text");
  (* A symbolic link is replaced, where it leads stays. *)
  Unix.symlink "a text" (file "link");
  unwrap "over a link" (W.save schema ~path:(file "link") t);
  check "what it led to" (In_channel.with_open_bin (file "a text") In_channel.input_all = "text");
  let i = unwrap "map" (W.Image.map schema ~path:(file "link") ~verify:`Full ()) in
  check "the image" (seen W.Image.fold i = seen W.fold t && seen S.fold p = seen W.fold t);
  Unix.rmdir (file "a folder");
  W.replace "1" "changed" t;
  W.close t;
  S.close p

(* With a limit on the size of files, whose signal is ignored: a file that is too large is not there at all, and the
   table goes on. *)
let limited () =
  in_folder (fun file ->
      let t = W.create () and p = S.create ~shards:4 () and path = file "words" in
      let fill n =
        W.replace (string_of_int n) (text n) t;
        S.replace (string_of_int n) (text n) p
      in
      fill 1;
      unwrap "save what is small" (W.save schema ~path t);
      let small = W.Image.length (unwrap "map" (W.Image.map schema ~path ~verify:`Full ())) in
      for n = 2 to 2000 do fill n done;
      let refuses what = function
        | Error (R.System { call; _ }) -> check (what ^ ": the call") (call = "write")
        | _ -> check (what ^ " is refused") false
      in
      List.iter
        (fun path ->
          refuses "a table" (W.save schema ~path t);
          refuses "parts" (S.save schema ~path p))
        [ path; file "other" ];
      check "what was there stays, and nothing else" (Sys.readdir (Filename.dirname path) = [| "words" |]);
      check "as it was" (small = 1 && W.Image.length (unwrap "map" (W.Image.map schema ~path ~verify:`Full ())) = 1);
      check "the tables" (W.length t = 2000 && S.length p = 2000 && W.check_table t = "" && S.check_table p = "");
      for n = 2 to 2000 do W.remove (string_of_int n) t; S.remove (string_of_int n) p done;
      unwrap "save again" (W.save schema ~path t);
      unwrap "and parts" (S.save schema ~path:(file "other") p);
      W.close t;
      S.close p)

let saved () =
  in_folder (fun file ->
      List.iter
        (fun shards -> List.iter (same file shards) [ 0; 1; 8; 9; 300 ])
        [ 1; 4; 32 ] (* ThreadSanitizer follows 64 locks of a thread *);
      same file ~most:100 4 300;
      refused_calls file;
      nowhere file;
      forked file);
  collect ();
  check "no text is left" (W.live () = 0)

(* --- meanwhile ---------------------------------------------------------------------------------------------------- *)

(* Domains; with OCaml 4.14, threads. *)
let start f =
  if Linear_domains.several > 1 then Linear_domains.spawn f
  else
    let t = Thread.create f () in
    fun () -> Thread.join t

let writers = 2
let keys = 200

(* Each writer has keys of its own, to which it gives 1, 2, 3, …: each number to all of them, in their order. So at a
   moment the numbers do not rise from one key to the next, and fall at most once, by one. Parts of different moments
   would not be so. *)
let of_one_moment id find =
  let number k = find ((id * keys) + k) in
  let falls = ref 0 and good = ref true in
  for k = 1 to keys - 1 do
    let before = number (k - 1) and here = number k in
    if here = before - 1 then incr falls else if here <> before then good := false
  done;
  !good && !falls <= 1

(* A thread with a part is refused at once, though others have parts that [save] would wait for, and they may wait for
   this one. A thread that has called [save] and is not back after the others have yielded to it so often waits for one
   of them: they give up their parts, and say so. Each of these keys has a part of its own, some before the others'. *)
let refused_at_once () =
  let t = Counts.create ~shards:64 () in
  let one ours =
    let inside = Atomic.make 0 and calls = Atomic.make false and back = Atomic.make false in
    let hold k () =
      Counts.update k (fun v ->
          Atomic.incr inside;
          while not (Atomic.get calls) do Thread.yield () done;
          let yields = ref 0 in
          while not (Atomic.get back || !yields = 10_000) do Thread.yield (); incr yields done;
          check "refused before it waits" (Atomic.get back);
          v) t
    in
    let holders = ref [] in
    Counts.update ours
      (fun v ->
        holders := List.init 4 (fun k -> Thread.create (hold (1000 + k)) ());
        while Atomic.get inside < 4 do Thread.yield () done;
        Atomic.set calls true;
        raises "inside of update" L.Borrowed (fun () -> Counts.save numbers ~path:"nowhere/at/all" t);
        Atomic.set back true;
        v)
      t;
    List.iter Thread.join !holders
  in
  List.iter one [ 1; 2; 5; 7; 8 ];
  Counts.close t

(* A table that others change, in turn with its being saved: each file is whole, though many calls be refused. *)
let of_a_table_meanwhile file =
  let t = W.create () and over = Atomic.make false in
  for n = 1 to 500 do W.replace (string_of_int n) (string_of_int n) t done;
  let write id () =
    let n = ref 0 in
    while not (Atomic.get over) do
      incr n;
      let k = string_of_int (1 + ((!n * 7) + id) mod 1000) in
      (try if !n mod 3 = 0 then W.remove k t else W.replace k k t with L.Borrowed -> ());
      if !n land 15 = 0 then Thread.delay 0.0001
    done
  in
  let join = List.init 2 (fun id -> start (write id)) in
  let saved = ref 0 in
  while !saved < 30 do
    let path = file ("of a table " ^ string_of_int !saved) in
    match W.save schema ~path t with
    | exception L.Borrowed -> Thread.yield ()
    | Error e -> check (R.error_to_string e) false; saved := 30
    | Ok () ->
        incr saved;
        let i = unwrap "map" (W.Image.map schema ~path ~verify:`Full ()) in
        let all = seen W.Image.fold i in
        check "as many as it says" (W.Image.length i = List.length all);
        check "each of its key, once" (List.for_all (fun (k, v) -> k = v) all && List.sort_uniq compare all = all)
  done;
  Atomic.set over true;
  List.iter (fun join -> join ()) join;
  whole "table" (W.check_table t);
  W.close t

(* A change at each place in turn where other code of this domain can run. *)
let changed_at_each_place file =
  let t = W.create () in
  List.iter (fun n -> W.replace n n t) [ "1"; "2"; "3" ];
  let add () = match W.replace "another" "another" t with () -> () | exception L.Borrowed -> () in
  let rec go place =
    let path = file (string_of_int place) in
    let result, ran = with_a_call place add (fun () -> W.save schema ~path t) in
    unwrap "save" result;
    let i = unwrap "map" (W.Image.map schema ~path ~verify:`Full ()) in
    check "as many as it says" (W.Image.length i = List.length (seen W.Image.fold i));
    W.remove "another" t;
    if ran then go (place + 1) else place
  in
  with_stops (fun () -> check "places" (go 1 > 10));
  W.close t

let meanwhile () =
  refused_at_once ();
  in_folder changed_at_each_place;
  in_folder of_a_table_meanwhile;
  in_folder (fun file ->
      let t = Counts.create ~shards:16 () and ended = Atomic.make false and rounds = Atomic.make 0 in
      for k = 0 to (writers * keys) - 1 do Counts.replace k 0 t done;
      let write id () =
        let n = ref 0 in
        while not (Atomic.get ended) do
          incr n;
          for k = 0 to keys - 1 do Counts.replace ((id * keys) + k) !n t done;
          Atomic.incr rounds;
          if !n land 7 = 0 then Thread.yield ()
        done
      in
      let join = List.init writers (fun id -> start (write id)) in
      (* Two save at once. *)
      let save id () =
        for n = 1 to 15 do
          let path = file (Printf.sprintf "%d-%d" id n) in
          unwrap "save" (Counts.save numbers ~path t);
          let i = unwrap "map" (C.Image.map numbers ~path ~verify:`Full ()) in
          check "length" (C.Image.length i = writers * keys);
          for id = 0 to writers - 1 do
            check "of one moment" (of_one_moment id (fun k -> Option.get (C.Image.find k i)))
          done;
          let before = Atomic.get rounds in
          while Atomic.get rounds < before + 2 do Thread.yield () done
        done
      in
      let other = start (save 1) in
      save 0 ();
      other ();
      Atomic.set ended true;
      List.iter (fun join -> join ()) join;
      whole "sharded" (Counts.check_table t);
      for id = 0 to writers - 1 do
        let last = Counts.find (id * keys) t in
        check "all was written" (List.for_all (fun k -> Counts.find ((id * keys) + k) t = last) (List.init keys Fun.id))
      done;
      Counts.close t)

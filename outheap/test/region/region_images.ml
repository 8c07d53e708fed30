(* SPDX-License-Identifier: MIT *)
(* Images: written, mapped, relocated, damaged. *)
open Outheap_region
open Region_checks

let file name = Filename.concat (Filename.get_temp_dir_name ()) (Printf.sprintf "region-%d-%s" (Unix.getpid ()) name)
let read path = In_channel.with_open_bin path In_channel.input_all
let write path s = Out_channel.with_open_bin path (fun c -> Out_channel.output_string c s)

let with_file name f =
  let path = file name in
  Fun.protect ~finally:(fun () -> try Sys.remove path with Sys_error _ -> ()) (fun () -> f path)

(* With the header as OCaml 5.2 would write it (region_image.h): its version, and its digest. *)
let of_another_ocaml text =
  let header = Bytes.of_string (String.sub text 0 4096) in
  Bytes.set_int32_le header 12 502l;
  Bytes.fill header 264 16 '\000';
  Bytes.blit_string (Digest.bytes header) 0 header 264 16;
  Bytes.to_string header ^ String.sub text 4096 (String.length text - 4096)

let values : Region_values.variant array schema = schema ~name:"values" ~version:1

(* No exceptions: their constructors belong to a program. *)
let rec storable seed =
  let v = Region_values.make seed in
  match copy v with
  | Ok r when with_file "probe" (fun path -> Result.is_ok (save values ~path (get r))) -> v
  | _ -> storable (seed + 1000)

let images () =
  with_file "image" @@ fun path ->
  check "register" (register ());
  for seed = 1 to 100 do
    let v = storable seed in
    ok "save" (save values ~path v);
    let text = read path in
    ok "save again" (save values ~path v);
    check "the same file each time" (read path = text);
    let r = ok "map" (map values ~path ~verify:`Full ()) in
    (match Region_values.same (Obj.repr v) (Obj.repr (get r)) with
    | None -> ()
    | Some what -> check (Printf.sprintf "image of %d: %s" seed what) false);
    let again = ok "map again" (map values ~path ()) in
    check "mapped once" (region r = region again && get r == get again);
    check "digest" (String.length (info (region r)).digest = 16);
    (* Another process has it at the same addresses. *)
    let s =
      in_child (fun () ->
          let x = ok "map" (map values ~path ()) in
          if (info (region x)).address = (info (region r)).address then 0 else 1)
    in
    check "child" (s = Unix.WEXITED 0);
    (* In another process its addresses are taken. *)
    if seed mod 10 = 1 then
      match Unix.fork () with
      | 0 -> Unix.execv Sys.executable_name [| Sys.executable_name; "relocated"; path; string_of_int seed |]
      | pid -> check "relocated" (snd (Unix.waitpid [] pid) = Unix.WEXITED 0)
  done;
  let other = schema ~name:"values" ~version:2 in
  let named : Region_values.variant array schema = schema ~name:"x" ~version:1 in
  is_error "version"
    (function Error (Other_schema { name = "values"; version = 1; _ }) -> true | _ -> false)
    (map other ~path ());
  is_error "name" (function Error (Other_schema _) -> true | _ -> false) (map named ~path ());
  is_error "no file"
    (function Error (System { call = "open"; _ }) -> true | _ -> false)
    (map values ~path:(file "none") ());
  is_error "no folder" (function Error (System _) -> true | _ -> false) (save values ~path:"/nowhere/x" [||]);
  is_error "a folder"
    (function Error (Damaged _) -> true | _ -> false)
    (map values ~path:(Filename.get_temp_dir_name ()) ());
  is_error "a function" (function Error (Refused { kind = "closure"; path = ".0"; _ }) -> true | _ -> false)
    (save (schema ~name:"f" ~version:1) ~path [| (fun x -> x + List.length [ path ]) |]);
  is_error "an exception"
    (function
      | Error (Refused { kind = "extension constructor"; path = ""; identifier = "Not_found" }) -> true
      | _ -> false)
    (save (schema ~name:"e" ~version:1) ~path Not_found);
  ok "immediate" (save (schema ~name:"i" ~version:1) ~path 42);
  check "immediate" (get (ok "map" (map (schema ~name:"i" ~version:1) ~path ~verify:`Full ())) = 42);
  ok "custom" (save (schema ~name:"c" ~version:1) ~path (custom true 99));
  check "custom" (custom_number (get (ok "map" (map (schema ~name:"c" ~version:1) ~path ~verify:`Full ()))) = 99);
  let many n : Obj.t list schema = schema ~name:(Printf.sprintf "c%d" n) ~version:1 in
  let of_types n = List.init n (fun i -> custom_of_type i) in
  ok "40 types of custom blocks" (save (many 40) ~path (of_types 40));
  let r = ok "map" (map (many 40) ~path ~verify:`Full ()) in
  check "40 types" (List.for_all2 (fun i v -> custom_number v = i) (List.init 40 Fun.id) (get r));
  is_error "41 types" (function Error (Unsupported _) -> true | _ -> false)
    (save (many 41) ~path (of_types 41));
  let big = Bigarray.(Array1.of_array float64 c_layout [| 1.; 2.; 3. |]) in
  ok "bigarray" (save (schema ~name:"b" ~version:1) ~path big);
  let big' = get (ok "map" (map (schema ~name:"b" ~version:1) ~path ~verify:`Full ())) in
  check "bigarray" (big = big')

(* relocated PATH SEED: the addresses of the image are taken *)
let relocated path seed =
  check "register" (register ());
  let header = read path in
  let base = Int64.to_int (String.get_int64_le header 24) in
  check "occupied" (occupy (base / 2) 4096);
  let r = ok "map" (map values ~path ~verify:`Full ()) in
  check "relocated" (info (region r)).relocated;
  let v = storable seed in
  (match Region_values.same (Obj.repr v) (Obj.repr (get r)) with
  | None -> ()
  | Some what -> check ("relocated: " ^ what) false);
  majors 2

let damaged count =
  with_file "image" @@ fun path ->
  with_file "damaged" @@ fun other ->
  let v = storable 7 in
  ok "save" (save values ~path v);
  let text = read path in
  let n = String.length text in
  Random.init 11;
  for i = 1 to count do
    let b = Bytes.of_string text in
    let flips = 1 + Random.int 3 in
    for _ = 1 to flips do
      let at = if Random.bool () then Random.int n else Random.int (min n 4096) in
      Bytes.set b at (Char.chr (Char.code (Bytes.get b at) lxor (1 + Random.int 255)))
    done;
    let s = Bytes.to_string b in
    let s =
      match Random.int 12 with
      | 0 -> String.sub s 0 (Random.int n)
      | 1 -> s ^ String.make (1 + Random.int 9000) 'x'
      | _ -> s
    in
    if s <> text then (
      write other s;
      let what = Printf.sprintf "damaged %d" i in
      is_error what (function Error _ -> true | Ok _ -> false) (map values ~path:other ~verify:`Full ()))
  done

let needs () =
  with_file "a" @@ fun a ->
  with_file "b" @@ fun b ->
  let strings : string list schema = schema ~name:"strings" ~version:1 in
  let pairs : (string list * int) list schema = schema ~name:"pairs" ~version:1 in
  let text i = String.make 50 (Char.chr (65 + (i mod 26))) in
  ok "save" (save strings ~sharing:`Max ~path:a (List.init 1000 text));
  let check_child () =
    is_error "missing"
      (function Error (Missing { digest; _ }) -> String.length digest = 32 | _ -> false)
      (map pairs ~path:b ())
  in
  let r = ok "map" (map strings ~path:a ~verify:`Full ()) in
  let l = get r in
  ok "save with needs" (save pairs ~needs:[ region r ] ~path:b [ (l, 1); (List.tl l, 2) ]);
  check "small" ((Unix.stat b).st_size < 20_000);
  let p = ok "map" (map pairs ~path:b ~verify:`Full ()) in
  check "the same blocks" (fst (List.hd (get p)) == get r && get p = [ (l, 1); (List.tl l, 2) ]);
  let copies = [ (List.map (fun s -> s ^ "") l, 3); ([ "new" ], 4) ] in
  ok "shared with needs" (save pairs ~sharing:`Max ~needs:[ region r ] ~path:b copies);
  check "smaller" ((Unix.stat b).st_size < 20_000);
  let q = ok "map" (map pairs ~path:b ~verify:`Full ()) in
  check "equal, and the same blocks" (get q = copies && fst (List.hd (get q)) == get r);
  ok "save with needs" (save pairs ~needs:[ region r ] ~path:b [ (l, 1); (List.tl l, 2) ]);
  ignore (opaque q);
  is_error "not an image" (function Error (Unsupported _) -> true | _ -> false)
    (save pairs ~needs:[ region (ok "copy" (copy [ "x" ])) ] ~path:b []);
  (match Unix.fork () with
  | 0 -> Unix.execv Sys.executable_name [| Sys.executable_name; "needs-in-child"; a; b |]
  | pid -> check "needs in a child" (snd (Unix.waitpid [] pid) = Unix.WEXITED 0));
  ignore check_child;
  if can_delete then (
    is_error "needed" (function Error (In_use { from; _ }) -> List.mem Regions from | _ -> false) (delete (region r));
    is_error "needed, and revoked" (function Error (In_use { from; _ }) -> from = [ Regions ] | _ -> false)
      (revoke (region r));
    check "nothing happened" (get p = [ (l, 1); (List.tl l, 2) ]);
    ok "what needs it" (revoke (region p)));
  ignore (opaque (l, p, q));
  if can_delete then (
    ok "the other one" (match revoke (region q) with Error Ended -> Ok () | r -> r);
    ok "not needed any more" (revoke (region r)))

(* --- failures ----------------------------------------------------------------------------------------------------- *)

(* Every call of the system and of malloc fails in turn, alone or with all that follow. The operation returns an
   error, or does without, or, where regions can end, tries once more after a collection; it leaves the source and the
   other regions as they are, no files, no mappings, and works afterwards. *)
let failures_of what ?(may_succeed = false) operation =
  let source = Region_values.make 5 in
  let before = Marshal.to_string source [] in
  majors 3;
  let mappings = lines "/proc/self/maps" in
  let rec go ~lasting n =
    ignore (fail (if lasting then -n else n));
    let r = operation source in
    let failed = fail 0 in
    if failed then (
      (match r with
      | Error (System { message = "Cannot allocate memory"; call; _ }) ->
          check (Printf.sprintf "%s, failure %d: %s without memory" what n call) false
      | Error (No_memory | Too_many | System _) -> ()
      | Error e -> check (Printf.sprintf "%s, failure %d: %s" what n (error_to_string e)) false
      | Ok () ->
          (* There is a second attempt after a collection, and after one by a second process. *)
          let again = can_delete || Sys.getenv_opt "REGION_TEST_PATIENCE" <> None in
          check (Printf.sprintf "%s, failure %d: Ok" what n) (may_succeed || (again && not lasting)));
      check (what ^ ": source") (Marshal.to_string source [] = before);
      go ~lasting (n + 1))
    else (
      check (Printf.sprintf "%s: %s" what (show r)) (r = Ok ());
      n - 1)
  in
  List.iter
    (fun lasting ->
      let n = go ~lasting 1 in
      check (Printf.sprintf "%s: %d calls" what n) (n > 0))
    [ false; true ];
  if can_delete then (
    majors 4;
    let after = lines "/proc/self/maps" in
    check (Printf.sprintf "%s: mappings: %d, before %d" what after mappings) (after < mappings + 30))

let dropped = function Ok _ -> Ok () | Error e -> Error e

let failing () =
  let folder = file "folder" in
  Unix.mkdir folder 0o700;
  let path = Filename.concat folder "image" in
  let clean () =
    Array.iter (fun f -> Sys.remove (Filename.concat folder f)) (Sys.readdir folder);
    Unix.rmdir folder
  in
  Fun.protect ~finally:clean @@ fun () ->
  check "register" (register ());
  let v = storable 12 in
  ok "save" (save values ~path v);
  let text = read path in
  failures_of "copy" (fun source -> dropped (copy source));
  failures_of "copy `Max" (fun source -> dropped (copy ~sharing:`Max source));
  let files () = Array.length (Sys.readdir folder) in
  let before = files () in
  failures_of "save" ~may_succeed:true (fun _ -> save values ~path v);
  check "no file is left" (files () = before);
  check "a whole file" (read path = text);
  failures_of "map" (fun _ -> dropped (map values ~path ()));
  majors 4;
  failures_of "map `Full" (fun _ ->
      majors 3;
      dropped (map values ~path ~verify:`Full ()))

(* Another domain revokes an image that is needed while it is read: one of the two is refused, and nothing crashes. *)
let pins () =
  if can_delete && Region_domains.recommended > 1 then
    with_file "needed" @@ fun a ->
    with_file "needing" @@ fun b ->
    let strings : string list schema = schema ~name:"strings" ~version:1 in
    for i = 1 to 40 do
      let words = List.init 20_000 (fun j -> string_of_int ((i * 100_000) + j)) in
      ok "save" (save strings ~path:a words);
      let r = ok "map" (map strings ~path:a ()) in
      let started = Atomic.make false in
      let other =
        Region_domains.spawn (fun () ->
            while not (Atomic.get started) do () done;
            for _ = 1 to i * 2_000 do ignore (opaque i) done;
            match revoke (region r) with
            | Ok () | Error (In_use _) -> ()
            | Error e -> check (error_to_string e) false)
      in
      Atomic.set started true;
      (match save strings ~sharing:`Max ~needs:[ region r ] ~path:b words with
      | Ok () | Error Ended -> ()
      | Error e -> check (error_to_string e) false);
      other ()
    done

(* First without what is needed, then with what is needed elsewhere. *)
let needs_in_child a b =
  let strings : string list schema = schema ~name:"strings" ~version:1 in
  let pairs : (string list * int) list schema = schema ~name:"pairs" ~version:1 in
  is_error "missing"
    (function Error (Missing { digest; _ }) -> String.length digest = 32 | _ -> false)
    (map pairs ~path:b ());
  check "occupied" (occupy (Int64.to_int (String.get_int64_le (read a) 24) / 2) 4096);
  let r = ok "map" (map strings ~path:a ()) in
  check "relocated" (info (region r)).relocated;
  let p = ok "map" (map pairs ~path:b ~verify:`Full ()) in
  check "the same blocks" (fst (List.hd (get p)) == get r)

(* What a file looks like to others, and what is left behind. *)
let modes () =
  let ints : int list schema = schema ~name:"ints" ~version:1 in
  let folder = file "modes" in
  Unix.mkdir folder 0o700;
  let path = Filename.concat folder "image" in
  let mode path = (Unix.lstat path).st_perm in
  let left () = List.sort compare (Array.to_list (Sys.readdir folder)) in
  let clean () =
    List.iter (fun f -> Unix.unlink (Filename.concat folder f)) (left ());
    Unix.rmdir folder
  in
  Fun.protect ~finally:clean @@ fun () ->
  let mask = Unix.umask 0o027 in
  Fun.protect ~finally:(fun () -> ignore (Unix.umask mask)) @@ fun () ->
  ok "save" (save ints ~path [ 1 ]);
  check "a new file has the mask" (mode path = 0o640);
  List.iter
    (fun m ->
      Unix.chmod path m;
      ok "save again" (save ints ~path [ 2 ]);
      check (Printf.sprintf "mode %o is kept" m) (mode path = m))
    [ 0o600; 0o666; 0o444; 0o751 ];
  check "its value" (get (ok "map" (map ints ~path ())) = [ 2 ]);
  (* A symbolic link is replaced; of a hard link, this name is. *)
  let other = Filename.concat folder "other" and hard = Filename.concat folder "hard" in
  Unix.link path hard;
  ok "save" (save ints ~path [ 3 ]);
  check "the other name" (get (ok "map" (map ints ~path:hard ())) = [ 2 ]);
  Unix.symlink path other;
  ok "save" (save ints ~path:other [ 4 ]);
  check "a link is replaced"
    ((Unix.lstat other).st_kind = S_REG && mode other = 0o640 && get (ok "map" (map ints ~path ())) = [ 3 ]);
  let pipe = Filename.concat folder "pipe" in
  Unix.mkfifo pipe 0o600;
  is_error "a pipe" (function Error (Unsupported _) -> true | _ -> false) (save ints ~path:pipe [ 5 ]);
  check "is still one" ((Unix.lstat pipe).st_kind = S_FIFO);
  is_error "a folder" (function Error (Unsupported _) -> true | _ -> false) (save ints ~path:folder [ 5 ]);
  is_error "no name" (function Error (Unsupported _) -> true | _ -> false) (save ints ~path:"" [ 5 ]);
  (* a name of full length, and one without a folder *)
  let long = String.make 255 'x' in
  ok "a long name" (save ints ~path:(Filename.concat folder long) [ 6 ]);
  ok "and again" (save ints ~path:(Filename.concat folder long) [ 7 ]);
  let here = Sys.getcwd () in
  Sys.chdir folder;
  let r = save ints ~path:"plain" [ 8 ] in
  Sys.chdir here;
  ok "without a folder" r;
  check "nothing else is there" (left () = [ "hard"; "image"; "other"; "pipe"; "plain"; long ]);
  check "the mask is the process'" (umasks () = 0);
  (* A process is killed while it writes. Without /proc and the like the file has a name then; here it has none. *)
  let large = List.init 2_000_000 (fun i -> i) in
  for i = 1 to 3 do
    flush_all ();
    let begins, begin_ = Unix.pipe () in
    (match Unix.fork () with
    | 0 ->
        while true do ignore (Unix.write_substring begin_ "x" 0 1); ignore (save ints ~path large) done
    | pid ->
        for _ = 1 to i do ignore (Unix.read begins (Bytes.create 1) 0 1) done;
        Unix.kill pid Sys.sigkill;
        ignore (Unix.waitpid [] pid));
    Unix.close begins;
    Unix.close begin_
  done;
  check "and nothing of what was killed" (List.length (left ()) = 6)

(* Domains that map the same file at the same time have one region. *)
let together () =
  with_file "image" @@ fun path ->
  let ints : int array schema = schema ~name:"ints" ~version:1 in
  for i = 1 to 60 do
    ok "save" (save ints ~path (Array.init 3000 (fun j -> i + j)));
    let n = Region_domains.recommended in
    let ready = Atomic.make 0 and roots = Array.make n None in
    Region_domains.run n (fun me () ->
        Atomic.incr ready;
        if n > 1 then while Atomic.get ready < n do () done;
        roots.(me) <- Some (ok "map" (map ints ~path ~verify:(if me land 1 = 0 then `Full else `Header) ())));
    let first = Option.get roots.(0) in
    Array.iter
      (fun r ->
        let r = Option.get r in
        check "one region" (region r = region first && get r == get first && (get r).(2999) = i + 2999))
      roots
  done;
  if can_delete then (
    majors 5;
    check "all end" ((stats ()).live <= 1))

(* SPDX-License-Identifier: MIT *)
(* The runtime variant, from OCaml: what addresses are, memory given back, the process map, minor heaps, domains, forks,
   plugins, settings.
     variant.exe NAME…        of those below; without a name, those that need nothing from outside
   Prints `ok NAME` or ends with an exception. *)
open Outheap

external malloced : int -> Obj.t = "variant_malloc"
external word : int64 -> Obj.t = "variant_word" (* any pattern with a clear low bit *)
external code_address : unit -> Obj.t = "variant_code"

let expect what condition = if not condition then failwith what
let lines file = In_channel.with_open_bin file (fun c ->
  let rec go n = match In_channel.input_line c with Some _ -> go (n + 1) | None -> n in go 0)
let mappings () = lines "/proc/self/maps"

let resident () =
  In_channel.with_open_bin "/proc/self/statm" (fun c ->
    Scanf.sscanf (Option.get (In_channel.input_line c)) "%d %d" (fun _ r -> r * 4096))

let five = Sys.ocaml_version.[0] >= '5'
let compacts = String.sub Sys.ocaml_version 0 4 <> "5.1." (* there Gc.compact is no more than Gc.major *)
let megabyte = 1 lsl 20
let thp_off = match Sys.getenv_opt "OUTHEAP" with Some "thp=off" -> true | _ -> false
let static = ("static", [ 1; 2; 3 ], (1.5, Some "a")) (* constants all through: static data *)
let live v = ignore (Sys.opaque_identity v)

(* --- kinds ------------------------------------------------------------------------------------------------------- *)

let kinds () =
  expect "the variant is linked" available;
  expect "int" (classify (Obj.repr 1) = Immediate);
  expect "young" (classify (Obj.repr (Sys.opaque_identity (ref 0))) = Young);
  let r = Sys.opaque_identity (ref 0) in
  Gc.full_major ();
  expect "small block" (classify (Obj.repr r) = Major);
  expect "large block" (classify (Obj.repr (Array.make 100_000 0)) = Major);
  if Sys.backend_type = Sys.Native then begin
    expect "static data" (classify (Obj.repr static) = Values);
    expect "constant string" (classify (Obj.repr "constant") = Values)
  end;
  expect "empty array" (classify (Obj.repr (Sys.opaque_identity [||])) = Values);
  expect "malloc" (match classify (malloced 1000) with Unknown | Foreign -> true | _ -> false);
  expect "code" (match classify (code_address ()) with Unknown | Foreign -> true | _ -> false);
  List.iter (fun w -> expect (Printf.sprintf "%Lx" w) (match classify (word w) with Unknown | Foreign -> true
                                                         | _ -> false))
    [ 0L; 8L; 0x7fff_ffff_fff8L; 0x8000_0000_0000L; -8L; Int64.min_int; 0xdead_beef_dead_beeeL; 0x1234_5678_9abc_def0L ]

(* Static data is compared, hashed, marshalled and measured like any other. *)
let polymorphic () =
  let copy = Marshal.from_string (Marshal.to_string static []) 0 in
  expect "=" (static = Sys.opaque_identity copy);
  expect "compare" (compare (Sys.opaque_identity copy) static = 0);
  expect "hash" (Hashtbl.hash static = Hashtbl.hash copy);
  expect "Obj.tag" (Obj.tag (Obj.repr "x") = Obj.string_tag && Obj.tag (Obj.repr [| 1.; 2. |]) = Obj.double_array_tag);
  expect "reachable words" (Obj.reachable_words (Obj.repr (copy, 1)) > 10);
  expect "[||]" (Sys.opaque_identity [||] = (Marshal.from_string (Marshal.to_string [||] []) 0 : int array));
  let l = Sys.opaque_identity (lazy (Sys.opaque_identity 1.5)) in
  ignore (Lazy.force l);
  Gc.full_major ();
  expect "lazy float" (Lazy.force l = 1.5);
  let p = malloced 64 and q = malloced 64 in
  expect "foreign = itself" (compare (p, 1) (p, 1) = 0);
  expect "foreign order" (compare p q = -compare q p && compare p q <> 0);
  expect "int < foreign" (compare (Obj.repr 5) p < 0 && compare p (Obj.repr 5) > 0);
  expect "NULL is not 0" (compare (word 0L) (Obj.repr 0) <> 0);
  expect "hash of foreign" (Hashtbl.hash p = Hashtbl.hash p);
  expect "tag of foreign" (Obj.tag p = 1001 && Obj.tag (word 0x1232L) = 1002);
  expect "marshalled foreign" (match Marshal.to_string (p, 1) [] with _ -> false | exception Invalid_argument _ ->
                                 true);
  expect "words of foreign" (Obj.reachable_words (Obj.repr (ref p)) = 2)

(* --- memory ------------------------------------------------------------------------------------------------------ *)

let build n = Array.init n (fun i -> Some (string_of_int i, [ i; i + 1 ]))

let compaction () =
  let before = mappings () in
  let a = build 2_000_000 in
  Gc.compact ();
  let full = resident () in
  Array.iteri (fun i _ -> if i land 1 = 0 then a.(i) <- None) a;
  Gc.compact ();
  let half = resident () in
  Printf.printf "mappings %d, then %d; resident %d MB, half of it dropped %d MB\n" before (mappings ())
    (full / megabyte) (half / megabyte);
  expect "few mappings" (mappings () < before + 40);
  (* OCaml 4 keeps as much free as space_overhead allows. *)
  let array = Array.length a * 8 in
  if five && compacts then expect "memory given back" (half - array < (full - array) * 6 / 10);
  Array.iteri (fun i v ->
    expect "contents" (if i land 1 = 0 then v = None else v = Some (string_of_int i, [ i; i + 1 ]))) a;
  Array.fill a 0 (Array.length a) None;
  Gc.compact ();
  if compacts then expect "and the rest" (resident () < full / 4 + (64 * megabyte));
  expect "still few mappings" (mappings () < before + 40)

let large_blocks () =
  let random = Random.State.make [| 3 |] in
  let held = Array.make 64 (Bytes.create 0) in
  for i = 1 to 5_000 do
    let b = Bytes.make (1 lsl (10 + Random.State.int random 14)) (Char.chr (i land 255)) in
    let k = Random.State.int random 64 in
    let old = held.(k) in
    expect "contents" (Bytes.length old = 0 || Bytes.get old 0 = Bytes.get old (Bytes.length old - 1));
    held.(k) <- b
  done;
  let s = statistics () in
  expect "blocks are counted" (s.blocks > 0 && s.block_bytes > 0);
  Array.fill held 0 64 Bytes.empty;
  Gc.compact ();
  if not compacts then Gc.full_major ();
  expect "blocks are freed" ((statistics ()).block_bytes < s.block_bytes)

(* Of large blocks a tenth survives. What lies between goes back: when it stays free while the program works on, but
   for what the settings keep, and all of it at Gc.full_major. *)
let large_survivors () =
  let random = Random.State.make [| 5 |] and before = resident () in
  let kept words =
    let held = Array.init (50 * megabyte / words) (fun i -> Array.make words i) in
    let n = ref 0 in
    Array.iteri (fun i _ -> if Random.State.int random 10 = 0 then incr n else held.(i) <- [||]) held;
    held, !n * words * 8 in
  let expect_resident what limit =
    let now = resident () - before in
    expect (Printf.sprintf "%s: %d KB resident, %d allowed" what (now / 1024) (limit / 1024)) (now <= limit) in
  if five then begin (* OCaml 4.14 has them in chunks of its heap, which stay as in stock's *)
    List.iter
      (fun words ->
        let held, bytes = kept words in
        Gc.full_major ();
        expect_resident "Gc.full_major" (bytes / 10 * 11 + 3 * megabyte);
        Array.iteri (fun i a -> expect "contents" (Array.length a = 0 || (a.(0) = i && a.(words - 1) = i)))
          held)
      [ 131_072; 100_001; 25_600 ];
    let held, bytes = kept 131_072 in
    let keep = (if thp_off then 32 else 4) * megabyte and step = 4 * megabyte in
    let limit = (bytes / 10 * 11) + keep + step + (3 * megabyte) in
    let last = (Gc.quick_stat ()).major_collections + 40 in
    while resident () - before > limit && (Gc.quick_stat ()).major_collections < last do
      ignore (Gc.major_slice 100_000)
    done;
    expect_resident "cycles" limit;
    live held
  end

let minor_heaps () =
  let word_sizes = [ 32_768; 4_096; 1_048_576; 65_536; 8_388_608; 262_144 ] in
  List.iter
    (fun words ->
      Gc.set { (Gc.get ()) with minor_heap_size = words };
      let l = List.init 100_000 string_of_int in
      expect "contents" (List.nth l 77_777 = "77777");
      live l)
    word_sizes;
  expect "young is counted" ((statistics ()).young >= 262_144 * 8)

(* Under a limit on the address space: the old minor heap stays, in this domain and in others. *)
let refused_minor_heap () =
  let size () = (Gc.get ()).minor_heap_size and before = (Gc.get ()).minor_heap_size in
  for _ = 1 to 3 do
    Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 27 };
    expect "the old size" (size () = before);
    minor_heaps ();
    Gc.set { (Gc.get ()) with minor_heap_size = before }
  done

let forks () =
  let l = List.init 200_000 string_of_int in
  for _ = 1 to 5 do
    match Unix.fork () with
    | 0 ->
        let m = List.rev_map (fun s -> s ^ "!") l in
        Gc.compact ();
        Unix._exit (if List.length m = 200_000 && List.hd l = "0" then 0 else 1)
    | pid -> expect "child" (snd (Unix.waitpid [] pid) = Unix.WEXITED 0)
  done

let trims () =
  live (Array.init 64 (fun _ -> Bytes.create megabyte));
  Gc.full_major ();
  ignore (trim ());
  let s = statistics () in
  expect "nothing is left to trim" (trim () = 0);
  expect "statistics agree" (s.reserved >= s.committed && s.committed >= s.resident_free && s.chunks > 0)

let reserves () =
  let before = (statistics ()).reserved in
  expect "reserve" (reserve (1 lsl 30) = Ok ());
  expect "reserved" ((statistics ()).reserved >= before + (1 lsl 30));
  expect "refused: zero" (Result.is_error (reserve 0));
  expect "refused: negative" (Result.is_error (reserve (-1)));
  expect "refused: too much" (Result.is_error (reserve max_int))

let reports () =
  let p = Sys.opaque_identity (ref (malloced 100)) in
  Gc.full_major ();
  ignore (report ~every:1_000_000);
  let a = Array.make 10_000 (Obj.repr !p) in
  Gc.full_major ();
  let met = report ~every:0 in
  expect (Printf.sprintf "foreign pointers were counted: %d" met) (met >= 10_000);
  live a

let memprof () =
  let samples = ref 0 in
  let tracker = { Gc.Memprof.null_tracker with alloc_minor = (fun _ -> incr samples; None); alloc_major = (fun _ ->
    incr samples; None) } in
  (try
     ignore (Gc.Memprof.start ~sampling_rate:0.01 ~callstack_size:5 tracker);
     live (build 100_000);
     Gc.Memprof.stop ();
     expect "samples" (!samples > 0)
   with Failure m -> print_endline m)

(* The program gets a signal again and again while it works, until statistics are in a file. *)
let signals () =
  let file = Sys.getenv "VARIANT_STATISTICS" in
  let written () =
    try In_channel.with_open_bin file In_channel.input_all with Sys_error _ -> "" in
  let is_whole text = match String.index_opt text '\n' with
    | None -> false
    | Some _ -> List.exists (String.starts_with ~prefix:"outheap: huge.rest ") (String.split_on_char '\n' text) in
  let kept = build 10_000 in
  Gc.full_major ();
  while not (is_whole (written ())) do
    Unix.kill (Unix.getpid ()) Sys.sigusr2;
    live (build 10_000);
    Gc.full_major ()
  done;
  let lines = String.split_on_char '\n' (written ()) in
  expect "resident memory of the heap" (List.exists (fun line ->
    try Scanf.sscanf line "outheap: resident.%s %d" (fun name n -> (name = "pools" || name = "blocks") && n > 65_536)
    with Scanf.Scan_failure _ | End_of_file -> false) lines);
  live kept

let plugin () =
  Dynlink.loadfile (Sys.getenv "VARIANT_PLUGIN");
  let loaded : Obj.t = Obj.repr (Option.get !Shared.value) in
  expect "static data of the plugin" (classify loaded = Values);
  let copy = Marshal.from_string (Marshal.to_string loaded []) 0 in
  expect "plugin: =" (Sys.opaque_identity copy = loaded);
  Gc.compact ();
  expect "plugin: after compaction" (copy = loaded)

let all = ref [ "kinds", kinds; "polymorphic", polymorphic; "compaction", compaction; "large-blocks", large_blocks;
                "large-survivors", large_survivors; "minor-heaps", minor_heaps;
                "refused-minor-heap", refused_minor_heap; "trims", trims;
    "reserves", reserves; "reports", reports; "memprof", memprof; "plugin", plugin; "forks", forks;
    "signals", signals ]

let () =
  all := !all @ Adaptive.tests @ Following.tests @ Domains.tests;
  let needs_a_setting name =
    List.mem name [ "plugin"; "refused-minor-heap"; "signals" ] || String.starts_with ~prefix:"adaptive" name
    || String.starts_with ~prefix:"following" name in
  let with_usual_settings = List.filter (fun name -> not (needs_a_setting name)) (List.map fst !all) in
  let run name =
    (List.assoc name !all) ();
    Printf.printf "ok %s\n%!" name in
  match List.tl (Array.to_list Sys.argv) with
  | [ "--list" ] ->
    let is_slow name = List.mem name [ "domains"; "storm" ] in (* a minute with the debug runtime *)
    List.iter (fun name -> print_endline (if is_slow name then name ^ " slow" else name)) with_usual_settings
  | [] -> List.iter run with_usual_settings
  | names -> List.iter run names

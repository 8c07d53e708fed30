(* SPDX-License-Identifier: MIT *)
(* Does a soft limit on memory hold, is the data whole, and what do the questions about memory say?

     limited KIND LIMIT(MB)
       churn       entries of one size, replaced at random, for long
       sizes       entries that grow: what was freed is of no use to those that come
       bigarrays   memory that the collector does not own
       blocks      large blocks that come and go
       phases      data that are built and dropped
       beyond      live data need more than the limit
       pressure    a cache that drops entries when it is told to
       arrays, strings, arrays-of-c   large ones, one after the other
       grow        an array that grows
       read        a large value is unmarshalled, again and again
       domains     as churn, in two domains (OCaml 5)
       crowd       the same in 27
       threads     as churn, in three threads
       forks       as churn, and a child does the same
       rootless    as churn, after the process has changed its root, if it may
       full        as churn, while all descriptors are in use
       closed      as rootless, and the program has closed all descriptors that are not its own
       compacted   what is free is counted once, also after compactions, and each cycle tells of pressure
       none        questions, without a limit
       floor       nothing is collected below it

   Fails if more than LIMIT and 15 % was used at any time; if LIMIT is below 0, if less than -LIMIT was at the most. *)

let kind = Sys.argv.(1)
let limit = int_of_string Sys.argv.(2) * 1_048_576
let mb = 1_048_576

(* Of a program that cannot open it later. *)
let kept = ref None

let used () =
  let line =
    match !kept with
    | Some file ->
        let text = Bytes.create 100 in
        ignore (Unix.lseek file 0 SEEK_SET);
        Bytes.sub_string text 0 (Unix.read file text 0 100)
    | None ->
        let ic = open_in "/proc/self/statm" in
        let line = input_line ic in
        close_in ic;
        line
  in
  Scanf.sscanf line "%d %d %d" (fun _ r s -> (r - s) * 4096)

(* What was measured is above its bound. *)
let miss what = prerr_endline what; exit 1

let peak = Atomic.make 0
let look () = let u = used () in if u > Atomic.get peak then Atomic.set peak u

let random state below =
  state := ((!state * 25214903917) + 11) land 0xffffffffffff;
  (!state lsr 16) mod below

(* 128 bytes each *)
let entry i = Array.init 15 (fun k -> i + k)
let is_entry a = a = [||] || (Array.length a = 15 && a.(14) = a.(0) + 14)

let churn ?(rounds = 6) megabytes =
  let n = megabytes * mb / 136 and seed = ref 1 in
  let a = Array.make n [||] in
  for i = 0 to n - 1 do a.(i) <- entry i done;
  for i = 1 to n * rounds do
    a.(random seed n) <- entry i;
    if i land 4095 = 0 then look ()
  done;
  if not (Array.for_all is_entry a) then failwith "an entry is another"

let sizes () =
  let seed = ref 2 in
  let n = mb in
  let a = Array.make n "" in
  for step = 0 to 7 do
    let bytes = 24 + (16 * step) in
    let live = 40 * mb / (bytes + 16) in
    for i = 1 to live do
      a.(random seed live) <- String.make bytes (Char.chr (64 + step));
      if i land 4095 = 0 then look ()
    done;
    Array.fill a live (n - live) ""
  done;
  if not (Array.for_all (fun s -> s = "" || s = String.make (String.length s) s.[0]) a) then failwith "another string"

let bigarrays () =
  let keep = Array.make 16 None and seed = ref 3 in
  for i = 1 to 1_500 do
    let b = Bigarray.Array1.create Bigarray.char Bigarray.c_layout mb in
    Bigarray.Array1.fill b (Char.chr (i land 255));
    keep.(random seed 16) <- Some b;
    ignore (Sys.opaque_identity (List.init 2_000 Fun.id));
    look ()
  done

let blocks () =
  let keep = Array.make 20 [||] and seed = ref 4 in
  for i = 1 to 1_500 do
    keep.(random seed 20) <- Array.make (100_000 + random seed 200_000) i;
    look ()
  done;
  Array.iter (fun a -> if a <> [||] && a.(0) <> a.(Array.length a - 1) then failwith "another block") keep

(* Of 30 MB each, one that stays and one after the other that do not: there is no room for a third one. *)
let large make first =
  let held = make (30 * mb) 'a' in
  for _ = 1 to 20 do
    let one = make (30 * mb) 'b' in
    look ();
    if first (Sys.opaque_identity one) <> 'b' then failwith "another block"
  done;
  if first held <> 'a' then failwith "another block"

let array_of_c n c =
  let a = Bigarray.(Array1.create char c_layout n) in
  Bigarray.Array1.fill a c;
  a

(* From 20 to 36 MB. Beside it and the one that it is copied from there is no room for what it was before. *)
let grow () =
  for _ = 1 to 4 do
    let a = ref (Array.init (20 * mb / 8) Fun.id) in
    while Array.length !a < 36 * mb / 8 do
      let n = Array.length !a in
      let next = Array.make (n + (2 * mb / 8)) n in
      Array.blit !a 0 next 0 n;
      a := next;
      look ()
    done;
    Array.iteri (fun i x -> if x > i || x < i - (2 * mb / 8) then failwith "another element") !a
  done

let read () =
  let text = Marshal.to_string (List.init 700_000 Fun.id) [] in
  for _ = 1 to 12 do
    let l : int list = Marshal.from_string text 0 in
    look ();
    if List.length l <> 700_000 then failwith "another list"
  done

let crowd () =
  let all = List.init 26 (fun _ -> Domain.spawn (fun () -> churn ~rounds:3 5)) in
  churn ~rounds:3 5;
  List.iter Domain.join all

let phases () =
  for _ = 1 to 6 do
    let l = List.init 2_000_000 (fun i -> if i land 65535 = 0 then look (); i) in
    if List.length (Sys.opaque_identity l) <> 2_000_000 then failwith "another list"
  done

(* Entries that nobody has to keep. *)
let pressure () =
  let cache : (int, string) Hashtbl.t = Hashtbl.create 1 and told = ref 0 and short = ref false in
  let alarm =
    Outheap.on_pressure ~at:0.5 (fun m ->
        if m.used - m.free < m.limit / 2 then failwith "it was told without need";
        incr told;
        short := true)
  in
  if alarm = None then failwith "no alarm, with a limit";
  for i = 1 to 3_000_000 do
    if !short then begin
      Hashtbl.reset cache;
      short := false
    end;
    Hashtbl.replace cache i (string_of_int i);
    if i land 4095 = 0 then look ()
  done;
  if !told = 0 then failwith "it was never told";
  Outheap.off_pressure alarm;
  let before = !told in
  Hashtbl.reset cache;
  for i = 1 to 1_000_000 do Hashtbl.replace cache i (string_of_int i) done;
  Gc.full_major ();
  if !told > before then failwith "it was told after the end"

let keep () = kept := Some (Unix.openfile "/proc/self/statm" [ O_RDONLY; O_CLOEXEC ] 0)

(* To a folder that is gone, so that none is left behind. *)
let change_root () =
  let folder = Filename.temp_dir "limited" "" in
  Unix.chdir folder;
  Unix.rmdir folder;
  match Unix.chroot "." with
  | () -> if Sys.file_exists "/proc" then failwith "the root is the same"
  | exception Unix.Unix_error (EPERM, _, _) -> print_endline "not root: the root stays"

let fill () =
  try while true do ignore (Unix.dup ~cloexec:true Unix.stdin) done
  with Unix.Unix_error (EMFILE, _, _) -> ()

let close_others () =
  for file = 3 to 1023 do
    if !kept <> Some (Obj.magic file : Unix.file_descr) then
      try Unix.close (Obj.magic file : Unix.file_descr) with Unix.Unix_error _ -> ()
  done

let blind prepare =
  keep ();
  prepare ();
  churn 60;
  if (Outheap.memory ()).used < 40 * mb then failwith "what is used is not known"

let compacted () =
  let other = Bigarray.Array1.create Bigarray.char Bigarray.c_layout (60 * mb) in
  Bigarray.Array1.fill other 'x';
  let cycles = ref 0 and told = ref 0 and last = ref (Outheap.memory ()) in
  let check what =
    let m = Outheap.memory () in
    last := m;
    if m.free < 0 || m.free > m.used then failwith (what ^ ": more is free than used");
    (* But for pages that are counted as resident before they are. *)
    if m.used - m.free < 52 * mb then
      failwith (Printf.sprintf "%s: of %d MB %d are free" what (m.used / mb) (m.free / mb))
  in
  check "at first";
  let pressure = Outheap.on_pressure ~at:0.5 (fun _ -> incr told) in
  let alarm = Gc.create_alarm (fun () -> incr cycles; check "in a cycle") in
  for _ = 1 to 8 do
    let all = List.init 600_000 (fun i -> (i, i)) in
    let some = List.filter (fun (i, _) -> i mod 30 = 0) (Sys.opaque_identity all) in
    Gc.compact ();
    check "after a compaction";
    let m = !last in
    if m.used - m.free < (52 * mb) + (m.live / 4 * 3) then failwith "what lives is free";
    let sum = List.fold_left (fun n (i, _) -> n + i) 0 some in
    if sum <> 30 * 19_999 * 10_000 then failwith "another list"
  done;
  Gc.delete_alarm alarm;
  Outheap.off_pressure pressure;
  Printf.printf "%d cycles, told in %d\n" !cycles !told;
  if pressure <> None && !told < !cycles - 1 then failwith "it was not told of all";
  ignore (Sys.opaque_identity other.{5})

let none () =
  let m = Outheap.memory () in
  if Outheap.available then begin
    if m.limit <> 0 then failwith "a limit";
    if m.used < mb / 8 || abs (m.used - used ()) > 8 * mb then failwith "used";
    if Outheap.on_pressure ignore <> None then failwith "an alarm";
    let a = Array.init 400_000 (fun i -> ref i) in
    Gc.full_major ();
    let m' = Outheap.memory () in
    ignore (Sys.opaque_identity a);
    if m'.used < m.used + (8 * mb) then failwith "used does not grow";
    if m'.pools + m'.blocks < 9 * mb then failwith "the heap";
    if m'.live < 9 * mb then failwith "live";
    if m'.live > m'.pools + m'.blocks || m'.free < 0 || m'.young <= 0 then failwith "a part";
    if m.free > m.used || m'.free > m'.used then failwith "more is free than used"
  end;
  List.iter
    (fun at -> match Outheap.on_pressure ~at ignore with
       | exception Invalid_argument _ -> () | _ -> failwith "a share that is none")
    [ 0.; -1.; 1.1; nan; infinity ]

let floor () =
  let cycles () = (Gc.quick_stat ()).major_collections in
  let before = cycles () in
  churn ~rounds:4 8;
  let below = cycles () - before in
  let words = (Gc.quick_stat ()).promoted_words in
  if words < 2e6 then failwith "it promoted nothing";
  churn ~rounds:4 120;
  Printf.printf "cycles: %d below, %d above\n" below (cycles () - before - below);
  if below > 4 then failwith "cycles below the floor";
  if cycles () - before - below < 1 then failwith "no cycle above the floor"

let fork () =
  churn ~rounds:2 25;
  match Unix.fork () with
  | 0 -> churn ~rounds:3 30; if limit > 0 && Atomic.get peak > limit / 20 * 23 then miss "above its limit"
  | child ->
      churn ~rounds:3 30;
      (match snd (Unix.waitpid [] child) with
       | WEXITED 0 -> ()
       | _ -> failwith "the child")

let () =
  begin
    match kind with
    | "churn" -> churn 60
    | "sizes" -> sizes ()
    | "bigarrays" -> bigarrays ()
    | "blocks" -> blocks ()
    | "arrays" -> large (fun n c -> Array.make (n / 8) (float (Char.code c))) (fun a -> Char.chr (truncate a.(0)))
    | "strings" -> large Bytes.make (fun s -> Bytes.get s 0)
    | "arrays-of-c" -> large array_of_c (fun a -> a.{0})
    | "grow" -> grow ()
    | "read" -> read ()
    | "crowd" -> crowd ()
    | "phases" -> phases ()
    | "beyond" -> churn ~rounds:3 60
    | "pressure" -> pressure ()
    | "domains" -> (let other = Domain.spawn (fun () -> churn ~rounds:4 30) in churn ~rounds:4 30; Domain.join other)
    | "threads" -> List.iter Thread.join (List.init 3 (fun _ -> Thread.create (fun () -> churn ~rounds:4 20) ()))
    | "forks" -> fork ()
    | "rootless" -> blind change_root
    | "full" -> blind fill
    | "closed" -> blind (fun () -> close_others (); change_root ())
    | "compacted" -> compacted ()
    | "none" -> none ()
    | "floor" -> floor ()
    | _ -> failwith "no such part"
  end;
  let most = Atomic.get peak in
  Printf.printf "%s: at most %d MB\n%!" kind (most / mb);
  if limit > 0 && most > limit / 20 * 23 then miss "more than the limit";
  if limit < 0 && most < -limit then miss "less than without a limit"

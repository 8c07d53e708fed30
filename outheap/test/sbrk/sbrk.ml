(* SPDX-License-Identifier: MIT *)
(* The variant over one area that grows at its end: what of the runtime and of the libraries needs memory of its own.
     sbrk NAME      prints `ok NAME`, or ends with an exception
     sbrk --list *)

let expect what condition = if not condition then failwith what
let live v = ignore (Sys.opaque_identity v)
let megabyte = 1 lsl 20

let statm field =
  In_channel.with_open_bin "/proc/self/statm" (fun c ->
    let words = String.split_on_char ' ' (Option.get (In_channel.input_line c)) in
    4096 * int_of_string (List.nth words field))
let size () = statm 0 and resident () = statm 1

let refusals () = (Outheap.statistics ()).refused_memory

(* Large and small blocks, kept and dropped, with collections between; contents are checked. *)
let growth () =
  let state = Random.State.make [| 7 |] in
  let kept = Array.make 200 [||] in
  for round = 1 to 4000 do
    let i = Random.State.int state 200 in
    Array.iteri (fun j s -> expect "contents" (String.length s = 8 + (j land 7))) kept.(i);
    let n = if round mod 50 = 0 then 100_000 else Random.State.int state 500 in
    kept.(i) <- Array.init n (fun j -> String.make (8 + (j land 7)) 'x');
    if round mod 1000 = 0 then Gc.compact ()
  done;
  live kept

(* Minor heaps of other sizes. *)
let minor_heaps () =
  List.iter (fun words ->
    Gc.set { (Gc.get ()) with minor_heap_size = words };
    live (List.init 100_000 (fun i -> (i, string_of_int i))))
    [ 4096; 1 lsl 20; 32768; 1 lsl 22; 262144 ]

(* The stacks of fibers and deep recursion; see fibers.ml. *)
let stacks () = expect "stacks" (Fibers.run () = 1_000_000)

(* Static data, Bigarray, channels, marshalling, finalisers, weak tables, exceptions with backtraces, signals. *)
let libraries () =
  Printexc.record_backtrace true;
  let a = Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout megabyte in
  Bigarray.Array1.fill a 1.5;
  expect "Bigarray" (a.{megabyte - 1} = 1.5);
  let data = Array.init 300_000 (fun i -> (i, float i, string_of_int i)) in
  let name = Filename.temp_file "sbrk" "" in
  Out_channel.with_open_bin name (fun c -> Marshal.to_channel c data []);
  let again : (int * float * string) array = In_channel.with_open_bin name (fun c -> Marshal.from_channel c) in
  Sys.remove name;
  expect "Marshal" (again = data);
  let finished = ref 0 in
  for i = 1 to 1000 do Gc.finalise (fun _ -> incr finished) (ref i) done;
  let weak = Weak.create 100_000 in
  Array.iteri (fun i x -> if i < 100_000 then Weak.set weak i (Some x)) data;
  Gc.full_major ();
  expect "finalisers" (!finished >= 999);
  expect "weak" (Weak.check weak 99_999);
  (try failwith "expected" with Failure _ -> expect "backtrace" (Printexc.get_backtrace () <> ""));
  let rung = ref false in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> rung := true));
  Unix.kill (Unix.getpid ()) Sys.sigusr1;
  let rec wait n = if n > 0 && not !rung then (live (ref n); wait (n - 1)) in
  wait 10_000_000;
  expect "signal" !rung;
  live data

(* Free memory at the end of the area goes back; addresses stay. *)
let gives_back () =
  if (5, 0) <= (Sys.ocaml_release.major, Sys.ocaml_release.minor)
     && (Sys.ocaml_release.major, Sys.ocaml_release.minor) < (5, 2) then (
    print_endline "skipped: this version has no compaction";
    exit 77);
  for _ = 1 to 3 do live (resident ()) done; (* so that malloc has room for the channels *)
  Gc.full_major ();
  let large = Sys.opaque_identity (ref (Bytes.make (200 * megabyte) 'x')) in
  let full = resident () and before = size () in
  expect "it is there" (full > 200 * megabyte);
  large := Bytes.empty;
  Gc.compact ();
  expect "the end goes back" (resident () < full - 150 * megabyte);
  expect "the addresses stay" (size () >= before - megabyte);
  large := Bytes.make (200 * megabyte) 'y';
  expect "they are used again" (size () < before + 20 * megabyte);
  expect "contents" (Bytes.get !large 123_456_789 = 'y')

(* Under a limit (`ulimit -v`): an exception, a counter, and the program goes on. *)
let refused () =
  let before = refusals () in
  let rec fill l = match Bytes.make (32 * megabyte) 'x' with b -> fill (b :: l) | exception Out_of_memory -> l in
  let all = fill [] in
  expect "some were had" (List.length all > 1);
  expect "it is counted" (refusals () > before);
  List.iter (fun b -> expect "contents" (Bytes.get b 33_000_000 = 'x')) all;
  live all;
  Gc.full_major ();
  live (Bytes.make (32 * megabyte) 'z');
  live (List.init 100_000 string_of_int)

(* Once there is a thread the area does not grow: sbrk is for programs with one. What is free serves. *)
let beside_a_thread () =
  live (Bytes.make (64 * megabyte) 'x');
  Gc.full_major ();
  let before = refusals () and lock = Mutex.create () in
  Mutex.lock lock;
  let other = Thread.create (fun () -> Mutex.lock lock) () in
  (match Bytes.make (256 * megabyte) 'x' with
  | _ -> failwith "the area has grown"
  | exception Out_of_memory -> expect "it is counted" (refusals () > before));
  live (Bytes.make (32 * megabyte) 'y');
  Mutex.unlock lock;
  Thread.join other

(* What cannot be: each of these is the end of the process. *)
let maps () =
  let f = Unix.openfile Sys.executable_name [ Unix.O_RDONLY ] 0 in
  live (Unix.map_file f Bigarray.char Bigarray.c_layout false [| 4096 |])
let threads () = Thread.join (Thread.create ignore ())

let usual = [ "growth", growth; "minor-heaps", minor_heaps; "stacks", stacks; "libraries", libraries;
              "gives-back", gives_back ]
let others = [ "refused", refused; "beside-a-thread", beside_a_thread; "maps", maps; "threads", threads ]

let () =
  match Sys.argv.(1) with
  | "--list" -> List.iter (fun (name, _) -> print_endline name) usual
  | name ->
    (List.assoc name (usual @ others)) ();
    print_endline ("ok " ^ name)

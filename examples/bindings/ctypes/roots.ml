(* Measures Ctypes.Root; prints lines `NAME FIGURE UNIT`.   roots.exe [ROOTS]   (a million, unless it says otherwise)

   The longest pause is the longest time between two looks at the clock of a loop that only allocates: collector and
   system can stop it there, and nothing else. *)
open Ctypes

let n = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 1_000_000
let now = Unix.gettimeofday
let say name figure unit = Printf.printf "%s %.4g %s\n%!" name figure unit
let fresh i = Sys.opaque_identity (ref i)

let each name f =
  let begin_ = now () in
  for i = 0 to n - 1 do f i done;
  say name ((now () -. begin_) *. 1e9 /. float_of_int n) "ns"

let resident () =
  let file = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line file) "%d %d" (fun _ resident -> resident) in
  close_in file; float_of_int pages *. 4096.

(* Each minor collection with few survivors, beside the live roots. *)
let minor_pauses () =
  let all = Array.init 300 (fun _ ->
    for i = 1 to 10_000 do ignore (fresh i) done;
    let begin_ = now () in
    Gc.minor (); (now () -. begin_) *. 1e6) in
  Array.sort compare all;
  say "minor-median" all.(150) "us"; say "minor-longest" all.(299) "us"

(* Allocates as a program does, with survivors, until some major cycles have ended. *)
let longest_pause cycles =
  let ring = Array.make 50_000 [] and cycle () = (Gc.quick_stat ()).major_collections in
  let last_cycle = cycle () + cycles and i = ref 0 and longest = ref 0. and last = ref (now ()) in
  let begin_ = !last in
  while cycle () < last_cycle && now () -. begin_ < 20. do
    last := now ();
    for _ = 1 to 1000 do
      incr i;
      ring.(!i mod 50_000) <- [ !i; !i; !i ];
      if !i land 15 = 0 then begin
        let t = now () in
        if t -. !last > !longest then longest := t -. !last;
        last := t
      end
    done
  done;
  say "longest-pause" (!longest *. 1e3) "ms"

let function_pointers () =
  let module F = (val Foreign.dynamic_funptr (int @-> returning int)) in
  let count = max 1 (n / 50) in
  let begin_ = now () in
  let all = Array.init count (fun i -> F.of_fun (fun x -> x + i)) in
  let made = now () in
  Array.iter F.free all;
  let freed = now () in
  let per a b = (b -. a) *. 1e9 /. float_of_int count in
  say "funptr-create" (per begin_ made) "ns"; say "funptr-free" (per made freed) "ns"

let () =
  let roots = Array.make n null in
  let values = Array.init n fresh in
  Gc.full_major ();
  let memory = resident () in
  each "create" (fun i -> roots.(i) <- Root.create values.(i));
  Gc.full_major ();
  say "memory" ((resident () -. memory) /. float_of_int n) "B";
  let sum = ref 0 in
  each "get" (fun i -> sum := !sum + !(Root.get roots.(i) : int ref));
  assert (!sum = n * (n - 1) / 2);
  each "set-old" (fun i -> Root.set roots.(i) values.(n - 1 - i));
  each "set-young" (fun i -> Root.set roots.(i) (fresh i));
  Gc.full_major ();
  minor_pauses ();
  longest_pause 5;
  let begin_ = now () in
  Gc.full_major ();
  say "full-major" ((now () -. begin_) *. 1e3) "ms";
  (* in an order that has nothing to do with that of creation *)
  let step = 611_953 in
  each "release" (fun i -> Root.release roots.(i * step mod n));
  each "create-release" (fun i -> Root.release (Root.create (fresh i)));
  function_pointers ()

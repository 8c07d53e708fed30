(* Correct code of every kind that the runtime has: no report may come. *)
external inside : string -> bool -> int ref = "b_inside"
external row : unit -> int = "b_row"
external results : (int -> string) -> bool -> int = "b_results"

type _ Effect.t += Yield : int -> int Effect.t

let stub i = assert (!(inside (string_of_int i) true) >= 48)
let work n = for i = 1 to n do stub i; ignore (results string_of_int true) done

let fibers () =
  let open Effect.Deep in
  let f i = work 3; Effect.perform (Yield i) in
  let handler = { effc = (fun (type a) (e : a Effect.t) -> match e with
    | Yield i -> Some (fun (k : (a, _) continuation) -> work 2; continue k (i + 1))
    | _ -> None) } in
  for i = 1 to 50 do assert (try_with f i handler = i + 1) done

let ephemerons () =
  let keys = Array.init 30 (fun i -> ref i) in
  let all = Array.map (fun k -> Ephemeron.K1.make k (string_of_int !k)) keys in
  let seen = ref 0 in
  for i = 1 to 30 do Gc.finalise (fun _ -> stub 1; incr seen) (ref i) done;
  work 100;
  Array.iteri (fun i e -> assert (Ephemeron.K1.query e keys.(i) = Some (string_of_int i))) all

let marshal () =
  let tree = List.init 200 (fun i -> (string_of_int i, [| float_of_int i |], lazy (stub i))) in
  let copy = List.map (fun (s, a, _) -> (s, a)) tree in
  for _ = 1 to 10 do assert (Marshal.from_string (Marshal.to_string copy []) 0 = copy) done;
  List.iter (fun (_, _, l) -> Lazy.force l) tree

let signals () =
  let ticks = ref 0 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> incr ticks; stub 2));
  let stop () = ignore (Unix.setitimer Unix.ITIMER_REAL { it_interval = 0.; it_value = 0. }) in
  ignore (Unix.setitimer Unix.ITIMER_REAL { it_interval = 0.002; it_value = 0.002 });
  while !ticks < 3 do work 20 done;
  stop ();
  Sys.set_signal Sys.sigalrm Sys.Signal_default

let memprof () =
  let open Gc.Memprof in
  let t = start ~sampling_rate:0.05 { null_tracker with alloc_minor = (fun _ -> stub 3; Some ()) } in
  work 100;
  stop ();
  discard t

let threads () =
  let all = List.init 3 (fun _ -> Thread.create (fun () -> work 60; Thread.yield (); work 60) ()) in
  work 60;
  List.iter Thread.join all

let domains () =
  let all = List.init 2 (fun _ -> Domain.spawn (fun () -> work 40; Gc.minor (); work 40)) in
  work 40;
  List.iter Domain.join all

let forks () =
  match Unix.fork () with
  | 0 -> work 100; Unix._exit 7
  | child -> assert (snd (Unix.waitpid [] child) = Unix.WEXITED 7)

let sizes () =
  List.iter (fun words -> Gc.set { (Gc.get ()) with minor_heap_size = words }; work 50) [ 4096; 65536; 1048576; 262144 ]

let large () =
  let all = Array.init 20 (fun i -> Array.make (200 + (i * 300)) (string_of_int i)) in
  work 200;
  Array.iteri (fun i a -> assert (a.(199) = string_of_int i)) all;
  let texts = ref [] in
  for i = 1 to 100 do texts := Bytes.make (i * 1000) 'a' :: (if i mod 10 = 0 then [] else !texts); work 5 done;
  let weak = Weak.create 1000 and numbers = Array.init 500 string_of_int in
  Weak.fill weak 0 1000 (Some numbers);
  work 100;
  assert (Option.get (Weak.get weak 999) == numbers && numbers.(499) = "499");
  let b = Bigarray.(Array1.create float64 c_layout 1000) in
  work 20;
  b.{999} <- 1.

let rows () = for _ = 1 to 50 do assert (row () mod 2032 = 0) done

let () =
  let parts =
    [ ("forks", forks); ("fibers", fibers); ("ephemerons", ephemerons); ("marshal", marshal); ("signals", signals);
      ("memprof", memprof); ("threads", threads); ("sizes", sizes); ("large", large); ("rows", rows);
      ("domains", domains) ] in
  let wanted = List.tl (Array.to_list Sys.argv) in
  List.iter (fun (name, part) -> if wanted = [] || List.mem name wanted then part ()) parts;
  Gc.compact ();
  print_endline "nothing noticed"

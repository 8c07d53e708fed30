(* Measures pyml's closures and capsules; prints lines `NAME FIGURE UNIT`.   closures.exe [CLOSURES]   (100,000)

   A list of Python's holds the closures, as those of event handlers are held: their roots are all that OCaml knows of
   them. The longest pause is the longest time between two looks at the clock of a loop that only allocates. *)
let n = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 100_000
let now = Unix.gettimeofday
let say name figure unit = Printf.printf "%s %.4g %s\n%!" name figure unit

let each name f =
  let begin_ = now () in
  for i = 0 to n - 1 do f i done;
  say name ((now () -. begin_) *. 1e9 /. float_of_int n) "ns"

let once name f =
  let begin_ = now () in
  let result = f () in
  say name ((now () -. begin_) *. 1e9 /. float_of_int n) "ns";
  result

let resident () =
  let file = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line file) "%d %d" (fun _ resident -> resident) in
  close_in file; float_of_int pages *. 4096.

(* Each minor collection with few survivors, beside the live closures. *)
let minor_pauses () =
  let all = Array.init 300 (fun _ ->
    for i = 1 to 10_000 do ignore (Sys.opaque_identity (ref i)) done;
    let begin_ = now () in
    Gc.minor (); (now () -. begin_) *. 1e6) in
  Array.sort compare all;
  say "minor-median" all.(150) "us"; say "minor-longest" all.(299) "us"

(* Allocates as a program does, with survivors, until some major cycles have ended. *)
let allocating cycles =
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
  say "longest-pause" (!longest *. 1e3) "ms";
  say "allocate" ((now () -. begin_) *. 1e9 /. float_of_int !i) "ns"

let python = {|
def call_all():
    total = 0
    for f in held:
        total += f()
    return total

def drop_all(step):
    n = len(held)
    for i in range(n):
        held[i * step % n] = None
|}

let () =
  Py.initialize ~interpreter:"/usr/bin/python3" ();
  assert (Py.Run.simple_string python);
  let main = Py.Module.main () in
  let held = Py.List.init n (fun _ -> Py.none) in
  Py.Module.set main "held" held;
  let call_all = Py.Module.get_function main "call_all" and drop_all = Py.Module.get_function main "drop_all" in
  let closure i = Py.Callable.of_function (fun _ -> Py.Long.of_int i) in
  let right total = assert (Py.Long.to_int total = n * (n - 1) / 2) in
  Gc.full_major ();
  let memory = resident () in
  each "closure-create" (fun i -> Py.List.set held i (closure i));
  Gc.full_major ();
  say "closure-memory" ((resident () -. memory) /. float_of_int n) "B";
  right (once "closure-call" (fun () -> call_all [||]));
  Gc.full_major ();
  minor_pauses ();
  allocating 5;
  let begin_ = now () in
  Gc.full_major ();
  say "full-major" ((now () -. begin_) *. 1e3) "ms";
  (* in an order that has nothing to do with that of creation *)
  ignore (once "closure-drop" (fun () -> drop_all [| Py.Long.of_int 611_953 |]));
  each "closure-create-drop" (fun i -> Py.List.set held 0 (closure i));
  let wrap, unwrap = Py.Capsule.make "measured" in
  each "capsule-wrap" (fun i -> Py.List.set held i (wrap (ref i)));
  let sum = ref 0 in
  each "capsule-unwrap" (fun i -> sum := !sum + !(unwrap (Py.List.get held i)));
  assert (!sum = n * (n - 1) / 2);
  ignore (once "capsule-drop" (fun () -> drop_all [| Py.Long.of_int 611_953 |]));
  Py.finalize ()

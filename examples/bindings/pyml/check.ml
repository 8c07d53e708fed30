(* What users of pyml's closures and capsules rely on; each line that it prints has been found to be so. *)
let check what ok = if ok then print_endline what else (prerr_endline ("not so: " ^ what); exit 1)
let n = 5_000

let python = {|
import threading

def call_all(argument):
    return sum(f(argument) for f in held)

def call_with_keyword(f):
    return f(1, key=41)

def drop_on_threads():
    def drop(begin):
        for i in range(begin, len(held), 4):
            held[i] = None
    threads = [threading.Thread(target=drop, args=(k,)) for k in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def cycle(f):
    me = [f]
    me.append(me)
|}

let collected = ref 0
let counted i =
  let v = Sys.opaque_identity (ref i) in
  Gc.finalise_last (fun () -> incr collected) v; v

let collect () = for _ = 1 to 4 do Gc.full_major () done

let closures main held =
  let call_all () = Py.Long.to_int (Py.Module.get_function main "call_all" [| Py.Long.of_int 1 |]) in
  for i = 0 to n - 1 do
    let v = counted i in
    Py.List.set held i (Py.Callable.of_function (fun arguments -> Py.Long.of_int (!v + Py.Long.to_int arguments.(0))))
  done;
  let sum = n * (n + 1) / 2 in
  Gc.minor ();
  check "closures are called with their values after a minor collection" (call_all () = sum);
  Gc.compact ();
  check "and after a compaction" (call_all () = sum && !collected = 0);
  let keyword = Py.Callable.of_function_with_keywords (fun arguments keywords ->
    Gc.compact ();
    Py.Long.of_int (Py.Long.to_int arguments.(0) + Py.Long.to_int (Py.Dict.find_string keywords "key"))) in
  check "closures take keywords, and compact the heap themselves"
    (Py.Long.to_int (Py.Module.get_function main "call_with_keyword" [| keyword |]) = 42);
  ignore (Py.Module.get_function main "drop_on_threads" [||]);
  collect ();
  check "values of closures that threads of Python drop are collected" (!collected = n)

let finalisers () =
  collected := 0;
  for i = 1 to n do
    let v = counted i in
    ignore (Sys.opaque_identity (Py.Callable.of_function (fun _ -> Py.Long.of_int !v)));
    ignore (Sys.opaque_identity (Py.Capsule.unsafe_wrap_value (counted i)))
  done;
  collect ();
  check "closures and capsules that the collector drops are ended, and their values collected" (!collected = 2 * n)

let capsules held =
  collected := 0;
  let wrap, unwrap = Py.Capsule.make "checked" in
  for i = 0 to n - 1 do Py.List.set held i (wrap (counted i)) done;
  Gc.compact ();
  let sum = ref 0 in
  for i = 0 to n - 1 do sum := !sum + !(unwrap (Py.List.get held i)) done;
  check "capsules hold their values over a compaction" (!sum = n * (n - 1) / 2 && !collected = 0);
  let same = Sys.opaque_identity (ref 0) in
  let capsule = wrap same in
  Gc.full_major ();
  check "a capsule gives back the same value" (unwrap capsule == same);
  let number, of_number = Py.Capsule.unsafe_wrap_value 17, Py.Capsule.unsafe_unwrap_value in
  Gc.full_major ();
  check "integers are held as well" (of_number number = 17);
  for i = 0 to n - 1 do Py.List.set held i Py.none done;
  collect ();
  check "values of dropped capsules are collected" (!collected = n)

(* Python's own collector ends the capsules in a cycle; a closure runs it. *)
let python_collector main =
  collected := 0;
  for i = 1 to n do
    let v = counted i in
    ignore (Py.Module.get_function main "cycle" [| Py.Callable.of_function (fun _ -> Py.Long.of_int !v) |])
  done;
  collect ();
  let collect_python = Py.Module.get_function (Py.import "gc") "collect" in
  let run = Py.Callable.of_function (fun _ -> Gc.minor (); ignore (collect_python [||]); Gc.minor (); Py.none) in
  ignore (Py.Callable.to_function run [||]);
  collect ();
  check "Python's collector ends closures in cycles, in the middle of a call" (!collected = n)

let () =
  Py.initialize ~interpreter:"/usr/bin/python3" ();
  assert (Py.Run.simple_string python);
  let main = Py.Module.main () in
  let held = Py.List.init n (fun _ -> Py.none) in
  Py.Module.set main "held" held;
  closures main held; finalisers (); capsules held; python_collector main;
  Py.finalize ()

(* What users of Ctypes.Root and of function pointers rely on; each line that it prints has been found to be so. *)
open Ctypes

let check what ok = if ok then print_endline what else (prerr_endline ("not so: " ^ what); exit 1)
let fresh i = Sys.opaque_identity (ref i)

(* The address stays the same when the root is set, however old root and value are, and when the heap moves. *)
let address_stays () =
  let roots = Array.init 10_000 (fun i -> Root.create (fresh i)) in
  let before = Array.map raw_address_of_ptr roots in
  let copies = Array.map ptr_of_raw_address before in
  let all_are f = Array.for_all Fun.id (Array.mapi (fun i r -> !(Root.get r : int ref) = f i) copies) in
  check "roots hold their values over a compaction" (Gc.compact (); all_are Fun.id);
  Array.iteri (fun i r -> Root.set r (fresh (-i))) roots;
  check "young values set in old roots are read through copies of the address" (all_are (fun i -> -i));
  Gc.minor ();
  check "and after a minor collection" (all_are (fun i -> -i));
  Gc.full_major ();
  Array.iteri (fun i r -> Root.set copies.(i) (Root.get r : int ref)) roots;
  Gc.compact ();
  check "and after a compaction" (all_are (fun i -> -i));
  check "addresses are unchanged" (Array.map raw_address_of_ptr roots = before);
  Array.iter Root.release roots

let immediates () =
  let r = Root.create 17 in
  Gc.minor ();
  let was = (Root.get r : int) in
  Root.set r "a string"; Gc.full_major ();
  let then_ = (Root.get r : string) in
  Root.set r 18; Gc.full_major ();
  check "integers are held as well" (was = 17 && then_ = "a string" && (Root.get r : int) = 18);
  Root.release r

(* Roots are released in finalisers of both kinds, which the collector calls, and their values are collected then. *)
let finalisers () =
  let n = 10_000 and released = ref 0 and collected = ref 0 in
  let owner finalise i =
    let v = fresh i in
    Gc.finalise_last (fun () -> incr collected) v;
    let root = Root.create v in
    let t = Sys.opaque_identity (ref root) in
    finalise t (fun () -> incr released; Root.release root) in
  for i = 1 to n do
    owner (fun t f -> Gc.finalise (fun _ -> f ()) t) i;
    owner (fun t f -> Gc.finalise_last f t) i
  done;
  for _ = 1 to 4 do Gc.full_major () done;
  check "roots are released in finalisers" (!released = 2 * n);
  check "and then their values are collected" (!collected = 2 * n)

let threads () =
  let worker k () =
    for i = 1 to 20_000 do
      let r = Root.create (fresh (i * k)) in
      if i mod 1000 = 0 then (Gc.minor (); Thread.yield ());
      Root.set r (fresh (i + k));
      assert (!(Root.get r : int ref) = i + k);
      Root.release r
    done in
  List.iter Thread.join (List.init 4 (fun k -> Thread.create (worker k) ()));
  check "threads create, set and release" true

let callbacks () =
  let module F = (val Foreign.dynamic_funptr (int @-> returning int)) in
  let call = coerce F.t (static_funptr (int @-> returning int)) in
  let pointers = List.init 1000 (fun i -> F.of_fun (fun x -> x + i)) in
  Gc.compact ();
  let answers = List.map (fun p -> coerce (static_funptr (int @-> returning int))
    (Foreign.funptr (int @-> returning int)) (call p) 5) pointers in
  check "function pointers call their closures after a compaction" (answers = List.init 1000 (fun i -> i + 5));
  List.iter F.free pointers

let () = address_stays (); immediates (); finalisers (); threads (); callbacks ()

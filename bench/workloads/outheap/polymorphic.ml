(* SPDX-License-Identifier: MIT *)
(* Operations that read headers, on small values in the program's static data or in the heap.
   polymorphic static|heap MILLISECONDS *)
type shape = Point of int * int | Named of string * float | Group of shape list | Nothing

let static = Group [ Point (1, 2); Named ("circle", 1.5); Group [ Point (3, 4); Nothing; Named ("square", 2.5) ];
                     Point (5, 6); Group []; Named ("a longer name than the others", 3.5) ]
let static_strings = [| "alpha"; "beta"; "gamma"; "delta"; "epsilon"; "zeta"; "eta"; "theta" |]

let copy v = Sys.opaque_identity (Marshal.from_string (Marshal.to_string v []) 0)
let heap = Bench.argument 1 ~default:"static" = "heap"
let seconds = float (Bench.int_argument 2 ~default:400) /. 1000.
let value = if heap then copy static else Sys.opaque_identity static
let other = copy static
let strings = if heap then copy static_strings else Sys.opaque_identity static_strings

let measure name f =
  let best = ref infinity in
  for _ = 1 to 5 do
    best := min !best (Bench.ns_per_operation ~seconds:(seconds /. 5.) ~chunk:1000 f)
  done;
  Bench.metric name !best "ns"

let () =
  Gc.full_major ();
  measure "compare" (fun n ->
    for _ = 1 to n do
      ignore (Sys.opaque_identity (compare value other))
    done);
  measure "compare strings" (fun n ->
    for i = 1 to n do
      ignore (Sys.opaque_identity (compare (Obj.repr strings.(i land 7)) (Obj.repr strings.((i + 1) land 7))))
    done);
  measure "hash" (fun n ->
    for _ = 1 to n do
      ignore (Sys.opaque_identity (Hashtbl.hash value))
    done);
  measure "hash strings" (fun n ->
    for i = 1 to n do
      ignore (Sys.opaque_identity (Hashtbl.hash strings.(i land 7)))
    done);
  measure "Obj.tag" (fun n ->
    for i = 1 to n do
      ignore (Sys.opaque_identity (Obj.tag (Obj.repr strings.(i land 7))))
    done);
  let weak = Weak.create 8 in
  Array.iteri (fun i s -> Weak.set weak i (Some s)) strings;
  measure "Weak.set" (fun n ->
    for i = 1 to n do
      Weak.set weak (i land 7) (Some strings.(i land 7))
    done);
  measure "Weak.get" (fun n ->
    for i = 1 to n do
      ignore (Sys.opaque_identity (Weak.get weak (i land 7)))
    done);
  let buffer = Bytes.create 1000 in
  measure "Marshal" (fun n ->
    for _ = 1 to n do
      ignore (Marshal.to_buffer buffer 0 1000 value [])
    done);
  measure "Array.make" (fun n ->
    for i = 1 to n do
      ignore (Sys.opaque_identity (Array.make 4 strings.(i land 7)))
    done)

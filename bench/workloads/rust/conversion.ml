(* SPDX-License-Identifier: MIT *)
(* conversion: lists, arrays and records between OCaml and the vectors of the foreign language, in both directions.
   [read] converts to a vector, which replaces the one kept before; [make] converts what is kept. Arguments:
   time|count, elements, seconds per measurement. *)

type record = { id : int; weight : float; name : string }

external read_list_int : int list -> int = "read_list_int"
external read_list_float : float list -> int = "read_list_float"
external read_list_string : string list -> int = "read_list_string"
external read_array_int : int array -> int = "read_array_int"
external read_array_float : float array -> int = "read_array_float"
external read_array_string : string array -> int = "read_array_string"
external read_records : record array -> int = "read_records"
external make_list_int : unit -> int list = "make_list_int"
external make_list_float : unit -> float list = "make_list_float"
external make_list_string : unit -> string list = "make_list_string"
external make_array_int : unit -> int array = "make_array_int"
external make_array_float : unit -> float array = "make_array_float"
external make_array_string : unit -> string array = "make_array_string"
external make_records : unit -> record array = "make_records"

type kind = Kind : { name : string; data : int -> 'a; read : 'a -> int; make : unit -> 'a } -> kind

let int i = (i * 7919) - 1_000_000
let float i = (Stdlib.float i *. 1.5) -. 10.
let string i = String.make (i mod 23) 'x' ^ string_of_int i
let record i = { id = int i; weight = float i; name = string i }

let kinds =
  [
    Kind { name = "int list"; data = (fun n -> List.init n int); read = read_list_int; make = make_list_int };
    Kind { name = "float list"; data = (fun n -> List.init n float); read = read_list_float; make = make_list_float };
    Kind
      { name = "string list"; data = (fun n -> List.init n string); read = read_list_string; make = make_list_string };
    Kind { name = "int array"; data = (fun n -> Array.init n int); read = read_array_int; make = make_array_int };
    Kind
      { name = "float array"; data = (fun n -> Array.init n float); read = read_array_float; make = make_array_float };
    Kind
      {
        name = "string array";
        data = (fun n -> Array.init n string);
        read = read_array_string;
        make = make_array_string;
      };
    Kind { name = "records"; data = (fun n -> Array.init n record); read = read_records; make = make_records };
  ]

(* What comes back is a copy of what was given, of every size; also when the heap is collected in between. *)
let check (Kind { name; data; read; make }) =
  List.iter
    (fun n ->
      let x = data n in
      if read x <> n then Bench.fail "%s: not %d elements" name n;
      Gc.compact ();
      let y = make () in
      Gc.minor ();
      if compare x y <> 0 then Bench.fail "%s of %d elements: another value came back" name n;
      if n > 0 && Obj.repr x == Obj.repr y then Bench.fail "%s: not a copy" name)
    [ 0; 1; 2; 1000; 70_000; 3 ]

let repeat f n = for _ = 1 to n do ignore (Sys.opaque_identity (f ())) done

let () =
  let elements = Bench.int_argument 2 ~default:100_000 in
  let seconds = float_of_string (Bench.argument 3 ~default:"0.03") in
  List.iter check kinds;
  List.iter
    (fun (Kind { name; data; read; make }) ->
      let x = data elements in
      let measure direction f =
        Gc.full_major ();
        Bench.operation ~mode:(Bench.argument 1 ~default:"time") ~seconds ~chunk:1 ~count:2 ~per:elements
          (Printf.sprintf "%s %s" name direction) (repeat f)
      in
      measure "from OCaml" (fun () -> read x);
      measure "to OCaml" make;
      if compare x (make ()) <> 0 then Bench.fail "%s: another value came back" name)
    kinds

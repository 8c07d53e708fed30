(* SPDX-License-Identifier: MIT *)
(* The functions of Alcotest that the test program of ocaml-interop calls. *)

exception Check of string

let fail s = raise (Check s)

type 'a testable = { equal : 'a -> 'a -> bool }

let eq = { equal = ( = ) }
let int : int testable = eq
let int32 : int32 testable = eq
let int64 : int64 testable = eq
let string : string testable = eq
let bytes : bytes testable = eq
let float eps = { equal = (fun a b -> Float.abs (a -. b) <= eps) }
let pass = { equal = (fun _ _ -> true) }
let list t = { equal = (fun a b -> List.length a = List.length b && List.for_all2 t.equal a b) }
let option t = { equal = (fun a b -> Option.equal t.equal a b) }
let pair a b = { equal = (fun (x, y) (x', y') -> a.equal x x' && b.equal y y') }
let result ok error = { equal = (fun a b -> Result.equal ~ok:ok.equal ~error:error.equal a b) }
let of_pp _ = { equal = ( = ) }
let check t what expected got = if not (t.equal expected got) then fail ("wrong value: " ^ what)

let check_raises what expected f =
  match f () with
  | _ -> fail ("no exception: " ^ what)
  | exception e -> if e <> expected then fail ("another exception: " ^ what)

let test_case name (_ : [ `Quick | `Slow ]) f = (name, f)

let run _ groups =
  let failed = ref 0 in
  let one (name, f) =
    match f () with
    | () -> Printf.printf "test %s ... ok\n%!" name
    | exception e ->
      incr failed;
      Printf.printf "test %s ... FAILED (%s)\n%!" name (match e with Check s -> s | e -> Printexc.to_string e)
  in
  List.iter (fun (_, cases) -> List.iter one cases) groups;
  if !failed > 0 then exit 1

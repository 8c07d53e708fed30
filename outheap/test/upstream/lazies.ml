(* SPDX-License-Identifier: MIT *)
(* A fault of the stock runtime (docs/internals/upstream.md):
   ocamlfind ocamlopt lazies.ml -o lazies; ./lazies 300 *)
let text i = "value " ^ string_of_int i

let body rounds () =
  for round = 1 to rounds do
    let all = Array.init 1000 (fun i -> let s = text i in lazy (s ^ "!")) in
    let weak = Weak.create 1000 in
    Array.iteri (fun i l -> Weak.set weak i (Some l)) all;
    Gc.full_major ();
    Array.iteri (fun i l ->
      ignore (Lazy.force l);
      if i mod 10 = 9 then ignore (Gc.major_slice 1000)) all;
    Gc.minor ();
    Array.iteri (fun i l -> match Weak.get weak i with
      | Some l when Lazy.force l <> text i ^ "!" -> Printf.printf "round %d: lazy %d\n" round i; exit 1
      | _ -> ()) all
  done

let () = body (int_of_string Sys.argv.(1)) ()

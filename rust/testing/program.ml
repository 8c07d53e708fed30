(* SPDX-License-Identifier: MIT *)
(* What the tests of ocaml-boxroot find in OCaml. src/lib.rs gives each name its type. *)

external rust : int -> int = "testing_rust"
external custom : int -> 'custom = "testing_custom"

exception Custom of int * string * int list

let () =
  let r = Callback.register in
  r "identity" (fun x -> x);
  r "succ" (fun x -> x + 1);
  r "half" (fun x -> if x > 1.0 then x /. 2.0 else x);
  r "greet" (fun name n -> Printf.sprintf "%s %d" name n);
  r "add3" (fun a b c -> a + b + c);
  r "add5" (fun a b c d e -> a + (10 * b) + (100 * c) + (1000 * d) + (10000 * e));
  r "concat8" (fun a b c d e f g h -> String.concat "" [ a; b; c; d; e; f; g; h ]);
  r "raise_not_found" (fun () -> raise Not_found);
  r "raise_failure" (fun s -> failwith s);
  r "raise_custom" (fun () -> raise (Custom (3, "x", [ 1 ])));
  r "raise_assert" (fun () -> assert (Sys.opaque_identity false));
  r "reraise" (fun (e : exn) -> raise e);
  r "same_exn" (fun f e -> match f () with () -> false | exception e' -> e == e');
  r "deep" (let rec deep n = if n = 0 then 0 else 1 + deep (n - 1) in deep);
  r "call_rust" (fun n -> rust n);
  r "catch_rust" (fun n -> try rust n with _ -> -1);
  r "custom" (fun n -> custom n);
  r "compare" (fun a b -> compare a b);
  r "garbage" (fun n -> let l = ref [] in for i = 1 to n do l := string_of_int i :: !l done; List.length !l);
  r "list" (fun n -> List.init n string_of_int);
  r "is_list" (fun l n -> l = List.init n (fun i -> (i, string_of_int i)));
  r "strings" (fun n -> Array.init n string_of_int);
  r "floats" (fun n -> Array.init n float_of_int);
  r "lazy" (fun n -> lazy (n + 1));
  r "force" (fun l -> Lazy.force l);
  r "atomic" (fun n -> Atomic.make n);
  r "rust_at_exit" (fun n -> at_exit (fun () -> ignore (rust n)));
  r "on_signal" (fun n -> Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> ignore (rust n))));
  r "raise_on_signal" (fun () -> Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> failwith "signal")));
  r "signal_me" (fun () -> Unix.kill (Unix.getpid ()) Sys.sigusr1);
  r "finalise" (fun n -> let x = ref n in Gc.finalise (fun _ -> ignore (rust n)) x);
  r "thread" (fun n -> let t = Thread.create rust n in Thread.join t);
  r "stepper" (fun n x -> if x >= n then x else x +. 1.);
  (* Not in OCaml 5.0 to 5.2. *)
  r "memprof" (fun rate ->
      let keep _ = Some () in
      let tracker =
        { Gc.Memprof.alloc_minor = keep; alloc_major = keep; promote = keep;
          dealloc_minor = ignore; dealloc_major = ignore }
      in
      try ignore (Gc.Memprof.start ~sampling_rate:rate tracker); true with Failure _ -> false);
  r "collect_on_a_thread" (fun n ->
      let work () = for i = 1 to n do ignore (Sys.opaque_identity (custom i)) done; Gc.full_major () in
      Thread.join (Thread.create work ()));
  r "stack_limit" (fun words -> Gc.set { (Gc.get ()) with Gc.stack_limit = words });
  r "keep" (let kept = ref (Obj.repr 0) in fun x -> kept := x)

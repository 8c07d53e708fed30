(* SPDX-License-Identifier: MIT *)
(* What the tests of ocaml-boxroot find in OCaml. src/lib.rs gives each name its type. *)

external rust : int -> int = "testing_rust"
external custom : int -> 'custom = "testing_custom"
external run_job : 'a -> unit = "ocaml_boxroot_run_job"
external in_blocking_section : int -> int = "testing_in_blocking_section"

exception Custom of int * string * int list
exception Printed of int
(* Another exception of that name. *)
module Other = struct exception Custom of int end

let () = Printexc.register_printer (function Printed n -> Some (Printf.sprintf "printed <%d>" n) | _ -> None)

(* Not tail calls. *)
let rec raise_below n = if n = 0 then raise (Printed 7) else 1 + raise_below (n - 1)

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
  r "raise_printed" (fun () -> raise (Printed 3));
  r "raise_below" raise_below;
  r "raise_notrace" (fun () -> raise_notrace (Printed 4));
  r "record_backtraces" Printexc.record_backtrace;
  r "out_of_memory" (fun () -> ignore (Bytes.create Sys.max_string_length));
  r "catch_break" Sys.catch_break;
  r "interrupt_me" (fun () -> Unix.kill (Unix.getpid ()) Sys.sigint);
  r "finalise_raising" (fun () -> Gc.finalise (fun _ -> raise (Printed 5)) (ref 0));
  r "reraise" (fun (e : exn) -> raise e);
  r "same_exn" (fun f e -> match f () with () -> false | exception e' -> e == e');
  r "deep" (let rec deep n = if n = 0 then 0 else 1 + deep (n - 1) in deep);
  r "call_rust" (fun n -> rust n);
  r "in_blocking_section" in_blocking_section;
  r "blocking_on_a_thread" (fun n ->
      let result = ref 0 in
      Thread.join (Thread.create (fun () -> result := in_blocking_section n) ());
      !result);
  r "catch_rust" (fun n -> try rust n with _ -> -1);
  r "catch_from_c" (fun () -> try ignore (Bytes.create (-1)); false with Invalid_argument _ -> true);
  r "custom" (fun n -> custom n);
  r "compare" (fun a b -> compare a b);
  r "garbage" (fun n -> let l = ref [] in for i = 1 to n do l := string_of_int i :: !l done; List.length !l);
  r "list" (fun n -> List.init n string_of_int);
  r "is_list" (fun l n -> l = List.init n (fun i -> (i, string_of_int i)));
  r "strings" (fun n -> Array.init n string_of_int);
  r "floats" (fun n -> Array.init n float_of_int);
  (* The second function of a closure with two. *)
  r "infix" (fun n ->
      let rec even i = i = n || not (odd (i + 1)) and odd i = i <> n && even (i + 1) in
      Obj.repr (if Sys.opaque_identity true then odd else even));
  r "forcing" (fun n -> let l = lazy (rust n) in Callback.register "the lazy" l; Lazy.force l);
  r "register" (fun (name : string) (v : Obj.t) -> Callback.register name v);
  r "run_job" run_job;
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
  (* Conversions. Sharing is not compared: what Rust makes is shared differently. *)
  let marshal x = Marshal.to_string x [ Marshal.No_sharing ] in
  r "marshal" marshal;
  r "unmarshal" (fun s -> Marshal.from_string s 0);
  r "equal" (fun a b -> compare a b = 0 && marshal a = marshal b);
  r "forced" (fun n -> let l = lazy (string_of_int n) in ignore (Lazy.force l); l);
  r "circle" (fun n -> let rec l = n :: n :: n :: l in l);
  r "sum" (List.fold_left ( + ) 0);
  r "sum_floats" (fun a -> let s = ref 0. in for i = 0 to Array.length a - 1 do s := !s +. a.(i) done; !s);
  r "int_list" (fun n -> List.init n Fun.id);
  let nan = Int64.float_of_bits 0x7FF8000000000000L in (* Rust's *)
  let pairs = [ (1, "one"); (-2, ""); (max_int, "eight by"); (min_int, "seven b") ] in
  r "s_numbers" (max_int, min_int, 0, -1, 'x', Uchar.of_int 0x1F600);
  r "s_boxed" (Int32.min_int, Int64.max_int, Nativeint.min_int);
  r "s_floats" [| 0.; -0.; nan; infinity; neg_infinity; min_float; 5e-324; 1.5 |];
  r "s_floatarray" (Float.Array.of_list [ 1.; nan ]);
  r "s_empty" ([||], [], "", Bytes.empty, None);
  r "s_strings" (List.init 20 (fun n -> String.init n (fun i -> Char.chr (255 - i))));
  r "s_bytes" (Bytes.of_string "bytes\000\255");
  r "s_sums" [ Some (Ok 1); Some (Error "no"); None ];
  r "s_nested" [ Some None; None; Some (Some ()) ];
  r "s_pairs" pairs;
  r "s_array" (Array.of_list pairs);
  r "s_tuple12" (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, true);
  r "s_matrix" [| [| 1.; 2. |]; [||]; [| 3. |] |];
  r "keep" (let kept = ref (Obj.repr 0) in fun x -> kept := x)

(* Measures handles with callbacks, of which the C library alone knows; prints lines `NAME FIGURE UNIT`.
   handles.exe [HANDLES]   (20,000) *)
let n = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 20_000
let now = Unix.gettimeofday
let say name figure unit = Printf.printf "%s %.4g %s\n%!" name figure unit

let each name f =
  let begin_ = now () in
  for i = 0 to n - 1 do f i done;
  say name ((now () -. begin_) *. 1e9 /. float_of_int n) "ns"

let () =
  let handles = Array.init n (fun _ -> NBD.create ()) and calls = ref 0 in
  Gc.full_major ();
  let set i = NBD.set_debug_callback handles.(i) (fun _ _ -> calls := !calls + i; 0) in
  each "callback-set" set;
  Gc.full_major ();
  each "callback-replace" set;
  let all = Array.init 300 (fun _ ->
    for i = 1 to 10_000 do ignore (Sys.opaque_identity (ref i)) done;
    let begin_ = now () in
    Gc.minor (); (now () -. begin_) *. 1e6) in
  Array.sort compare all;
  say "minor-median" all.(150) "us";
  let begin_ = now () in
  Gc.full_major ();
  say "full-major" ((now () -. begin_) *. 1e3) "ms";
  each "handle-close" (fun i -> NBD.close handles.(i * 611_953 mod n))

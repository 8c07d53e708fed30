(* What users of the binding rely on: callbacks and buffers that only the C library knows live as long as it needs them,
   and no longer. The server is nbdkit. *)
let right name ok = if ok then Printf.printf "%s: right\n%!" name else (Printf.printf "%s: wrong\n%!" name; exit 1)

(* in a function of its own, so that no register keeps the callback *)
let[@inline never] with_callback h seen =
  let text = Bytes.of_string "callback" in
  let weak = Weak.create 1 in
  Weak.set weak 0 (Some text);
  NBD.set_debug_callback h (fun _ _ -> seen := Bytes.to_string text; 0);
  weak

let connected () =
  let h = NBD.create () in
  NBD.connect_command h [ "nbdkit"; "-s"; "--exit-with-parent"; "memory"; "1M" ];
  h

let wait h pending = while !pending > 0 do ignore (NBD.poll h (-1)) done

let () =
  let h = NBD.create () and seen = ref "" in
  let weak = with_callback h seen in
  Gc.compact ();
  right "a callback outlives a compaction" (Weak.check weak 0);
  NBD.set_debug h true;
  NBD.connect_command h [ "nbdkit"; "-s"; "--exit-with-parent"; "null" ];
  right "and is called" (!seen = "callback");
  NBD.set_debug h false;
  let weak' = with_callback h seen in
  Gc.full_major (); Gc.full_major ();
  right "a callback that was replaced is collected" (not (Weak.check weak 0) && Weak.check weak' 0);
  NBD.clear_debug_callback h;
  Gc.full_major (); Gc.full_major ();
  right "a callback that was cleared is collected" (not (Weak.check weak' 0));
  NBD.close h

let () =
  let weaks = Array.init 300 (fun _ -> with_callback (NBD.create ()) (ref "")) in
  Gc.full_major (); Gc.full_major (); Gc.full_major ();
  right "callbacks of handles that are collected" (not (Array.exists (fun w -> Weak.check w 0) weaks))

let () =
  let h = connected () in
  let n = 100 and pending = ref 0 and wrong = ref 0 in
  let completed _ = decr pending; 1 in
  for i = 0 to n - 1 do
    incr pending;
    let data = Bytes.make 4096 (Char.chr (33 + (i mod 90))) in
    ignore (NBD.aio_pwrite h (NBD.Buffer.of_bytes data) ~completion:(fun e -> ignore data; completed e)
              (Int64.of_int (4096 * i)));
    if i mod 10 = 0 then Gc.compact ()
  done;
  wait h pending;
  for i = 0 to n - 1 do
    incr pending;
    let buffer = NBD.Buffer.alloc 4096 in
    let completion e =
      if Bytes.to_string (NBD.Buffer.to_bytes buffer) <> String.make 4096 (Char.chr (33 + (i mod 90))) then incr wrong;
      completed e
    in
    ignore (NBD.aio_pread h buffer ~completion (Int64.of_int (4096 * i)));
    if i mod 10 = 0 then Gc.compact ()
  done;
  wait h pending;
  right "buffers and completions on the way, over compactions" (!wrong = 0);
  NBD.shutdown h

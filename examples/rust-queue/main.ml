(* SPDX-License-Identifier: MIT *)
let () =
  (* Queues of any type, as OCaml infers it. *)
  let words = Heap.create () and thunks = Heap.create () in
  for i = 1 to 10_000 do
    let n = i * 7919 mod 10_007 in
    Heap.push words n (string_of_int n);
    Heap.push thunks (-n) (fun () -> n)
  done;
  Gc.compact ();
  let rec drain previous count =
    match Heap.pop words with
    | None -> count
    | Some word ->
      let n = int_of_string word in
      assert (n <= previous);
      drain n (count + 1)
  in
  assert (drain max_int 0 = 10_000);
  (match Heap.pop thunks with
   | Some thunk -> Printf.printf "the smallest: %d; %d more\n" (thunk ()) (Heap.length thunks)
   | None -> assert false);
  (* A queue that OCaml frees, with all that it holds. *)
  let freed = Weak.create 1 in
  let forget () =
    let value = ref 5 and queue = Heap.create () in
    Weak.set freed 0 (Some value);
    Heap.push queue 1 value
  in
  (Sys.opaque_identity forget) ();
  let rec wait n =
    Gc.full_major ();
    Gc.minor ();
    if Weak.check freed 0 && n > 0 then wait (n - 1)
  in
  wait 10;
  assert (not (Weak.check freed 0));
  print_endline "the queue is freed"

(* SPDX-License-Identifier: MIT *)
(* Four domains add, call and remove handlers in one table of Rust's. *)
let domains = 4
let rounds = 500

let () =
  let total = Atomic.make 0 in
  Events.on "sum" (fun text -> ignore (Atomic.fetch_and_add total (int_of_string text)));
  let work d () =
    for i = 1 to rounds do
      assert (Events.emit "sum" (string_of_int i));
      let name = Printf.sprintf "own %d %d" d (i mod 50) in
      let seen = ref "" in
      Events.on name (fun text -> seen := text);
      assert (Events.emit name "hello");
      assert (!seen = "hello");
      if i mod 2 = 0 then assert (Events.off name);
      if i mod 100 = 0 then Gc.full_major ()
    done
  in
  List.iter Domain.join (List.init domains (fun d -> Domain.spawn (work d)));
  assert (Atomic.get total = domains * rounds * (rounds + 1) / 2);
  (* The roots of domains that have ended still hold their closures. *)
  assert (Events.emit "own 0 1" "still there");
  (* A handler that replaces itself while it is called, and one that raises. *)
  Events.on "once" (fun _ -> Events.on "once" (fun _ -> failwith "called twice"));
  assert (Events.emit "once" "");
  (match Events.emit "once" "" with
   | _ -> assert false
   | exception Failure message -> assert (message = "called twice"));
  assert (not (Events.emit "nobody" ""));
  Printf.printf "%d handlers are left, the sum is %d\n" (Events.count ()) (Atomic.get total)

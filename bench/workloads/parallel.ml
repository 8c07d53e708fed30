(* SPDX-License-Identifier: MIT *)
(* parallel: producers and consumers on several domains. Each domain makes messages (a short list in a cell), sends them
   in batches to another domain that is drawn by lot, reads what has come, and keeps a window of what it received: what
   falls out of that, old cells made by other domains for the most part, is deleted. Reports time and processor time for
   one message.
   Arguments: domains, messages of all domains together. *)

let batch_size = 64
let window_size = 4096 (* of a domain *)
let most_on_the_way = 64 (* batches, for one receiver; who would send him more receives the batch itself *)

type message = int list Cell.t
type mailbox = { batches : message array list Atomic.t; waiting : int Atomic.t }

let rec post mailbox batch =
  let old = Atomic.get mailbox.batches in
  if Atomic.compare_and_set mailbox.batches old (batch :: old) then Atomic.incr mailbox.waiting else post mailbox batch

let take_all mailbox =
  let batches = Atomic.exchange mailbox.batches [] in
  ignore (Atomic.fetch_and_add mailbox.waiting (-List.length batches));
  batches

(* Waits, asleep, until all domains have come here. *)
let meet (lock, changed, missing) =
  Mutex.lock lock;
  decr missing;
  Condition.broadcast changed;
  while !missing > 0 do Condition.wait changed lock done;
  Mutex.unlock lock

let domain ~mailboxes ~share ~all_sent id () =
  let domains = Array.length mailboxes in
  let lot = ref (id + 1) in
  let draw n =
    lot := ((!lot * 0x5DEECE66D) + 11) land 0xFFFFFFFFFFFF;
    (!lot lsr 17) mod n
  in
  let window = Array.make window_size None in
  let read cell =
    (match Cell.get cell with
     | [ a; b; c ] when a + 1 = b && b + 1 = c -> ()
     | _ -> Bench.fail "a message has changed");
    let i = draw window_size in
    Option.iter Cell.delete window.(i);
    window.(i) <- Some cell
  in
  let receive () = List.iter (Array.iter read) (take_all mailboxes.(id)) in
  let message _ =
    let a = draw 1_000_000 in
    Cell.create [ a; a + 1; a + 2 ]
  in
  for _ = 1 to share / batch_size do
    let batch = Array.init batch_size message in
    let receiver = mailboxes.((id + 1 + draw (max 1 (domains - 1))) mod domains) in
    if Atomic.get receiver.waiting < most_on_the_way then post receiver batch else Array.iter read batch;
    receive ()
  done;
  meet all_sent;
  receive ();
  Array.iter (Option.iter Cell.delete) window

let () =
  let domains = Bench.int_argument 1 ~default:2 in
  let share = Bench.int_argument 2 ~default:4_000_000 / domains / batch_size * batch_size in
  let mailboxes = Array.init domains (fun _ -> { batches = Atomic.make []; waiting = Atomic.make 0 }) in
  let all_sent = (Mutex.create (), Condition.create (), ref domains) and total = share * domains in
  let wall = Bench.wall () and cpu = Bench.cpu () in
  Domains.run_all (List.init domains (domain ~mailboxes ~share ~all_sent));
  let per_message seconds = seconds *. 1e9 /. float total in
  Bench.metric "time" (per_message (Bench.wall () -. wall)) "ns";
  Bench.metric "processor time" (per_message (Bench.cpu () -. cpu)) "ns";
  Bench.gc_metrics ()

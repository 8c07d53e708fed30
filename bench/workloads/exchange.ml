(* SPDX-License-Identifier: MIT *)
(* exchange: domains in a circle; each creates roots and sends them to the next, and reads and deletes those it
   receives. With one domain and "threads": a thread without the lock deletes what the domain sends. Reports ns per
   root, wall clock. The median counts. A receiver that takes what is there follows the sender closely, and then the two
   have the same cache lines most of the time, whatever a deletion costs; with "batched" it waits until 64 are there.
   Arguments: domains, roots per domain, measurements, domains|threads|batched. *)

(* queues, roots per queue, least that a receiver takes *)
external setup : int -> int -> int -> unit = "exchange_setup"
external send : int -> 'a -> bool = "exchange_send" [@@noalloc] (* false when the queue is full *)
external receive : int -> int -> int = "exchange_receive" [@@noalloc] (* reads and deletes up to so many; how many *)
external start_thread : int -> unit = "exchange_start_thread"
external join_threads : unit -> unit = "exchange_join_threads"

(* Sends [count] roots to a queue; whenever that is full, does [otherwise]. *)
let send_all ~otherwise queue count =
  for i = 0 to count - 1 do
    let v = ref i in
    while not (send queue v) do otherwise () done
  done

let domain ~domains ~count id () =
  let received = ref 0 in
  let receive_some () =
    let n = receive ((id + 1) mod domains) 256 in
    received := !received + n;
    if n = 0 then Domains.relax ()
  in
  send_all ~otherwise:receive_some id count;
  while !received < count do receive_some () done

let () =
  let domains = Bench.int_argument 1 ~default:2 and count = Bench.int_argument 2 ~default:300_000 in
  let kind = Bench.argument 4 ~default:"domains" in
  let exchange () =
    match kind with
    | "threads" ->
      start_thread 0;
      send_all ~otherwise:Domains.relax 0 count;
      join_threads ()
    | _ when domains = 1 -> domain ~domains ~count 0 ()
    | _ -> Domains.run_all (List.init domains (domain ~domains ~count))
  in
  let measure _ =
    setup domains count (if kind = "batched" then 64 else 1);
    let start = Bench.wall () in
    exchange ();
    (Bench.wall () -. start) *. 1e9 /. float (domains * count)
  in
  Bench.metric "per root" (Bench.median (List.init (Bench.int_argument 3 ~default:9) measure)) "ns";
  Bench.gc_metrics ()

(* SPDX-License-Identifier: MIT *)
(* OCaml 5: domains that come and go while heaps grow and are compacted; minor heaps of other sizes meanwhile. *)
let expect what condition = if not condition then failwith what
let size () = (Gc.get ()).minor_heap_size
let set words = Gc.set { (Gc.get ()) with minor_heap_size = words }

(* Two rounds, of few blocks: with more domains than processors most of the time goes to the runtime's barriers. *)
let churn () =
  for round = 1 to 2 do
    let domains = List.init 3 (fun i -> Domain.spawn (fun () -> Work.run_little ((round * 10) + i))) in
    Gc.set { (Gc.get ()) with minor_heap_size = 81_920 * round };
    Work.run_little round;
    List.iter Domain.join domains
  done

let threads () =
  let t = List.init 4 (fun i -> Thread.create Work.run i) in
  List.iter Thread.join t

(* As many domains as there may be, all at once, each with a minor heap of a size of its own, which some change. *)
let sizes () =
  let n = 127 in
  let ready = Atomic.make 0 and broken = Atomic.make false in
  let meet () =
    Atomic.incr ready;
    while Atomic.get ready < n && not (Atomic.get broken) do Unix.sleepf 0.001 done
  in
  let body i () =
    let words = 40_960 + (512 * i) in
    set words;
    meet ();
    let l = List.init 2_000 (fun j -> string_of_int (i + j)) in
    if i mod 16 = 0 then set (words + 512_000);
    Gc.minor ();
    expect "size" (size () = if i mod 16 = 0 then words + 512_000 else words);
    List.iteri (fun j s -> expect "contents" (s = string_of_int (i + j))) l
  in
  let careful i () = try body i () with e -> Atomic.set broken true; raise e in
  List.iter Domain.join (List.init n (fun i -> Domain.spawn (careful i)))

(* Domains come and go while this one and they change sizes, also beyond what was ever asked for. *)
let storm () =
  let largest = ref 65_536 in
  for round = 1 to 25 do
    let domains = List.init 4 (fun i -> Domain.spawn (fun () ->
      let random = Random.State.make [| round; i |] in
      for _ = 1 to 3 do
        let words = 512 + (4_096 * (1 + Random.State.int random 40)) in
        set words;
        Adaptive.work round;
        expect "size" (size () = words)
      done)) in
    if round mod 5 = 0 then largest := !largest * 2;
    set (if round land 1 = 0 then 8_192 else !largest);
    Adaptive.work round;
    List.iter Domain.join domains
  done

(* With minor=adaptive. A domain that waits while others collect gives back three quarters, and again. *)
let idle () =
  let lock = Mutex.create () and changed = Condition.create () in
  let waits = ref 0 and wake = ref false in
  let body () =
    expect "at first" (size () = 131_072);
    Mutex.lock lock;
    incr waits;
    Condition.broadcast changed;
    while not !wake do Condition.wait changed lock done;
    Mutex.unlock lock;
    let slept = size () in
    Adaptive.under_a_stack (fun () -> Adaptive.(until "grows again" (fun () -> size () = most)));
    slept
  in
  let domains = List.init 3 (fun _ -> Domain.spawn body) in
  Mutex.lock lock;
  while !waits < 3 do Condition.wait changed lock done;
  Mutex.unlock lock;
  for _ = 1 to 60 do Gc.minor () done;
  Mutex.lock lock;
  wake := true;
  Condition.broadcast changed;
  Mutex.unlock lock;
  List.iter (fun d -> expect "an idle domain" (Domain.join d = Adaptive.least)) domains;
  expect "shrunk" ((Outheap.statistics ()).minor_shrunk >= 6);
  (* A new domain begins with the size of the program, whatever the last one with its number did. *)
  expect "a new domain" (Domain.join (Domain.spawn size) = 131_072)

let resident () =
  In_channel.with_open_bin "/proc/self/statm" (fun c ->
    Scanf.sscanf (Option.get (In_channel.input_line c)) "%d %d" (fun _ r -> r * 4096))

(* Domains that end in the middle of a trial of two sizes: then, and when the program chooses a size, the memory goes,
   8 to 32 MB for each. *)
let tries () =
  let before = ref 0 in
  let gone ?(limit = 9_000_000) what =
    Gc.compact ();
    let limit = if String.starts_with ~prefix:"5.1." Sys.ocaml_version then 40_000_000 else limit in (* no compaction *)
    expect what (resident () < !before + limit)
  in
  Adaptive.work 1;
  Domain.join (Domain.spawn (fun () -> Adaptive.(under_a_stack (fun () -> work 1))));
  Gc.full_major ();
  before := resident ();
  for times = 1 to 4 do
    Domain.join (Domain.spawn (fun () -> Adaptive.fall times));
    gone "no memory of a domain that ended"
  done;
  List.iter Domain.join (List.init 3 (fun i -> Domain.spawn (fun () -> Adaptive.fall (1 + i))));
  gone ~limit:24_000_000 "no memory of three";
  let chose () = Adaptive.fall 1; set 65_536; Adaptive.work 1; gone "no memory of the trial" in
  Domain.join (Domain.spawn chose)

let tests = [
  "domains", churn; "threads", threads; "sizes", sizes; "storm", storm;
  "adaptive-idle", idle; "adaptive-tries-in-domains", tries;
]

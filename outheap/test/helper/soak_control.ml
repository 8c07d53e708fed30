(* SPDX-License-Identifier: MIT *)
(* Fibers, domains, threads, signals. *)
open Soak_check

type _ Effect.t += Wait : int -> int Effect.t

(* Suspended fibers that hold cells on their stacks and nowhere else, resumed in any order while they are marked. *)
let fibers_of n () =
  let r = random 40 in
  rounds (fun _ ->
    let suspended : (int, unit) Effect.Deep.continuation option array = Array.make n None in
    let ended = ref 0 in
    let rec deep k c = if k = 0 then Effect.perform (Wait c.id) else 1 + deep (k - 1) c in
    let body i =
      let c = cell i in
      let answer = deep (i land 7) c in
      check "fiber" c;
      if answer <> i + (i land 7) + 1 then fail "fibers: %d got %d" i answer;
      let d = cell (i + n) in
      let answer = Effect.perform (Wait i) in
      check "fiber, again" c;
      check "fiber, again" d;
      if answer <> i + 1 then fail "fibers: %d got %d again" i answer;
      incr ended
    in
    let start i =
      Effect.Deep.match_with body i
        { retc = Fun.id; exnc = raise;
          effc = fun (type a) (e : a Effect.t) -> match e with
            | Wait id -> Some (fun (k : (a, unit) Effect.Deep.continuation) ->
                if id <> i then fail "fibers: %d says %d" i id;
                suspended.(i) <- Some k)
            | _ -> None }
    in
    for i = 0 to n - 1 do start i done;
    let order = Array.init n Fun.id in
    for _ = 1 to 2 do
      for i = n - 1 downto 1 do
        let j = Random.State.int r (i + 1) in
        let x = order.(i) in
        order.(i) <- order.(j);
        order.(j) <- x
      done;
      Array.iter (fun i ->
        match suspended.(i) with
        | None -> fail "fibers: %d is missing" i
        | Some k ->
          suspended.(i) <- None;
          if i land 31 = 0 then litter r 20;
          Effect.Deep.continue k (i + 1)) order
    done;
    if !ended <> n then fail "fibers: %d of %d ended" !ended n)

(* Short ones, which are discontinued, or dropped, or resumed by another domain. *)
let fiber_ends () =
  let r = random 41 in
  rounds (fun _ ->
    let n = 3_000 in
    let suspended : (int, unit) Effect.Deep.continuation option array = Array.make n None and cleaned = Atomic.make 0 in
    let body i =
      let c = cell i in
      match Effect.perform (Wait i) with
      | answer -> check "fiber" c; if answer <> i then fail "fiber-ends: %d" i; Atomic.incr cleaned
      | exception Exit -> check "discontinued" c; Atomic.incr cleaned
    in
    for i = 0 to n - 1 do
      Effect.Deep.match_with body i
        { retc = Fun.id; exnc = raise;
          effc = fun (type a) (e : a Effect.t) -> match e with
            | Wait _ -> Some (fun (k : (a, unit) Effect.Deep.continuation) -> suspended.(i) <- Some k)
            | _ -> None };
      if i land 15 = 0 then litter r 10
    done;
    let part k () =
      let r = random k in
      for i = 0 to n - 1 do
        if i land 1 = k && i mod 5 <> 0 then begin
          let c = Option.get suspended.(i) in
          suspended.(i) <- None;
          if i land 2 = 0 then Effect.Deep.continue c i else Effect.Deep.discontinue c Exit;
          if i land 15 = 0 then litter r 10
        end
      done
    in
    let other = Domain.spawn (part 0) in
    part 1 ();
    Domain.join other;
    if Atomic.get cleaned <> n - (n / 5) then fail "fiber-ends: %d" (Atomic.get cleaned);
    Array.fill suspended 0 n None)

(* Each domain leaves data, weak arrays, ephemerons and finalisers to those that are left. *)
let domains () =
  let made = Atomic.make 0 and final = Atomic.make 0 in
  let left = Atomic.make [] in
  let rec leave x = let l = Atomic.get left in if not (Atomic.compare_and_set left l (x :: l)) then leave x in
  let body k () =
    let r = random (200 + k) in
    let a = Soak_data.cells (500 + Random.State.int r 8_000) in
    Soak_data.shuffle r a "domain" 2_000;
    let w = if !weak_in_domains then Weak.create 64 else Weak.create 0 in
    for i = 0 to 63 do
      if !weak_in_domains then Weak.set w i a.(i);
      Gc.finalise (fun c -> check "finaliser of a domain" c; Atomic.incr final) (Option.get a.(i));
      Atomic.incr made
    done;
    if k land 3 = 0 then Gc.full_major ();
    if k land 3 = 1 then ignore (Gc.major_slice 10_000);
    leave (a, w);
    litter r (Random.State.int r 20_000)
  in
  let r = random 42 in
  rounds (fun round ->
    let some = List.init (1 + (round mod 3)) (fun i -> Domain.spawn (body ((round * 4) + i))) in
    litter r 5_000;
    List.iter Domain.join some;
    let l = Atomic.get left in
    List.iter (fun (a, w) ->
      Soak_data.all r a "left by a domain";
      Array.iter (fun c -> Option.iter (check "left by a domain") c) a;
      for i = 0 to Weak.length w - 1 do
        match Weak.get w i with Some c -> check "left weakly" c | None -> fail "domains: %d is not weakly there" i
      done) l;
    Atomic.set left (List.filteri (fun i _ -> i < 6) l));
  Atomic.set left [];
  for _ = 1 to 4 do Gc.full_major () done;
  if Atomic.get final > Atomic.get made then fail "domains: %d finalisers of %d" (Atomic.get final) (Atomic.get made)

let threads () =
  let stop = ref false in
  let body k =
    let r = random (300 + k) in
    let a = Soak_data.cells 5_000 in
    while not !stop do
      Soak_data.shuffle r a "thread" 500;
      if Random.State.int r 10 = 0 then Thread.yield ();
      Soak_data.all r a "thread"
    done
  in
  let some = List.init 4 (fun k -> Thread.create body k) in
  let r = random 43 in
  rounds (fun _ -> litter r 20_000; Thread.yield ());
  stop := true;
  List.iter Thread.join some

let signals () =
  let r = random 44 in
  let count = ref 0 and kept = ref [] and one = Mutex.create () in
  (* Any domain may run it, and another signal may come meanwhile. *)
  let handler _ =
    if Mutex.try_lock one then begin
      incr count;
      kept := cell !count :: List.filteri (fun i c -> check "signal" c; i < 100) !kept;
      if !count mod 50 = 0 then Gc.minor ();
      Mutex.unlock one
    end
  in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  Sys.set_signal Sys.sigvtalrm (Sys.Signal_handle handler);
  let every = { Unix.it_value = 0.002; it_interval = 0.002 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every);
  ignore (Unix.setitimer Unix.ITIMER_VIRTUAL every);
  let a = Soak_data.cells 20_000 in
  rounds (fun _ -> Soak_data.shuffle r a "signals" 5_000; Soak_data.all r a "signals");
  let none = { Unix.it_value = 0.; it_interval = 0. } in
  ignore (Unix.setitimer Unix.ITIMER_REAL none);
  ignore (Unix.setitimer Unix.ITIMER_VIRTUAL none);
  if !count = 0 then fail "signals: there was none"

let fibers () = fibers_of (if !seconds > 5. then 100_000 else 20_000) ()
let many_fibers () = fibers_of 100_000 ()

let tests = [ "fibers", fibers; "fiber-ends", fiber_ends; "domains", domains; "threads", threads; "signals", signals ]
let long = [ "many-fibers", many_fibers ]

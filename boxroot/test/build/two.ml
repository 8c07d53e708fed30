(* SPDX-License-Identifier: MIT *)
(* Two libraries of roots in one process, or two copies of one: both are used heavily at once, and neither may notice.

   PROGRAM SCENARIO ORDER: ORDER, "ab" or "ba", is the order of set-up. Sides announce themselves (side.ml.in). *)

type side = {
  name : string;
  setup : unit -> bool;
  teardown : unit -> unit;
  status : unit -> int;
  error : unit -> string;
  create : string -> int;
  get : int -> string;
  modify : int -> string -> int;
  delete : int -> unit;
  delete_nolock : int -> unit;
  delete_elsewhere : int array -> bool;
  create_nolock : unit -> int;
  storage : unit -> int;
  storage_add : int -> string -> int;
  storage_clear : int -> unit;
}

let sides : (string, side) Hashtbl.t = Hashtbl.create 2
let add name side = Hashtbl.replace sides name side
let side name = try Hashtbl.find sides name with Not_found -> prerr_endline ("no side " ^ name); exit 2

let fail fmt =
  Printf.ksprintf
    (fun s ->
      prerr_endline ("FAILED: " ^ s);
      flush stderr;
      exit 1)
    fmt

(* A root with what it must hold. A new one when the root has ended: index 0 of `age` is the seed of the text. *)
type cell = { mutable root : int; mutable text : int }

let text name n = Printf.sprintf "%s-%d-%d" name n (n * 7919 land 0xffff)

let created side n =
  let r = side.create (text side.name n) in
  if r = 0 then fail "%s: creation failed: %s" side.name (side.error ());
  r

let check side c =
  let s = side.get c.root in
  if s <> text side.name c.text then fail "%s: root of %s holds %S" side.name (text side.name c.text) s

type player = { side : side; cells : cell array; mutable next : int; random : Random.State.t }

let player side ~seed ~size =
  let cells = Array.init size (fun i -> { root = created side i; text = i }) in
  { side; cells; next = size; random = Random.State.make [| seed |] }

let fresh p = p.next <- p.next + 1; p.next

let step p =
  let c = p.cells.(Random.State.int p.random (Array.length p.cells)) in
  check p.side c;
  match Random.State.int p.random 100 with
  | n when n < 50 ->
      p.side.delete c.root;
      c.text <- fresh p;
      c.root <- created p.side c.text
  | n when n < 80 ->
      c.text <- fresh p;
      let r = p.side.modify c.root (text p.side.name c.text) in
      if r = 0 then fail "%s: modification failed: %s" p.side.name (p.side.error ());
      c.root <- r
  | n when n < 83 ->
      p.side.delete_nolock c.root;
      c.text <- fresh p;
      c.root <- created p.side c.text
  | n when n < 84 ->
      let ours = Array.init 20 (fun _ -> created p.side (fresh p)) in
      if not (p.side.delete_elsewhere ours) then fail "no thread"
  | _ -> ignore (Sys.opaque_identity (List.init 20 string_of_int))

let check_all p = Array.iter (check p.side) p.cells

(* Values of roots that were deleted must go, in each of the ways; `live` is what must stay. *)
let check_collected side =
  let ways = [ "here", side.delete; "without the lock", side.delete_nolock; "elsewhere", fun r ->
                 ignore (side.delete_elsewhere [| r |]) ] in
  let n = 3000 in
  List.iter
    (fun (way, delete) ->
      let weak = Weak.create n in
      let fill () =
        Array.init n (fun i ->
            let s = text "ended" i in
            Weak.set weak i (Some s);
            side.create s)
      in
      let roots = fill () in
      Gc.full_major ();
      for i = 0 to n - 1 do
        if not (Weak.check weak i) then fail "%s: the value of a live root was collected" side.name
      done;
      if way = "elsewhere" then
        for i = 0 to (n / 500) - 1 do if not (side.delete_elsewhere (Array.sub roots (i * 500) 500)) then
          fail "no thread" done
      else Array.iter delete roots;
      for _ = 1 to 3 do Gc.full_major () done;
      for i = 0 to n - 1 do
        if Weak.check weak i then fail "%s: the value of a root deleted %s is not collected (%d)" side.name way i
      done)
    ways

let play ps steps =
  for i = 1 to steps do
    List.iter step ps;
    if i mod 500 = 0 then Gc.minor ();
    if i mod 10000 = 0 then Gc.full_major ();
    if i mod 40000 = 0 then Gc.compact ()
  done;
  List.iter check_all ps

let end_all p = Array.iter (fun c -> p.side.delete c.root) p.cells

let refused_without_lock s =
  let r = s.create_nolock () in
  if r <> 0 then fail "%s: creation without the lock succeeded" s.name;
  let e = s.error () in
  if e = "" then fail "no message"

let steps = 30_000

(* Both, on one thread. *)
let alone a b =
  let ps = [ player a ~seed:1 ~size:4000; player b ~seed:2 ~size:4000 ] in
  play ps steps;
  List.iter check_collected [ a; b; a ];
  List.iter refused_without_lock [ a; b ];
  List.iter check_all ps;
  List.iter end_all ps

(* On threads: lock and hooks change hands all the time. *)
let threads a b =
  let run seed =
    Thread.create (fun () ->
        let ps = [ player a ~seed ~size:500; player b ~seed:(seed + 1) ~size:500 ] in
        for _ = 1 to 20 do
          List.iter (fun p -> for _ = 1 to 200 do step p done) ps;
          Thread.yield ()
        done;
        List.iter check_all ps;
        List.iter end_all ps)
      ()
  in
  List.iter Thread.join (List.map run [ 10; 20; 30 ]);
  alone a b

(* On domains, which leave roots of the sides that `leaves` tells to others when they end (OCaml 5). *)
let domains_leaving leaves a b =
  let lock = Mutex.create () and left = ref [] in
  let run seed () =
    let ps = [ player a ~seed ~size:1000; player b ~seed:(seed + 1) ~size:1000 ] in
    play ps (steps / 20);
    Mutex.lock lock;
    let others = !left and leaving, kept = List.partition (fun p -> leaves p.side) ps in
    left := leaving;
    Mutex.unlock lock;
    List.iter check_all others;
    play (kept @ others) (steps / 50);
    List.iter end_all (kept @ others)
  in
  for round = 1 to 4 do
    let ds = List.map (fun i -> Par.spawn (run ((100 * round) + (10 * i)))) [ 1; 2 ] in
    let ps = [ player a ~seed:(round * 7) ~size:300; player b ~seed:(round * 11) ~size:300 ] in
    play ps (steps / 20);
    List.iter end_all ps;
    List.iter Par.join ds
  done;
  List.iter check_all !left;
  List.iter end_all !left;
  alone a b

let domains = domains_leaving (fun _ -> true)

(* The same where only a may leave roots: 0.4.0 loses those of a domain that ended, when that domain takes part in a
   minor collection after its exit hook and so adopts its own orphans. *)
let domains_a = domains_leaving (fun side -> side.name = "a")

(* One of them is torn down while the other goes on, and set up again; in each order. The other must not notice. *)
let teardown a b =
  let round a b =
    let pa = player a ~seed:5 ~size:3000 and pb = player b ~seed:6 ~size:3000 in
    play [ pa; pb ] (steps / 10);
    a.teardown ();
    play [ pb ] (steps / 10);
    if a.create "after" <> 0 then fail "%s: creation after teardown" a.name;
    Gc.compact ();
    if not (a.setup ()) then fail "%s: set-up failed: %s" a.name (a.error ());
    let pa = player a ~seed:7 ~size:3000 in
    play [ pa; pb ] (steps / 10);
    check_collected a;
    check_collected b;
    List.iter end_all [ pa; pb ];
    Gc.full_major ()
  in
  let both () = List.iter (fun s -> s.teardown (); Gc.full_major ()) and again = List.iter (fun s ->
    if not (s.setup ()) then fail "%s" (s.error ())) in
  List.iter
    (fun (down, up) ->
      round a b;
      round b a;
      both () down;
      again up)
    [ [ a; b ], [ a; b ]; [ b; a ], [ a; b ]; [ a; b ], [ b; a ]; [ b; a ], [ b; a ] ];
  alone a b

(* The same, where b cannot be set up again. *)
let teardown_a a b =
  let pb = player b ~seed:6 ~size:3000 in
  for _ = 1 to 3 do
    let pa = player a ~seed:5 ~size:3000 in
    play [ pa; pb ] (steps / 10);
    a.teardown ();
    play [ pb ] (steps / 10);
    check_collected b;
    if not (a.setup ()) then fail "%s: set-up failed: %s" a.name (a.error ())
  done;
  end_all pb;
  alone a b

(* Roots of one side are used and ended through the other (copies of one version). *)
let crossed a b =
  let through maker user = { maker with get = user.get; modify = user.modify; delete = user.delete;
                             delete_nolock = user.delete_nolock;
                                        delete_elsewhere = user.delete_elsewhere } in
  alone (through a b) (through b a);
  if Par.multicore then domains (through a b) (through b a);
  threads (through a b) (through b a)

(* The same where the user's copy has never been set up. *)
let crossed_idle a b =
  let check_ended delete = check_collected { a with delete; delete_nolock = b.delete_nolock;
                                             delete_elsewhere = b.delete_elsewhere } in
  let p = player { a with delete = b.delete } ~seed:3 ~size:20000 in
  check_ended b.delete;
  check_all p;
  end_all p;
  check_ended b.delete

(* Roots in a storage of one side are modified and ended through the other. A modification may be refused; what is in
   the storage then, or after it, ends with it, and with no other. *)
let crossed_storage a b =
  let n = 3000 and refused = ref 0 in
  let mine = a.storage () and theirs = b.storage () in
  if mine = 0 || theirs = 0 then fail "no storage: %s, %s" (a.error ()) (b.error ());
  let make () = Array.init n (fun i -> { root = a.storage_add mine (text a.name i); text = i }) in
  let modify round i c =
    match b.modify c.root (text a.name (i + round)) with
    | 0 ->
        incr refused;
        if b.error () <> "a root in a storage of another copy of the library was to be modified" then
          fail "refused: %s" (b.error ())
    | r -> c.root <- r; c.text <- i + round
  in
  let cells = make () in
  (* the same of a domain that has ended, before another takes its roots over *)
  let orphans = ref [||] in
  if Par.multicore then Par.join (Par.spawn (fun () -> orphans := make ()));
  Array.iteri (modify 1) !orphans;
  let others = Array.init n (fun i -> { root = b.storage_add theirs (text b.name i); text = i }) in
  for round = 1 to 6 do
    if round mod 2 = 0 then Gc.minor () else Gc.full_major ();
    Array.iteri (fun i c -> if (i + round) mod 2 = 0 then modify round i c) cells;
    Array.iter (check a) cells
  done;
  Printf.printf "%d modifications refused\n" !refused;
  Array.iteri (fun i c -> if i mod 3 = 0 then b.delete c.root) cells;
  let rest = List.filteri (fun i _ -> i mod 3 <> 0) (Array.to_list cells) @ Array.to_list !orphans in
  b.storage_clear theirs;
  Gc.full_major ();
  List.iter (check a) rest;
  let weak = Weak.create (2 * n) in
  List.iteri (fun i c -> Weak.set weak i (Some (a.get c.root))) rest;
  ignore (Sys.opaque_identity others);
  a.storage_clear mine;
  for _ = 1 to 3 do Gc.full_major () done;
  for i = 0 to (2 * n) - 1 do if Weak.check weak i then fail "a value is alive" done

(* b has roots when a comes. Both work from then on, or one of them refuses to make new roots and says why (0.4.0 on
   OCaml 4.14 accepts no other library's hooks in front of its own); what there is lives on, and ends when it is
   deleted. *)
let late a b =
  let pb = player b ~seed:6 ~size:3000 in
  if not (a.setup ()) then fail "%s: set-up refused: %s" a.name (a.error ());
  Gc.full_major ();
  play [ player a ~seed:5 ~size:3000 ] steps;
  check_collected a;
  check_all pb;
  let weak = Weak.create 3000 in
  Array.iteri (fun i c -> Weak.set weak i (Some (b.get c.root))) pb.cells;
  let refused = b.create "one" = 0 in
  if refused then (
    let why = b.error () in
    if why = "" then fail "%s: refused without a message" b.name;
    Printf.printf "%s refuses: %s\n" b.name why)
  else play [ pb; player a ~seed:7 ~size:1000 ] steps;
  check_all pb;
  end_all pb;
  for _ = 1 to 3 do Gc.full_major () done;
  for i = 0 to 2999 do if Weak.check weak i then fail "%s: a deleted root keeps its value" b.name done

let scenarios =
  [ "alone", alone; "threads", threads; "domains", domains; "domains-a", domains_a; "teardown", teardown;
    "teardown-a", teardown_a; "late", late; "crossed", crossed; "crossed-idle", crossed_idle;
    "crossed-storage", crossed_storage ]

let main () =
  let scenario, order = match Sys.argv with [| _; s; o |] -> s, o | _ -> prerr_endline "usage: PROGRAM SCENARIO ORDER";
    exit 2 in
  let a = side "a" and b = side "b" in
  let set_up s = if not (s.setup ()) then fail "%s: set-up refused: %s" s.name (s.error ()) in
  (match order with "ab" -> set_up a; set_up b | "ba" -> set_up b; set_up a | "a" -> set_up a | "b" -> set_up b
     | _ -> exit 2);
  List.assoc scenario scenarios a b;
  Printf.printf "%s %s done\n" scenario order

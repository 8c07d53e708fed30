(* SPDX-License-Identifier: MIT *)
(* Foreign pointers in every kind of block, through every phase of the collector. Model-based: for every structure it is
   known, in plain numbers, which patterns and values its fields hold, and they are compared after each step.

     torture [OPTIONS]                     random steps; prints its seed
     torture --scenario NAME[:KIND]        one structure or operation, with patterns of one kind (default: unreadable),
                                           through all phases
     torture --list                        the names of scenarios; --kinds: of kinds of patterns

     --seed N  --seconds N | --steps N  --domains N (OCaml 5)
     --recycle (also memory that is given back: needs reserved address space)
     --only NAMES, --without NAMES (structures and operations, separated by commas)
     --kind KINDS  --no-compaction  --no-ephemerons  --no-threads  --trace

   With one domain and --no-threads, the same seed takes the same steps. *)

open Foreign

let seed = ref 0 and seconds = ref 10. and steps = ref max_int and domains = ref 1 and recycle = ref false
and only = ref [] and without = ref []
and kinds = ref [] and compaction = ref true and ephemerons = ref true and threads = ref true and trace = ref false
and scenario = ref ""

let fail name message =
  prerr_endline (Printf.sprintf "torture: %s: %s" name message);
  exit 1

let chosen name = (!only = [] || List.mem name !only) && not (List.mem name !without)

(* --- patterns ------------------------------------------------------------------------------------------------------
   *)

let prepare rng =
  let kinds =
    match !kinds with
    | [] -> held @ (if !recycle then recycled else [])
    | l -> l in
  Array.of_list (List.concat_map (fun k ->
    List.init (match k with Null -> 2 | Low | Ocaml_code | C_code | Static -> 12 | _ -> 60) (fun _ ->
      create rng k)) kinds)

let check_memory name =
  if not (intact ()) then fail name "memory that is not OCaml's has been written to";
  let n = taken () in
  if n >= 0 then fail name (Printf.sprintf "%s has become a part of OCaml's heap" (text (Foreign n)))

(* --- collections ---------------------------------------------------------------------------------------------------
   *)

let collections = [|
  60, (fun c -> if int c 3 = 0 then begin_marking (); Gc.minor ());
  60, (fun c -> ignore (Gc.major_slice (if bool c then 0 else 100 + int c 20000)));
  8, (fun _ -> Gc.major ());
  8, (fun _ -> Gc.full_major ());
  4, (fun c -> if c.compaction then Gc.compact () else Gc.full_major ());
  2, (fun c -> Gc.set { (Gc.get ()) with minor_heap_size = [| 4096; 32768; 262144; 65536 |].(int c 4) });
  2, (fun c -> Gc.set { (Gc.get ()) with space_overhead = [| 20; 80; 120; 400 |].(int c 4) });
  2, (fun c -> if not Par.multicore && int c 3 = 0 then Gc.set { (Gc.get ()) with allocation_policy = int c 3 });
  6, (fun c -> (* the heap grows, and shrinks again *)
    let l = List.init (1 + int c 30) (fun _ -> Array.make (1 + int c 30_000) (foreign (pattern c))) in
    ignore (Gc.major_slice 0);
    List.iter (fun a -> if a.(0) != a.(Array.length a - 1) then wrong "growth") l);
  20, (fun c -> for n = 1 to 1000 do ignore (Sys.opaque_identity (ref (foreign (pattern c)), n)) done);
  3, (fun _ -> ignore (Gc.quick_stat ()); ignore (Gc.allocated_bytes ())) |]
let collections_total = Array.fold_left (fun n (w, _) -> n + w) 0 collections

let collect c =
  let rec choose i n = let w, f = collections.(i) in if n < w then f c else choose (i + 1) (n - w) in
  choose 0 (int c collections_total)

(* --- a player ------------------------------------------------------------------------------------------------------
   *)

(* Structures that change hands. *)
let exchange : Cell.cell option Atomic.t array = Array.init 16 (fun _ -> Atomic.make None)

let tell = Mutex.create ()

let play ~id ~main c until =
  let structures = Array.of_list (List.filter (fun (n, _) -> chosen n)
    (Structures.plain @ (if c.ephemerons then Structures.weak_ones else []))) in
  let threads = if main && !threads && chosen "thread" then Structures.threads else [] in
  let operations = Array.of_list
    (List.filter (fun (n, _) -> chosen n) (Operations.all @ if main then Operations.main_only else [])) in
  let cells = Array.make 150 None in
  let running = Array.make 3 None in
  let last = ref "" in
  let step = ref 0 in
  let note what name =
    last := what ^ " " ^ name;
    note !last;
    if !trace then begin Mutex.lock tell; Printf.eprintf "%d.%d %s\n%!" id !step !last; Mutex.unlock tell end in
  let check (cell : Cell.cell) = cell.check () in
  let drop = function Some (cell : Cell.cell) -> cell.drop () | None -> () in
  let one () =
    let k = int c (Array.length cells) in
    match int c 100 with
    | n when n < 30 && Array.length structures > 0 ->
      let name, create = pick c structures in
      note "create" name;
      let cell = create c in
      drop cells.(k); cells.(k) <- Some cell; check cell
    | n when n < 60 ->
      (match cells.(k) with Some cell -> note "change" cell.name; cell.change c; check cell | None -> ())
    | n when n < 63 -> note "drop" ""; drop cells.(k); cells.(k) <- None
    | n when n < 66 && Par.multicore && !domains > 1 ->
      note "exchange" "";
      (match cells.(k) with
       | Some cell when cell.name = "finaliser" -> () (* the model of a finaliser's value stays with its domain *)
       | cell -> cells.(k) <- Atomic.exchange exchange.(int c 16) cell)
    | n when n < 86 && Array.length operations > 0 -> let name, f = pick c operations in note "do" name; f c
    | n when n < 88 && threads <> [] ->
      let k = int c (Array.length running) in
      note "thread" "";
      (match running.(k) with
       | Some cell when int c 20 > 0 -> check cell; cell.change c
       | old -> drop old; running.(k) <- Some (Structures_holders.thread c))
    | _ -> note "collect" ""; collect c in
  let check_all () = Array.iter (Option.iter check) cells; Array.iter (Option.iter check) running in
  (try
     while not (until !step) do
       incr step;
       one ();
       (match cells.(int c (Array.length cells)) with Some cell -> note "check" cell.name; check cell | None -> ());
       if !step mod 100 = 0 then begin
         note "check" "all"; check_all ();
         if main then check_memory (Printf.sprintf "step %d" !step)
       end
     done;
     note "check" "all"; check_all ();
     note "drop" "all";
     Array.iter drop cells; Array.iter drop running
   with
   | Wrong s -> fail (Printf.sprintf "player %d, step %d, %s" id !step !last) s
   | (Not_found | Failure _ | Invalid_argument _ | Stack_overflow | Out_of_memory) as e ->
     fail (Printf.sprintf "player %d, step %d, %s" id !step !last) (Printexc.to_string e));
  !step

let context ~main id patterns = {
  rng = Random.State.make [| !seed; id |]; patterns; only_foreign = false; compaction = !compaction;
  ephemerons = !ephemerons && (main || !domains = 1) }

let random () =
  let rng = Random.State.make [| !seed |] in
  let patterns = prepare rng in
  let started = Unix.gettimeofday () in
  let over () = Unix.gettimeofday () -. started > !seconds in
  let until step = step >= !steps || (!steps = max_int && over ()) in
  Printf.printf "torture --seed %d --domains %d%s%s%s: %d patterns, %s\n%!" !seed !domains (if !recycle then
      " --recycle" else "")
    (if !compaction then "" else " --no-compaction") (if !ephemerons then "" else " --no-ephemerons")
      (Array.length patterns)
    (if has_variant () then "variant" else "stock runtime");
  let total = Atomic.make 0 in
  let add n = ignore (Atomic.fetch_and_add total n) in
  let finished = Atomic.make false in
  let others =
    if not Par.multicore || !domains < 2 then []
    else
      (* Some play until the end; the last one spawns domains that play a while. *)
      List.init (!domains - 1) (fun n ->
        let n = n + 1 in
        Par.spawn (fun () ->
          if n < !domains - 1 then
            add (play ~id:n ~main:false (context ~main:false n patterns) (fun step ->
              until step || Atomic.get finished))
          else begin
            let round = ref 0 in
            while not (Atomic.get finished) && (!steps < max_int && !round < 5 || !steps = max_int && not (over ())) do
              incr round;
              let id = 1000 + !round in
              Par.join (Par.spawn (fun () ->
                let c = context ~main:false id patterns in
                let last = int c 300 in
                add (play ~id ~main:false c (fun step -> step >= last))))
            done
          end)) in
  add (play ~id:0 ~main:true (context ~main:true 0 patterns) until);
  if !steps < max_int then () else Atomic.set finished true;
  List.iter Par.join others;
  Array.iter (fun a -> match Atomic.exchange a None with
    | Some (cell : Cell.cell) -> (try cell.check () with Wrong s -> fail "the end" s); cell.drop ()
    | None -> ()) exchange;
  Gc.full_major ();
  check_memory "the end";
  (match Atomic.get Structures_holders.failures with Some s -> fail "the end" s | None -> ());
  Printf.printf "ok: %d steps\n" (Atomic.get total)

(* --- scenarios -----------------------------------------------------------------------------------------------------
   *)

let structures = Structures.plain @ Structures.weak_ones @ Structures.threads
let operations = Operations.all @ Operations.main_only

let phases c check =
  let compact () = if c.compaction then Gc.compact () else Gc.full_major () in
  List.iter (fun f -> f (); check ()) [
    Gc.minor; (fun () -> ignore (Gc.major_slice 0)); Gc.minor; (fun () -> begin_marking (); Gc.minor ());
    (fun () -> for _ = 1 to 20 do ignore (Gc.major_slice 500); ignore (Sys.opaque_identity (Array.make 1000 0)) done);
    Gc.major; Gc.full_major; compact; Gc.full_major ]

(* The same with another domain that marks as well. *)
let phases c check =
  phases c check;
  if Par.multicore && c.ephemerons then begin
    let stop = Atomic.make false in
    let d = Par.spawn (fun () ->
      while not (Atomic.get stop) do ignore (Gc.major_slice 0); ignore (Sys.opaque_identity (ref stop)) done) in
    for _ = 1 to 3 do begin_marking (); Gc.minor (); ignore (Gc.major_slice 0); check () done;
    Atomic.set stop true; Par.join d;
    Gc.full_major (); check ()
  end

let run_scenario name =
  let name, kind =
    match String.index_opt name ':' with
    | Some i -> String.sub name 0 i, String.sub name (i + 1) (String.length name - i - 1)
    | None -> name, "unreadable" in
  let kind = try List.assoc kind Foreign.names with Not_found -> fail kind "no such kind of pattern" in
  kinds := [kind];
  let rng = Random.State.make [| !seed |] in
  let c = { rng; patterns = prepare rng; only_foreign = true; compaction = !compaction; ephemerons = !ephemerons } in
  Foreign.note name;
  (try
     match List.assoc_opt name structures with
     | Some create ->
       let cells = List.init 20 (fun _ -> create c) in
       let check () = List.iter (fun (cell : Cell.cell) -> cell.check ()) cells in
       check ();
       phases c check;
       List.iter (fun (cell : Cell.cell) -> for _ = 1 to 3 do cell.change c; cell.check () done) cells;
       phases c check;
       List.iter (fun (cell : Cell.cell) -> cell.drop ()) cells
     | None ->
       match List.assoc_opt name operations with
       | Some f -> for n = 1 to 60 do f c; if n mod 20 = 0 then Gc.full_major () done; phases c ignore
       | None -> fail name "no such scenario"
   with Wrong s -> fail name s);
  check_memory name

let () =
  let kind_of s = match List.assoc_opt s Foreign.names with Some k -> k | None -> raise (Arg.Bad ("no kind " ^ s)) in
  let list l () = List.iter print_endline l; exit 0 in
  Arg.parse [
    "--seed", Arg.Set_int seed, "N"; "--seconds", Arg.Set_float seconds, "N"; "--steps", Arg.Set_int steps, "N";
    "--domains", Arg.Set_int domains, "N"; "--recycle", Arg.Set recycle, " also memory that is given back";
    "--only", Arg.String (fun s -> only := String.split_on_char ',' s), "NAMES"; "--without", Arg.String (fun s ->
      without := String.split_on_char ',' s), "NAMES";
    "--kind", Arg.String (fun s -> kinds := List.map kind_of (String.split_on_char ',' s)), "KINDS";
    "--no-compaction", Arg.Clear compaction, ""; "--no-ephemerons", Arg.Clear ephemerons, "";
    "--no-threads", Arg.Clear threads, "";
    "--trace", Arg.Set trace, ""; "--scenario", Arg.Set_string scenario, "NAME[:KIND]";
    "--list", Arg.Unit (list (List.map fst structures @ List.map fst operations)), "";
    "--has-variant", Arg.Unit (fun () -> exit (if has_variant () then 0 else 1)), "";
    "--kinds", Arg.Unit (list (List.map fst Foreign.names)), "" ]
    (fun s -> raise (Arg.Bad s)) "torture [OPTIONS]";
  if !seed = 0 && !scenario = "" then begin Random.self_init (); seed := 1 + Random.int 999_999_999 end;
  if not Par.multicore then domains := 1;
  Foreign.seed !seed;
  if !scenario <> "" then run_scenario !scenario else random ()

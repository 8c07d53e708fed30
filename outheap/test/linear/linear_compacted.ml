(* SPDX-License-Identifier: MIT *)
(* Containers of which most was removed: what is left moves together when they are trimmed, and the rest goes back. *)
open Linear_checks

(* In bytecode of OCaml 4.14 the stack is too small for Stdlib's. *)
module List = struct
  include List

  let map f l = rev (rev_map f l)
end

module Words = Lists.Make (L.Text) ()
module Line = L.Queue.Make (L.Text) ()

module Book =
  L.Map.Make
    (struct
      include L.Text

      let compare = String.compare
    end)
    (L.Text)
    ()

module Index = L.Table.Make (Strings_hashed) (L.Text) ()

let word n = Printf.sprintf "%*d" (10 + (n * 7 mod 40)) n
let stays n = n * 7919 mod 53 = 0
let trim () = Words.trim () + Line.trim () + Book.trim () + Index.trim () + L.Text.trim ()

let are_whole what =
  List.iter (whole what) [ Words.check (); Line.check (); Book.check (); Index.check (); L.Text.check () ]

let numbers n = List.init n Fun.id
let left n = List.filter stays (numbers n)
let index n = List.map (fun i -> (word i, word (i + 1))) n

(* All kinds, of which one in 53 elements stays. *)
let filled n =
  let all = List.map word (numbers n) in
  let l = Words.of_list all and q = Line.create () and t = Index.create () in
  let m = List.fold_left (fun m w -> Book.add w w m) (Book.create ()) all in
  List.iteri (fun i w -> Index.replace w (word (i + 1)) t) all;
  let of_word w = int_of_string (String.trim w) in
  let l = Words.filter (fun w -> stays (of_word w)) l in
  let m = List.fold_left (fun m i -> if stays i then m else Book.remove (word i) m) m (numbers n) in
  List.iter (fun i -> if not (stays i) then Index.remove (word i) t) (numbers n);
  (* What goes are the cells of another queue. The last one is alone in its page of 2 MB, so it moves. *)
  let other = Line.create () in
  let fill_pages () = for _ = 1 to 100_000 do Line.push "" other done in
  let last = List.fold_left max 0 (left n) in
  List.iteri
    (fun i w ->
      if i = last then fill_pages ();
      Line.push w (if stays i then q else other);
      if i = last then fill_pages ())
    all;
  Line.close other;
  (l, q, m, t)

let same what n (l, q, m, t) =
  let words = List.map word (left n) in
  check (what ^ ": list") (Words.to_list l = words);
  check (what ^ ": queue") (Line.to_list q = words);
  check (what ^ ": map") (Book.fold (fun k v all -> (k, v) :: all) m [] |> List.rev |> List.map fst
                          = List.sort compare words);
  check (what ^ ": table") (List.sort compare (Index.fold (fun k v all -> (k, v) :: all) t [])
                            = List.sort compare (index (left n)));
  List.iter (fun (k, v) -> check (what ^ ": find") (Index.find k t = Some v)) (index (left n));
  whole what (Index.check_table t);
  are_whole what

(* As nearly every page has something that stays, none goes back before. *)
let goes_back () =
  let n = 150_000 and t = Index.create () and memory () = Index.memory () + L.Text.memory () in
  let short i = Printf.sprintf "%20d" i in
  let before = memory () in
  for i = 0 to n - 1 do Index.replace (short i) (short i) t done;
  for i = 0 to n - 1 do if not (stays i) then Index.remove (short i) t done;
  let pages = memory () - before and resident = Linear_contracts.resident () in
  let cells = Index.trim () in
  let given = cells + L.Text.trim () in
  if variant then begin
    check (Printf.sprintf "%d of %d MB go back" (given lsr 20) (pages lsr 20)) (given > pages / 2);
    check "resident" (resident - Linear_contracts.resident () > pages / 2)
  end;
  List.iter (fun i -> check "it is found" (Index.find (short i) t = Some (short i))) (left n);
  check "once" (Index.trim () = 0 && L.Text.trim () = 0);
  Index.close t

let moves () =
  let n = 60_000 in
  let ((l, q, m, t) as all) = filled n in
  same "before" n all;
  ignore (trim ());
  same "moved" n all;
  ignore (trim ());
  same "trimmed again" n all;
  (* All goes on. *)
  let l = Words.rev (Words.cons "new" l) in
  Line.push "new" q;
  let m = Book.add "new" "new" m in
  Index.replace "new" "new" t;
  check "the list goes on" (Words.length l = List.length (left n) + 1 && List.hd (List.rev (Words.to_list l)) = "new");
  check "the queue goes on" (List.hd (List.rev (Line.to_list q)) = "new");
  check "the map goes on" (Book.find "new" m = Some "new");
  check "the table goes on" (Index.find "new" t = Some "new");
  Words.close l;
  Line.close q;
  Book.close m;
  Index.close t;
  collect ();
  check "no text is left" (L.Text.live () = 0);
  are_whole "closed"

(* The order of use is as before. *)
let order () =
  let gone = ref [] and n = 100_000 in
  let t = Index.create ~most:n ~evicted:(fun k _ -> gone := k :: !gone) () in
  for i = 1 to n do Index.replace (word i) (word i) t done;
  Index.filter (fun k _ -> stays (int_of_string (String.trim k))) t;
  ignore (Index.find (word 53) t);
  ignore (trim ());
  whole "in order" (Index.check_table t);
  let left = Index.length t in
  for i = n + 1 to (2 * n) - left do Index.replace (word i) "" t done;
  check "none has gone" (!gone = []);
  for i = 2 * n to (2 * n) + left - 1 do Index.replace (word i) "" t done;
  let wanted = List.filter (fun i -> stays i && i <> 53) (List.init n (fun i -> i + 1)) @ [ 53 ] in
  check "the oldest go first" (List.rev !gone = List.map word wanted);
  whole "evicted" (Index.check_table t);
  Index.close t

(* What is borrowed stays where it is, and moves later. *)
let borrowed () =
  let n = 200_000 in
  let l = Words.filter (fun w -> stays (int_of_string (String.trim w))) (Words.of_list (List.map word (numbers n))) in
  let stays_there view =
    let cells = List.map Fun.id view and words = List.map L.Text.get view in
    ignore (trim ());
    check "the texts" (List.for_all2 ( == ) cells view);
    check "what they are" (List.map L.Text.get view = words)
  in
  Words.borrow l stays_there;
  check "later" ((not variant) || trim () > 1 lsl 20);
  check "the words" (Words.to_list l = List.map word (left n));
  Words.close l

(* Another domain goes on with its container meanwhile: it waits, and is not refused. *)
let meanwhile () =
  let over = Atomic.make false and n = 3_000 in
  let work () =
    let t = Index.create () and m = ref (Book.create ()) in
    while not (Atomic.get over) do
      for i = 1 to n do Index.replace (word i) (word (i + 1)) t; m := Book.add (word i) (word i) !m done;
      for i = 1 to n do
        if not (stays i) then begin Index.remove (word i) t; m := Book.remove (word i) !m end
      done;
      check "found" (List.for_all (fun i -> i = 0 || Index.find (word i) t = Some (word (i + 1))) (left n));
      check "in the map" (Book.length !m = List.length (left n) - 1)
    done;
    whole "meanwhile" (Index.check_table t);
    Index.close t;
    Book.close !m
  in
  let join = Linear_domains.spawn work in
  for _ = 1 to 20 do
    let all = filled 10_000 in
    ignore (trim ());
    same "meanwhile" 10_000 all;
    let l, q, m, t = all in
    Words.close l;
    Line.close q;
    Book.close m;
    Index.close t
  done;
  Atomic.set over true;
  join ();
  are_whole "meanwhile"

(* The buckets of a table: the second field but one of the first field of what an owner begins with. *)
let buckets t : int = Obj.obj (Obj.field (Obj.field (Obj.field (Obj.repr t) 0) 0) 2)

let shrinks () =
  let module T = L.Table.Make (Ints_hashed) (Ints) () in
  let t = T.create () in
  for round = 1 to 2 do
    for i = 1 to 20_000 do T.replace i (i * round) t done;
    check "it has grown" (buckets t >= 20_000);
    for i = 20_000 downto 1 do
      T.remove i t;
      if i land 255 = 0 then begin
        check "it has shrunk" (buckets t <= max 8 (4 * i));
        whole "removed" (T.check_table t)
      end
    done;
    check "it is small" (buckets t = 8)
  done;
  for i = 1 to 20_000 do T.replace i i t done;
  T.filter (fun k _ -> k <= 100) t;
  check "filtered" (buckets t <= 400 && T.length t = 100 && T.find 100 t = Some 100);
  whole "filtered" (T.check_table t);
  T.close t

let compacted () =
  goes_back ();
  shrinks ();
  moves ();
  order ();
  borrowed ();
  if Linear_domains.several > 1 then meanwhile ()

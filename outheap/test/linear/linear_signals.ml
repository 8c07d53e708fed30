(* SPDX-License-Identifier: MIT *)
(* Signals wherever one is handled. *)
open Linear_checks

(* A signal comes now; OCaml handles it when it next looks. *)
external signal : unit -> unit = "linear_test_signal" [@@noalloc]

let due = ref false

(* What functions of the program return, with a signal meanwhile if one is due. *)
let signalled result =
  if !due then begin
    due := false;
    signal ()
  end;
  result

module Word = struct
  include L.Text

  let equal a b = signalled (String.equal a b)
  let hash = Hashtbl.hash
  let compare a b = let c = String.compare a b in if c = 0 then signalled c else c
end

module Words = Lists.Make (Word) ()
module Line = L.Queue.Make (Word) ()
module Book = L.Map.Make (Word) (Word) ()
module Index = L.Table.Make (Word) (Word) ()

let word n = "word " ^ string_of_int n
let words n = List.init n word
let long n = String.make 600 'l' ^ word n

let no_text_is_left what =
  collect ();
  check (what ^ ": no text is left") (L.Text.live () = 0);
  check (what ^ ": no cell is left") (Words.live () + Line.live () + Book.live () + Index.live () = 0)

(* [f ()], in which a signal comes; its handler raises [Exit] where it is handled, which may be after [f]. *)
let with_signal f =
  let handled = ref false in
  let handler _ = handled := true; raise Exit in
  let old = Sys.signal Sys.sigusr1 (Sys.Signal_handle handler) in
  due := true;
  (match
     f ();
     while not (!due || !handled) do ignore (opaque (ref 0)) done
   with
  | () -> ()
  | exception Exit -> ());
  check "there was a signal" (not !due);
  due := false;
  Sys.set_signal Sys.sigusr1 old

(* It can be used, or was consumed. *)
let usable what f = match f () with _ -> () | exception L.Moved -> () | exception L.Borrowed -> check what false

let of_callbacks () =
  let list () = Words.of_list (words 10) in
  List.iter
    (fun (what, f) ->
      let l = list () in
      with_signal (fun () -> ignore (f l));
      usable (what ^ ": it can be used") (fun () -> Words.close l);
      no_text_is_left what)
    [
      ("filter", fun l -> Words.filter (fun _ -> signalled false) l);
      ("partition", fun l -> fst (Words.partition (fun _ -> signalled false) l));
      ("map", fun l -> Words.map (fun w -> signalled w) l);
      ("sort", fun l -> Words.sort Word.compare (Words.cons (word 3) l));
    ];
  let book () = List.fold_left (fun b w -> Book.add w w b) (Book.create ()) (words 10) in
  List.iter
    (fun (what, f) ->
      let b = book () in
      with_signal (fun () -> ignore (f b));
      usable (what ^ ": it can be used") (fun () -> Book.close b);
      no_text_is_left what)
    [
      ("remove from a map", fun b -> Book.remove (word 3) b); ("add to a map", fun b -> Book.add (word 3) "other" b);
      ("find in a map", fun b -> ignore (Book.find (word 3) b); b);
    ];
  List.iter
    (fun most ->
      List.iter
        (fun (what, f) ->
          let t = Index.create ?most ~evicted:(fun _ _ -> ()) () in
          List.iter (fun w -> Index.replace w w t) (words 10);
          with_signal (fun () -> f t);
          usable (what ^ ": it can be used") (fun () -> Index.replace "a" "b" t);
          whole what (Index.check_table t);
          check (what ^ ": cells") (Index.live () = Index.length t);
          Index.close t;
          no_text_is_left what)
        [
          ("remove", fun t -> Index.remove (word 3) t); ("replace", fun t -> Index.replace (word 3) "other" t);
          ("find", fun t -> ignore (Index.find (word 3) t));
          ("filter the table", fun t -> Index.filter (fun _ _ -> signalled false) t);
        ])
    [ None; Some 10 ]

(* Where the program's functions are not called: by a timer, so by chance. [step] changes the container; [again] says
   that it can be used, and fills it. *)
let by_chance step again =
  let armed = ref false in
  let handle _ =
    if !armed then begin
      armed := false;
      raise Exit
    end
  in
  let old = Sys.signal Sys.sigalrm (Sys.Signal_handle handle) in
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.0002; it_value = 0.0002 });
  let stopped = ref 0 in
  while !stopped < 300 do
    try
      armed := true;
      for _ = 1 to 1000 do step () done;
      armed := false
    with Exit -> incr stopped; again ()
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm old

let of_a_timer () =
  let q = Line.create () in
  let fill () = for n = Line.length q + 1 to 20 do Line.push (word n) q done in
  fill ();
  by_chance
    (fun () -> match Line.pop q with Some w -> Line.push w q | None -> ())
    (fun () -> match fill () with () -> () | exception L.Borrowed -> check "the queue can be used" false);
  (match Line.close q with () -> () | exception L.Borrowed -> ());
  no_text_is_left "queue";
  let l = ref (Words.of_list (words 20)) in
  by_chance
    (fun () -> match Words.uncons !l with Some (w, rest) -> l := rest; l := Words.cons w !l | None -> ())
    (fun () ->
      match Words.length !l with
      | n -> if n = 0 then l := Words.of_list (words 20); usable "the list can be used" (fun () -> Words.to_list !l)
      | exception L.Moved -> l := Words.of_list (words 20));
  usable "the list can be used" (fun () -> Words.close !l);
  no_text_is_left "list";
  let t = Index.create ~most:20 ~evicted:(fun _ _ -> ()) () and n = ref 0 in
  by_chance
    (fun () ->
      incr n;
      let w = if !n land 7 = 0 then long (!n land 63) else word (!n land 63) in
      if !n land 3 = 0 then Index.remove w t else Index.replace w w t)
    (fun () ->
      usable "the table can be used" (fun () -> Index.find "a" t);
      whole "table" (Index.check_table t);
      check "cells" (Index.live () = Index.length t));
  usable "the table can be used" (fun () -> Index.close t);
  no_text_is_left "table";
  let gone = ref 0 in
  let evicted _ _ =
    incr gone;
    () (* no call at the end, or signals may be handled before the first line *)
  in
  let t = Index.create ~most:20 ~evicted () and n = ref 0 and added = ref 0 and counted = ref 0 in
  let count () = counted := !n; incr added in
  by_chance
    (fun () ->
      incr n;
      let w = word !n in
      Index.replace w w t;
      count ())
    (fun () ->
      if !counted <> !n && Index.mem (word !n) t then count ();
      check "what has gone was handed on" (Index.length t + !gone = !added));
  usable "the table can be used" (fun () -> Index.close t);
  no_text_is_left "evicted"

let signals () =
  if Sys.backend_type = Sys.Native then begin
    of_callbacks ();
    of_a_timer ()
  end

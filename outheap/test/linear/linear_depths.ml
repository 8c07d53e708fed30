(* SPDX-License-Identifier: MIT *)
(* The end of the stack in what frees, and in what takes trees apart. *)
open Linear_checks

(* Removing what there is, and what has to go, at each depth near the end of the stack. *)
module Ends (K : Linear_chains.CONTENTS) (V : Linear_chains.CONTENTS) () = struct
  module Key = struct
    include K

    let equal a b = K.number a = K.number b
    let hash a = K.number a
    let compare a b = compare (K.number a) (K.number b)
  end

  module T = L.Table.Make (Key) (V) ()
  module M = L.Map.Make (Key) (V) ()
  module Q = L.Queue.Make (V) ()
  module N = Lists.Make (V) ()

  let size = 12
  let live () = T.live () + M.live () + Q.live () + N.live () + L.Text.live ()

  let each deepest what f =
    let stopped = ref 0 in
    for above = 0 to 160 do
      let at_the_end g = match Linear_stopped.at (deepest - above) g with
        | () -> () | exception Stack_overflow -> incr stopped
      in
      let before = live () in
      f at_the_end;
      check (what ^ ": nothing is left") (live () = before)
    done;
    check (what ^ ": the stack has ended") (!stopped > 0)

  let usable what f = match f () with r -> r | exception L.Borrowed -> check (what ^ ": it can be used") false

  let run deepest =
    let each what f = each deepest what (f what) in
    let filled most evicted =
      let t = T.create ?most ~evicted () in
      for n = 1 to size do T.replace (K.make n) (V.make n) t done;
      t
    in
    each "table, remove" (fun what at_the_end ->
        let t = filled None (fun _ _ -> ()) and key = K.make 5 in
        at_the_end (fun () -> T.remove key t);
        usable what (fun () ->
            check (what ^ ": one less or not") (T.length t = size - if T.mem key t then 0 else 1);
            whole what (T.check_table t);
            T.close t));
    List.iter
      (fun has_hook ->
        each "table, full" (fun what at_the_end ->
            let gone = ref 0 in
            let t = T.create ~most:size ?evicted:(if has_hook then Some (fun _ _ -> incr gone) else None) () in
            for n = 1 to size do T.replace (K.make n) (V.make n) t done;
            let key = K.make 50 and v = V.make 1 in
            at_the_end (fun () -> T.replace key v t);
            usable what (fun () ->
                check (what ^ ": as many") (T.length t = size);
                if has_hook then check (what ^ ": handed on") (!gone = if T.mem key t then 1 else 0);
                whole what (T.check_table t);
                T.close t)))
      [ false; true ];
    each "table, filter" (fun what at_the_end ->
        let t = filled (Some size) (fun _ _ -> ()) in
        at_the_end (fun () -> T.filter (fun _ _ -> false) t);
        usable what (fun () -> whole what (T.check_table t); T.close t));
    each "map, remove" (fun what at_the_end ->
        let m = ref (M.create ()) in
        for n = 1 to 40 do m := M.add (K.make n) (V.make n) !m done;
        let key = K.make (1 + below 40) in
        at_the_end (fun () -> m := M.remove key !m);
        usable what (fun () ->
            match M.length !m with
            | n ->
                check (what ^ ": one less or not") (n = 40 - if M.mem key !m then 0 else 1);
                let number s = K.number (K.get s) in
                M.borrow !m (fun view -> ignore (Linear_maps.height number min_int max_int view));
                M.close !m
            | exception L.Moved -> collect ()));
    let even_and_odd () =
      let fill t n = M.add (K.make n) (V.make n) t in
      let all = List.init 60 Fun.id in
      let t = List.fold_left fill (M.create ()) all in
      (t, List.fold_left fill (M.create ()) (List.map (( * ) 3) all))
    in
    let sound t =
      M.borrow t (fun view ->
          let n = ref 0 in
          let number s = incr n; K.number (K.get s) in
          ignore (Linear_maps.height number min_int max_int view);
          check "its length" (!n = M.length t))
    in
    each "map, union" (fun what at_the_end ->
        let t, t' = even_and_odd () in
        let t = ref t in
        at_the_end (fun () -> t := M.union (fun _ a _ -> Some a) !t t');
        usable what (fun () ->
            match M.length !t with
            | n -> (
                sound !t;
                M.close !t;
                match M.length t' with
                | n' -> sound t'; check (what ^ ": all of them") (n + n' >= 100 && n + n' <= 120); M.close t'
                | exception L.Moved -> check (what ^ ": all of them") (n = 100))
            | exception L.Moved -> collect ()));
    each "map, split" (fun what at_the_end ->
        let t, t' = even_and_odd () and key = K.make 30 in
        let parts = ref None in
        M.close t';
        at_the_end (fun () -> parts := Some (M.split key t));
        usable what (fun () ->
            match (!parts, M.length t) with
            | _, n -> sound t; check (what ^ ": all of them") (n = 60); M.close t
            | exception L.Moved -> (
                match !parts with
                | Some (l, _, r) ->
                    sound l; sound r;
                    check (what ^ ": in parts") (M.length l = 30 && M.length r = 29);
                    M.close l; M.close r
                | None -> collect ())));
    each "queue, pop" (fun what at_the_end ->
        let q = Q.create () in
        for n = 1 to size do Q.push (V.make n) q done;
        at_the_end (fun () -> ignore (Q.pop q));
        usable what (fun () -> Q.push (V.make 1) q; Q.close q));
    each "list, uncons" (fun what at_the_end ->
        let l = N.of_list (List.init size V.make) in
        at_the_end (fun () -> ignore (N.uncons l));
        usable what (fun () -> match N.close l with () -> () | exception L.Moved -> collect ()))
end

module Ends_of_numbers = Ends (Linear_chains.Numbers) (Linear_chains.Numbers) ()
module Ends_of_texts = Ends (Linear_chains.Texts) (Linear_chains.Copied) ()
module Ends_of_copied = Ends (Linear_chains.Copied) (Linear_chains.Texts) ()

let depths () =
  if Sys.backend_type = Sys.Native && ocaml5 then
    Linear_stopped.near_the_end_of_the_stack (fun deepest ->
        Ends_of_numbers.run deepest;
        Ends_of_texts.run deepest;
        Ends_of_copied.run deepest)

(* SPDX-License-Identifier: MIT *)
(* Weak pointers and ephemerons. *)

open Foreign
open Cell

(* Foreign pointers stay in weak arrays; strings may go, or are kept by `kept`. *)
let weak c =
  let n = 1 + int c 20 in
  let its = Array.make n None in
  let kept = Array.make n (Obj.repr 0) in
  let w : Obj.t Weak.t = Weak.create n in
  let set c i =
    let it = item c in
    let v = value it in
    its.(i) <- Some (it, bool c);
    kept.(i) <- (match its.(i) with Some (_, true) -> v | _ -> Obj.repr 0);
    Weak.set w i (Some v) in
  for i = 0 to n - 1 do set c i done;
  { name = "weak"; drop = nothing;
    check = (fun () ->
      Array.iteri (fun i it ->
        match it with
        | None -> if Weak.check w i then wrong "weak: %d is not empty" i
        | Some (it, keeps) ->
          let stays = keeps || match it with Foreign _ | Int _ -> true | _ -> false in
          (match if i land 1 = 0 then Weak.get w i else Weak.get_copy w i with
           | Some v -> if not (holds it v) then wrong "weak: %d does not hold %s" i (text it)
           | None -> if stays then wrong "weak: %d lost %s" i (text it));
          if stays && not (Weak.check w i) then wrong "weak: check %d" i) its);
    change = (fun c ->
      match int c 6 with
      | 0 -> let i = int c n in its.(i) <- None; kept.(i) <- Obj.repr 0; Weak.set w i None
      | 1 when n > 2 ->
        let k = int c (n - 1) in
        Array.blit its 0 its k (n - k); Array.blit kept 0 kept k (n - k); Weak.blit w 0 w k (n - k)
      | _ -> set c (int c n)) }

(* Keys and data foreign or not. The data stays as long as the keys do. *)
let ephemeron c =
  let make c =
    let n = int c 5 in
    let keys = items c n and data = item_or_float c in
    let keep = bool c in
    let ks = values keys in
    let e = Obj.Ephemeron.create n in
    Array.iteri (fun i k -> Obj.Ephemeron.set_key e i k) ks;
    Obj.Ephemeron.set_data e (value data);
    let stay = keep || Array.for_all (function Foreign _ | Int _ -> true | _ -> false) keys in
    (e, keys, data, (if keep then ks else [||]), stay) in
  let state = ref (make c) in
  { name = "ephemeron"; drop = nothing;
    check = (fun () ->
      let e, keys, data, ks, stay = !state in
      (match Obj.Ephemeron.get_data e with
       | Some v -> if not (holds data v) then wrong "ephemeron: the data is not %s" (text data)
       | None -> if stay then wrong "ephemeron: lost its data %s" (text data));
      (match Obj.Ephemeron.get_data_copy e with
       | Some v -> if not (holds data v) then wrong "ephemeron: the copy of the data is not %s" (text data)
       | None -> if stay then wrong "ephemeron: lost its data %s" (text data));
      Array.iteri (fun i k ->
        match Obj.Ephemeron.get_key e i, Obj.Ephemeron.get_key_copy e i with
        | Some v, Some w -> if not (holds k v && holds k w) then wrong "ephemeron: key %d is not %s" i (text k)
        | None, None -> if stay then wrong "ephemeron: lost key %s" (text k)
        | Some _, None -> () (* between the two it can go *)
        | None, Some _ -> wrong "ephemeron: a copy of a key that is gone") keys;
      ignore (Sys.opaque_identity ks));
    change = (fun c ->
      let e, keys, data, ks, stay = !state in
      match int c 4 with
      | 0 -> state := make c
      | 1 ->
        (* a foreign key in place of any *)
        if Array.length keys > 0 then begin
          let i = int c (Array.length keys) and it = Foreign (pattern c) in
          keys.(i) <- it; if Array.length ks > 0 then ks.(i) <- Obj.repr 0;
          Obj.Ephemeron.set_key e i (value it)
        end
      | 2 when stay -> let data = Foreign (pattern c) in Obj.Ephemeron.set_data e (value data);
          state := (e, keys, data, ks, stay)
      | _ ->
        let n = Array.length keys in
        let f = Obj.Ephemeron.create n in
        Obj.Ephemeron.blit_key e 0 f 0 n;
        (* blit_data of 5.1 to 5.3 fails on data that is not marked yet *)
        if List.mem (String.sub Sys.ocaml_version 0 4) ["5.1."; "5.2."; "5.3."] then
          Option.iter (Obj.Ephemeron.set_data f) (Obj.Ephemeron.get_data e)
        else Obj.Ephemeron.blit_data e f;
        state := (f, keys, data, ks, stay)) }

module K = Ephemeron.K1
let ephemeron_table c =
  let module T = K.Make (struct type t = Obj.t let equal = (==) let hash (_ : t) = 3 end) in
  let t = T.create 8 and model = ref [] in
  let add c = let k = pattern c and d = item_or_float c in
    model := (k, d) :: List.remove_assoc k (List.filter (fun (j, _) -> foreign j != foreign k) !model);
    T.replace t (foreign k) (value d) in
  for _ = 1 to 1 + int c 10 do add c done;
  { name = "ephemeron-table"; drop = nothing;
    check = (fun () -> List.iter (fun (k, d) ->
      match T.find_opt t (foreign k) with
      | Some v -> if not (holds d v) then wrong "ephemeron-table: %s is not %s" (text (Foreign k)) (text d)
      | None -> wrong "ephemeron-table: lost %s" (text (Foreign k))) !model);
    change = add }

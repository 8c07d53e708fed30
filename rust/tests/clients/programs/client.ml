(* SPDX-License-Identifier: MIT *)
(* A random test of a table of roots kept by Rust, against a table kept here. *)

type v =
  | S of string
  | F of float
  | B of Bytes.t
  | L of int list
  | I of int64
  | A of float array
  | K of (int -> int)  (* compared by calling it *)
  | N

type holder

external keep : int -> v -> unit = "client_keep"
external get : int -> v = "client_get"
external update : int -> v -> unit = "client_update"
external drop : int -> unit = "client_drop"
external drop_elsewhere : int -> int -> int = "client_drop_elsewhere"
external count : unit -> int = "client_count"
external holder : v -> v -> holder = "client_holder"
external holder_first : holder -> v = "client_holder_first"
external apply : (v -> v) -> v -> (v, string) result = "client_apply"

let make n =
  match n mod 8 with
  | 0 -> S (string_of_int n)
  | 1 -> F (float n)
  | 2 -> B (Bytes.make (n mod 3000) 'b')
  | 3 -> L (List.init (n mod 20) (fun i -> n + i))
  | 4 -> I (Int64.of_int n)
  | 5 -> A (Array.init (n mod 30) float)
  | 6 -> K (fun x -> x + n)
  | _ -> N

let same a b =
  match (a, b) with K f, K g -> f 1 = g 1 | K _, _ | _, K _ -> false | _ -> a = b

let check what expected got = if not (same expected got) then failwith ("wrong value: " ^ what)

(* [run ~seed ~first ~keys ~steps] uses the keys first .. first + keys - 1 only, and leaves none of them behind. *)
let run ~seed ~first ~keys ~steps =
  let rng = Random.State.make [| seed |] in
  let int = Random.State.int rng in
  let mirror = Array.make keys None in
  let holders = Array.make 16 None in
  let forget i = mirror.(i) <- None in
  for step = 1 to steps do
    let i = int keys in
    let k = first + i in
    let n = int 1_000_000 in
    match mirror.(i) with
    | None ->
      keep k (make n);
      mirror.(i) <- Some n
    | Some m -> (
      match int 100 with
      | p when p < 40 -> check "get" (make m) (get k)
      | p when p < 60 ->
        update k (make n);
        mirror.(i) <- Some n
      | p when p < 85 ->
        drop k;
        forget i
      | p when p < 88 ->
        let last = min (keys - 1) (i + 20) in
        let expected = ref 0 in
        for j = i to last do
          if mirror.(j) <> None then incr expected;
          forget j
        done;
        if drop_elsewhere k (first + last) <> !expected then failwith "drop_elsewhere"
      | p when p < 91 ->
        let h = int 16 in
        Option.iter (fun (h, m) -> check "holder" (make m) (holder_first h)) holders.(h);
        holders.(h) <- Some (holder (make n) (make m), n)
      | p when p < 94 -> (
        match apply (fun v -> Gc.minor (); v) (make n) with
        | Ok w -> check "apply" (make n) w
        | Error e -> failwith e)
      | p when p < 97 -> (
        match apply (fun _ -> failwith "raised") (make n) with
        | Error "raised" -> ()
        | Error e -> failwith ("another exception: " ^ e)
        | Ok _ -> failwith "no exception")
      | 97 -> Gc.minor ()
      | 98 -> ignore (Gc.major_slice 0)
      | _ -> if int 20 = 0 then Gc.full_major () else if int 20 = 0 then Gc.compact ());
    if step mod 20_000 = 0 then
      Array.iteri (fun i m -> Option.iter (fun m -> check "round" (make m) (get (first + i))) m) mirror
  done;
  Array.iteri (fun i m -> if m <> None then drop (first + i)) mirror

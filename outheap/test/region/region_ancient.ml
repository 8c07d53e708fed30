(* SPDX-License-Identifier: MIT *)
(* The module Ancient: what programs do with it. *)
open Region_checks

let raises what wanted f =
  match f () with
  | _ -> check (what ^ ": no exception") false
  | exception e -> check (what ^ ": " ^ Printexc.to_string e) (wanted e)

let is_invalid text = function Invalid_argument t -> t = text | _ -> false

let ancient () =
  let table = Hashtbl.create 100 in
  for i = 1 to 1000 do Hashtbl.replace table (string_of_int i) (Array.make 3 i) done;
  let a, info = Ancient.mark_info table in
  check "size" (info.i_size > 1000 * 8 * 8);
  check "follow" (Hashtbl.find (Ancient.follow a) "17" = [| 17; 17; 17 |]);
  check "is_ancient" (Ancient.is_ancient (Ancient.follow a));
  check "is not" (not (Ancient.is_ancient table || Ancient.is_ancient 3));
  check "address_of" (Ancient.address_of (Ancient.follow a) <> 0n && Ancient.address_of 3 = 0n);
  let kept = Hashtbl.find (Ancient.follow a) "99" in
  Ancient.delete a;
  raises "deleted" (is_invalid "deleted") (fun () -> ignore (Ancient.follow a));
  raises "deleted twice" (is_invalid "deleted") (fun () -> Ancient.delete a);
  majors 3;
  check "what is held stays" (kept = [| 99; 99; 99 |]);
  raises "channels" (function Invalid_argument _ -> true | _ -> false) (fun () -> ignore (Ancient.mark (Some stdout)));
  let path = Filename.temp_file "region" ".ancient" in
  Fun.protect ~finally:(fun () -> Sys.remove path) @@ fun () ->
  let opened () = Unix.openfile path [ Unix.O_RDWR ] 0o600 in
  let md = Ancient.attach (opened ()) 0x440000000000n in
  let words : string list Ancient.ancient = Ancient.share md 0 [ "a"; "b" ] in
  check "shared" (Ancient.follow words = [ "a"; "b" ]);
  let (_ : (int * string) array Ancient.ancient) =
    Ancient.share md Ancient.max_key (Array.init 5000 (fun i -> (i, string_of_int i))) in
  raises "no key" (( = ) Not_found) (fun () -> ignore (Ancient.get md 5 : int Ancient.ancient));
  raises "a bad key" (function Invalid_argument _ -> true | _ -> false)
    (fun () -> ignore (Ancient.get md (Ancient.max_key + 1) : int Ancient.ancient));
  (match Unix.fork () with
  | 0 ->
      let md = Ancient.attach (opened ()) 0n in
      let numbers : (int * string) array = Ancient.follow (Ancient.get md Ancient.max_key) in
      Unix._exit (if Ancient.follow (Ancient.get md 0) = [ "a"; "b" ] && numbers.(4999) = (4999, "4999") then 0 else 1)
  | pid -> check "another process" (snd (Unix.waitpid [] pid) = Unix.WEXITED 0));
  let (_ : string Ancient.ancient) = Ancient.share md 0 "again" in
  check "replaced" (Ancient.follow (Ancient.get md 0) = "again" && Ancient.follow words = [ "a"; "b" ]);
  Ancient.detach md;
  raises "detached"
    (function Invalid_argument _ -> true | _ -> false)
    (fun () -> ignore (Ancient.get md 0 : int Ancient.ancient));
  let other = Filename.temp_file "region" ".text" in
  Out_channel.with_open_bin other (fun c -> Out_channel.output_string c (String.make 100_000 'x'));
  raises "another file" (function Failure _ -> true | _ -> false)
    (fun () -> ignore (Ancient.attach (Unix.openfile other [ Unix.O_RDONLY ] 0) 0n));
  Sys.remove other

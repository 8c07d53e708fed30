(* SPDX-License-Identifier: MIT *)
(* Settings of the environment, which a program with more rights than its caller ignores. The program runs itself. *)
open Linear_checks
module Q = Lists.Make (Ints) ()

let read file = In_channel.with_open_bin file In_channel.input_all

(* Mappings for which huge pages are advised. *)
let advised () =
  let is_advised line = String.starts_with ~prefix:"VmFlags:" line && List.mem "hg" (String.split_on_char ' ' line) in
  List.length (List.filter is_advised (String.split_on_char '\n' (read "/proc/self/smaps")))

(* AT_SECURE *)
let has_rights () =
  let words = read "/proc/self/auxv" in
  let rec go at =
    at + 16 <= String.length words
    && if String.get_int64_ne words at = 23L then String.get_int64_ne words (at + 8) <> 0L else go (at + 16)
  in
  go 0

(* Does a large pool get huge pages? *)
let child () =
  let before = advised () and q = ref (Q.create ()) in
  for i = 1 to 600_000 do q := Q.cons i !q done;
  let more = advised () > before in
  Q.close !q;
  exit (Bool.to_int more + if has_rights () then 2 else 0)

let run program settings =
  let settings = Array.of_list (List.map (( ^ ) "OUTHEAP=") settings) in
  let words = [| "linear"; "large-pool" |] in
  let pid = Unix.create_process_env program words settings Unix.stdin Unix.stdout Unix.stderr in
  match snd (Unix.waitpid [] pid) with Unix.WEXITED code -> code | _ -> -1

let privileged () =
  if Sys.file_exists "/proc/self/smaps" && Unix.geteuid () = 0 && run Sys.executable_name [] = 1 then begin
    check "no huge pages" (run Sys.executable_name [ "thp=off" ] = 0);
    let copy = Filename.temp_file "linear" "" in
    Fun.protect ~finally:(fun () -> Sys.remove copy) @@ fun () ->
    Out_channel.with_open_bin copy (fun c -> Out_channel.output_string c (read "/proc/self/exe"));
    Unix.chown copy 0 1;
    Unix.chmod copy 0o2755;
    (* In a folder of this kind no program has more rights: 0. *)
    let code = run copy [ "thp=off" ] in
    check "its caller has changed a setting" (code = 3 || code = 0)
  end

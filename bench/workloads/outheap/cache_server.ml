(* SPDX-License-Identifier: MIT *)
(* A cache server: one thread, which waits for all connections, executes what has come, and sends the replies when the
   store has ended its turn. *)
module S = Cache_stores
module H = Cache_histogram

let now () = int_of_float (Bench.wall () *. 1e9)

(* Nanoseconds, of requests: each from when it was read until its reply was written; and of its understanding and
   execution alone, in which the turn of a store has no part. *)
type times = { service : H.t; handled : H.t }

type connection = { fd : Unix.file_descr; input : Resp.input; replies : Buffer.t }

let execute (store : S.store) times b words =
  match List.mapi (fun n word -> if n = 0 then String.uppercase_ascii word else word) words with
  | [ "GET"; k ] -> ( match store.get k with Some text -> Resp.bulk b text | None -> Resp.line b '$' "-1")
  | [ "SET"; k; text ] ->
      store.set k text;
      Resp.line b '+' "OK"
  | [ "DBSIZE" ] -> Resp.line b ':' (string_of_int (store.length ()))
  | [ "PING" ] -> Resp.line b '+' "PONG"
  | [ "INFO"; _ ] ->
      Resp.bulk b (Printf.sprintf "service:%s\nhandled:%s\n" (H.to_string times.service) (H.to_string times.handled))
  | [ "CONFIG"; "RESETSTAT" ] ->
      H.reset times.service;
      H.reset times.handled;
      Resp.line b '+' "OK"
  | [ "CONFIG"; _; name ] -> Resp.array b [ name; "" ] (* nothing is saved *)
  | _ -> Resp.line b '-' "ERR unknown command"

(* The requests that have come; how many. *)
let serve store times c =
  let rec go served began =
    match Resp.request c.input with
    | None -> served
    | Some words ->
        (try execute store times c.replies words with Failure why -> Resp.line c.replies '-' ("ERR " ^ why));
        let ended = now () in
        H.add times.handled (ended - began);
        go (served + 1) ended
  in
  go 0 (now ())

(* Serves until SIGTERM. *)
let run (store : S.store) path =
  let stopped = ref false in
  Sys.set_signal Sys.sigpipe Signal_ignore;
  Sys.set_signal Sys.sigterm (Signal_handle (fun _ -> stopped := true));
  let listener = Unix.socket ~cloexec:true PF_UNIX SOCK_STREAM 0 in
  Unix.bind listener (ADDR_UNIX path);
  Unix.listen listener 511;
  let times = { service = H.create (); handled = H.create () } in
  let rec loop connections =
    if not !stopped then begin
      let watched = listener :: List.map (fun c -> c.fd) connections in
      let readable = try (fun (r, _, _) -> r) (Unix.select watched [] [] 1.) with Unix.Unix_error (EINTR, _, _) -> [] in
      let touched = List.filter (fun c -> List.memq c.fd readable) connections in
      let answered =
        List.map
          (fun c ->
            let came = now () in
            if Resp.receive c.input c.fd = 0 then (c, came, -1) else (c, came, serve store times c))
          touched
      in
      store.turn ();
      List.iter
        (fun (c, came, answers) ->
          if answers < 0 then Unix.close c.fd
          else begin
            Resp.flush c.replies c.fd;
            if answers > 0 then H.add_times times.service (now () - came) answers
          end)
        answered;
      let ended = List.filter_map (fun (c, _, answers) -> if answers < 0 then Some c else None) answered in
      let connections = List.filter (fun c -> not (List.memq c ended)) connections in
      if List.memq listener readable then
        let fd, _ = Unix.accept ~cloexec:true listener in
        loop ({ fd; input = Resp.input (); replies = Buffer.create 4096 } :: connections)
      else loop connections
    end
  in
  loop []

(* SPDX-License-Identifier: MIT *)
(* A cache server: one thread, which waits for all connections, executes what has come, and sends the replies when the
   store has ended its turn. *)
module R = Cache_resp
module S = Cache_stores
module H = Cache_histogram

module Poll = struct
  type t = int

  external create : unit -> t = "cache_poll_new"
  external watch : t -> Unix.file_descr -> int -> known:bool -> unit = "cache_poll_watch"
  external wait : t -> int array -> int -> int = "cache_poll_wait"
  external number : Unix.file_descr -> int = "%identity"

  let input = 1
  let output = 2
end

external now : unit -> int = "cache_now" [@@noalloc]

(* Nanoseconds, of requests: each from when it was read until its reply was written (of those whose replies wait for a
   client together, from when the first one was read); and of its understanding and execution alone, in which the turn
   of a store has no part. *)
type times = { service : H.t; handled : H.t }

type connection = {
  fd : Unix.file_descr;
  input : R.input;
  replies : Buffer.t;
  mutable sent : int; (* bytes of [replies] *)
  mutable came : int; (* when what is answered next was read *)
  mutable answers : int; (* replies since [replies] was empty *)
  mutable watched : int;
  mutable ends : bool; (* when its replies are sent *)
  mutable gone : bool;
}

(* A client that does not read its replies is not served while so many bytes wait for it. *)
let most_waiting = 1 lsl 20
let at_once = 65536

(* --- commands ----------------------------------------------------------------------------------------------------- *)

let latency times =
  Printf.sprintf "# Latency, nanoseconds\r\nservice:%s\r\nhandled:%s\r\n" (H.to_string times.service)
    (H.to_string times.handled)

let information name ~most (store : S.store) =
  let resident = float (Heap.proc_kilobytes "/proc/self/status" "VmRSS:") *. 1024. in
  Printf.sprintf "# Server\r\nredis_mode:standalone\r\nstore:%s\r\nmost:%d\r\n# Memory\r\nused_memory_rss:%.0f\r\n\
                  # Keyspace\r\ndb0:keys=%d\r\n" name most resident (store.length ())

let execute name ~most (store : S.store) times c words =
  let b = c.replies in
  let wrong_number command = R.error b (Printf.sprintf "ERR %s has another number of arguments" command) in
  let count f keys = R.integer b (List.fold_left (fun n k -> if f k then n + 1 else n) 0 keys) in
  match words with
  | [] -> ()
  | command :: arguments -> (
      match (String.uppercase_ascii command, arguments) with
      | "GET", [ k ] -> ( match store.get k with Some text -> R.bulk b text | None -> R.nothing b)
      | "SET", [ k; text ] ->
          store.set k text;
          R.simple b "OK"
      | "SET", _ :: _ :: _ :: _ -> R.error b "ERR SET has no options here"
      | "DEL", _ :: _ -> count store.remove arguments
      | "EXISTS", _ :: _ -> count store.mem arguments
      | "DBSIZE", [] -> R.integer b (store.length ())
      | ("FLUSHALL" | "FLUSHDB"), [] ->
          store.clear ();
          R.simple b "OK"
      | "PING", [] -> R.simple b "PONG"
      | ("PING" | "ECHO"), [ text ] -> R.bulk b text
      | "INFO", [ part ] when String.lowercase_ascii part = "latency" -> R.bulk b (latency times)
      | "INFO", _ -> R.bulk b (information name ~most store)
      | "CONFIG", [ reset ] when String.uppercase_ascii reset = "RESETSTAT" ->
          H.reset times.service;
          H.reset times.handled;
          R.simple b "OK"
      | "DEBUG", [ sleep; seconds ]
        when String.uppercase_ascii sleep = "SLEEP" && float_of_string_opt seconds <> None ->
          Unix.sleepf (Float.max 0. (Float.min 60. (float_of_string seconds)));
          R.simple b "OK"
      | "SELECT", [ "0" ] -> R.simple b "OK"
      | "SELECT", [ _ ] -> R.error b "ERR there is one database, 0"
      | "CONFIG", [ get; name ] when String.uppercase_ascii get = "GET" ->
          (* nothing is saved, and what has to go is what was not used for longest *)
          R.array_of b 2;
          R.bulk b name;
          R.bulk b (if name = "maxmemory-policy" then "allkeys-lru" else "")
      | "COMMAND", _ -> R.array_of b 0
      | "QUIT", [] ->
          R.simple b "OK";
          c.ends <- true
      | (("GET" | "SET" | "DEL" | "EXISTS" | "DBSIZE" | "FLUSHALL" | "FLUSHDB" | "PING" | "ECHO" | "SELECT" | "QUIT")
         as command), _ -> wrong_number command
      | other, _ ->
          R.error b (Printf.sprintf "ERR unknown command '%s'" (String.sub other 0 (min 100 (String.length other)))))

(* The requests that have come, as long as there is room for their replies. What is no request ends the connection. *)
let serve name ~most store times c =
  let rec go began =
    if (not c.ends) && Buffer.length c.replies - c.sent < most_waiting then
      match R.request c.input with
      | None -> ()
      | Some words ->
          (try execute name ~most store times c words with
          | S.Refused why | Failure why -> R.error c.replies ("ERR " ^ why)
          | Out_of_memory -> R.error c.replies "OOM there is no memory left");
          c.answers <- c.answers + 1;
          let ended = now () in
          H.add times.handled (ended - began);
          go ended
      | exception R.Malformed why ->
          R.error c.replies ("ERR Protocol error: " ^ why);
          c.ends <- true
  in
  go (now ())

(* --- connections -------------------------------------------------------------------------------------------------- *)

let gone c = c.gone <- true

let receive c =
  R.make_room c.input at_once;
  if c.answers = 0 then c.came <- now ();
  match Unix.read c.fd c.input.bytes c.input.until at_once with
  | 0 -> gone c
  | n -> c.input.until <- c.input.until + n
  | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()
  | exception Unix.Unix_error _ -> gone c

let rec send times c =
  let waiting = Buffer.length c.replies - c.sent in
  if waiting > 0 then
    let n = min waiting at_once in
    match Unix.write_substring c.fd (Buffer.sub c.replies c.sent n) 0 n with
    | n ->
        c.sent <- c.sent + n;
        send times c
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK), _, _) -> ()
    | exception Unix.Unix_error (EINTR, _, _) -> send times c
    | exception Unix.Unix_error _ -> gone c
  else begin
    if c.sent > most_waiting then Buffer.reset c.replies else Buffer.clear c.replies;
    c.sent <- 0;
    if c.answers > 0 then H.add_times times.service (now () - c.came) c.answers;
    c.answers <- 0;
    if c.ends then gone c
  end

(* When the store has lost what these clients wrote, they are not told that it has it. *)
let ends_turn (store : S.store) clients =
  match store.turn () with
  | () -> true
  | exception (Failure why | S.Refused why) ->
      prerr_endline ("cache: " ^ why);
      List.iter gone clients;
      false

let listen address =
  let domain = Unix.domain_of_sockaddr address in
  let listener = Unix.socket ~cloexec:true domain SOCK_STREAM 0 in
  if domain = PF_INET then Unix.setsockopt listener SO_REUSEADDR true;
  Unix.bind listener address;
  Unix.listen listener 511;
  Unix.set_nonblock listener;
  listener

(* Serves until SIGTERM. *)
let run name (store : S.store) ~most address =
  let stopped = ref false in
  Sys.set_signal Sys.sigpipe Signal_ignore;
  Sys.set_signal Sys.sigterm (Signal_handle (fun _ -> stopped := true));
  let poll = Poll.create () and listener = listen address in
  Poll.watch poll listener Poll.input ~known:false;
  let times = { service = H.create (); handled = H.create () } in
  let connections = Hashtbl.create 64 and events = Array.make 256 0 in
  let rec accept () =
    match Unix.accept ~cloexec:true listener with
    | fd, _ ->
        Unix.set_nonblock fd;
        if Unix.domain_of_sockaddr address = PF_INET then Unix.setsockopt fd TCP_NODELAY true;
        let c =
          { fd; input = R.input (); replies = Buffer.create 4096; sent = 0; came = 0; answers = 0;
            watched = Poll.input; ends = false; gone = false }
        in
        Hashtbl.replace connections (Poll.number fd) c;
        Poll.watch poll fd c.watched ~known:false;
        accept ()
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR | ECONNABORTED | EMFILE | ENFILE), _, _) -> ()
  in
  let finish c =
    if c.gone then begin
      Hashtbl.remove connections (Poll.number c.fd);
      Unix.close c.fd
    end
    else begin
      let waiting = Buffer.length c.replies - c.sent in
      let wanted =
        (if waiting < most_waiting && not c.ends then Poll.input else 0) lor if waiting > 0 then Poll.output else 0
      in
      if wanted <> c.watched then begin
        Poll.watch poll c.fd wanted ~known:true;
        c.watched <- wanted
      end
    end
  in
  while not !stopped do
    let n = Poll.wait poll events 1000 in
    let touched = ref [] in
    for i = 0 to n - 1 do
      match Hashtbl.find_opt connections (events.(i) lsr 2) with
      | Some c ->
          if events.(i) land c.watched land Poll.input <> 0 then receive c;
          if not c.gone then serve name ~most store times c;
          touched := c :: !touched
      | None -> accept ()
    done;
    if ends_turn store !touched then
      List.iter
        (fun c ->
          if not c.gone then send times c;
          (* There may be requests that had no room for their replies. *)
          while
            (not (c.gone || c.ends))
            && Buffer.length c.replies = 0
            && (serve name ~most store times c; Buffer.length c.replies > 0)
          do
            if ends_turn store [ c ] then send times c
          done)
        !touched;
    List.iter finish !touched
  done;
  Hashtbl.iter (fun _ c -> Unix.close c.fd) connections;
  Unix.close listener;
  store.close ()

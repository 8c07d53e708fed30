(* SPDX-License-Identifier: MIT *)
(* A client that loads a cache server: first as fast as it answers, then at a fixed rate. Then requests are due at equal
   distances, and sent then, whatever the server does; the latency of each counts from when it was due, not from when it
   was sent. So a pause of the server counts for all requests that came meanwhile ("coordinated omission" is what hides
   them in a client that waits for replies). If the client itself comes late, that counts too, and is told. *)
module R = Cache_resp
module H = Cache_histogram
module Poll = Cache_server.Poll

type connection = {
  fd : Unix.file_descr;
  input : R.input;
  requests : Buffer.t;
  mutable sent : int; (* bytes of [requests] *)
  mutable next : int; (* awaited reply *)
}

let connect path =
  let fd = Unix.socket ~cloexec:true PF_UNIX SOCK_STREAM 0 in
  match Unix.connect fd (ADDR_UNIX path) with
  | () ->
      Unix.set_nonblock fd;
      { fd; input = R.input (); requests = Buffer.create 65536; sent = 0; next = 0 }
  | exception e ->
      Unix.close fd;
      raise e

let scattered i = ((i * 0x1E3779B97F4A7C15) lsr 20) land 0xffff_ffff

(* As redis-benchmark names them. *)
let key k = Printf.sprintf "key:%012d" k

(* The text of a key: 17 to 60 bytes, which differ with each writing. *)
let text k ~version =
  let start = string_of_int k ^ ":" in
  start ^ String.make (17 + (scattered (k + (version * 7919)) mod 40) - min 12 (String.length start)) 'd'

let is_text_of k s =
  let start = string_of_int k ^ ":" in
  String.length s > String.length start && String.sub s 0 (String.length start) = start

let receive c =
  R.make_room c.input 65536;
  match Unix.read c.fd c.input.bytes c.input.until 65536 with
  | 0 -> Bench.fail "the server has closed a connection"
  | n -> c.input.until <- c.input.until + n
  | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()

let send c =
  let waiting = Buffer.length c.requests - c.sent in
  if waiting > 0 then begin
    let part = Buffer.sub c.requests c.sent (min waiting 65536) in
    match Unix.write_substring c.fd part 0 (String.length part) with
    | n ->
        c.sent <- c.sent + n;
        if n = waiting then begin
          Buffer.clear c.requests;
          c.sent <- 0
        end
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()
  end

let described = function
  | R.Simple s | R.Error s | R.Bulk s -> s
  | R.Integer n -> string_of_int n
  | R.Nothing -> "nothing"

(* All replies that have come. *)
let rec replies c f =
  match R.reply c.input with
  | Some reply ->
      f reply;
      replies c f
  | None -> ()

(* Writes each of the keys 0 to entries - 1 once, in scattered order (entries is no multiple of the odd step), with so
   many requests on their way. Result: the longest time from a request to its reply, in seconds. *)
let fill path ~entries =
  let on_way = 256 in
  let rec gcd a b = if b = 0 then a else gcd b (a mod b) in
  let rec coprime step = if gcd step entries = 1 then step else coprime (step + 2) in
  let step = coprime 654_435_761 in
  let c = connect path and sent = ref 0 and longest = ref 0. in
  let began = Array.make on_way 0. in
  let poll = Poll.create () and events = Array.make 8 0 in
  Poll.watch poll c.fd Poll.input ~known:false;
  while c.next < entries do
    let now = Bench.wall () in
    while !sent < entries && !sent - c.next < on_way do
      let k = !sent * step mod entries in
      R.command c.requests [ "SET"; key k; text k ~version:0 ];
      began.(!sent mod on_way) <- now;
      incr sent
    done;
    send c;
    ignore (Poll.wait poll events (if Buffer.length c.requests = 0 then 1000 else 0));
    receive c;
    let now = Bench.wall () in
    replies c (fun reply ->
        if reply <> R.Simple "OK" then Bench.fail "SET: %s" (described reply);
        longest := Float.max !longest (now -. began.(c.next mod on_way));
        c.next <- c.next + 1)
  done;
  Unix.close c.fd;
  !longest

(* [requests] at [rate] for each second, over some connections in turn; half of them read, half replace, of keys at
   random. When the first have been sent the server is told to sleep for [pause] seconds. In nanoseconds: the latencies,
   and how late the client was to send. *)
let at_rate path ~pause ~entries ~requests ~rate ~connections =
  let latencies = H.create () and late = H.create () in
  let all = Array.init connections (fun n -> { (connect path) with next = n }) in
  let by_fd = Hashtbl.create 64 in
  let poll = Poll.create () and events = Array.make 64 0 in
  Array.iter
    (fun c ->
      Hashtbl.replace by_fd (Poll.number c.fd) c;
      Poll.watch poll c.fd Poll.input ~known:false)
    all;
  (* What request i is follows from i. *)
  let key_of i = scattered i mod entries and reads i = scattered (i + 77_777) land 1 = 0 in
  let start = Cache_server.now () + 10_000_000 and distance = 1e9 /. rate in
  let due i = start + int_of_float (float i *. distance) in
  let sent = ref 0 and answered = ref 0 and paused = ref (pause <= 0.) in
  let other = connect path in
  while !answered < requests do
    let now = Cache_server.now () in
    while !sent < requests && due !sent <= now do
      let k = key_of !sent and c = all.(!sent mod connections) in
      H.add late (now - due !sent);
      R.command c.requests (if reads !sent then [ "GET"; key k ] else [ "SET"; key k; text k ~version:!sent ]);
      incr sent
    done;
    Array.iter send all;
    if !sent > 0 && not !paused then begin
      R.command other.requests [ "DEBUG"; "SLEEP"; string_of_float pause ];
      send other;
      paused := true
    end;
    let n = Poll.wait poll events 0 in
    for e = 0 to n - 1 do
      let c = Hashtbl.find by_fd (events.(e) lsr 2) in
      receive c;
      let now = Cache_server.now () in
      replies c (fun reply ->
          let i = c.next in
          let k = key_of i in
          (match reply with
          | R.Simple "OK" when not (reads i) -> ()
          | R.Bulk s when reads i && is_text_of k s -> ()
          | other -> Bench.fail "request %d, key %d: %s" i k (described other));
          H.add latencies (now - due i);
          c.next <- i + connections;
          incr answered)
    done
  done;
  Array.iter (fun c -> Unix.close c.fd) all;
  Unix.close other.fd;
  (latencies, late)

(* The reply to one request. *)
let ask path words =
  let c = connect path in
  Unix.clear_nonblock c.fd;
  R.command c.requests words;
  send c;
  let rec await () =
    match R.reply c.input with
    | Some reply -> reply
    | None ->
        receive c;
        await ()
  in
  let reply = await () in
  Unix.close c.fd;
  reply

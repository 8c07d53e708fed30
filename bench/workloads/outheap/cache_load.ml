(* SPDX-License-Identifier: MIT *)
(* A client that loads a cache server: first as fast as it answers, then at a fixed rate. Then requests are due at equal
   distances, and sent then, whatever the server does; the latency of each counts from when it was due, not from when it
   was sent. So a pause of the server counts for all requests that came meanwhile ("coordinated omission" is what hides
   them in a client that waits for replies). If the client itself comes late, that counts too, and is told. *)
module H = Cache_histogram

type connection = {
  fd : Unix.file_descr;
  input : Resp.input;
  requests : Buffer.t;
  mutable sent : int; (* bytes of [requests] *)
  mutable next : int; (* awaited reply *)
}

let connect path =
  let fd = Unix.socket ~cloexec:true PF_UNIX SOCK_STREAM 0 in
  match Unix.connect fd (ADDR_UNIX path) with
  | () -> { fd; input = Resp.input (); requests = Buffer.create 65536; sent = 0; next = 0 }
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

let receive c = if Resp.receive c.input c.fd = 0 then Bench.fail "the server has closed a connection"

(* Those of [all] for which something has come, within so many seconds. *)
let ready all seconds =
  let readable, _, _ = Unix.select (List.map (fun c -> c.fd) all) [] [] seconds in
  List.filter (fun c -> List.memq c.fd readable) all

let send c =
  let waiting = Buffer.length c.requests - c.sent in
  if waiting > 0 then begin
    let part = Buffer.sub c.requests c.sent (min waiting 65536) in
    match Unix.single_write_substring c.fd part 0 (String.length part) with
    | n ->
        c.sent <- c.sent + n;
        if n = waiting then begin
          Buffer.clear c.requests;
          c.sent <- 0
        end
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()
  end

let described = function
  | Resp.Simple s | Resp.Error s | Resp.Bulk s -> s
  | Resp.Integer n -> string_of_int n
  | Resp.Nothing -> "nothing"

(* All replies that have come. *)
let rec replies c f =
  match Resp.reply c.input with
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
  while c.next < entries do
    let now = Bench.wall () in
    while !sent < entries && !sent - c.next < on_way do
      let k = !sent * step mod entries in
      Resp.array c.requests [ "SET"; key k; text k ~version:0 ];
      began.(!sent mod on_way) <- now;
      incr sent
    done;
    send c;
    List.iter receive (ready [ c ] (if Buffer.length c.requests = 0 then 1. else 0.));
    let now = Bench.wall () in
    replies c (fun reply ->
        if reply <> Resp.Simple "OK" then Bench.fail "SET: %s" (described reply);
        longest := Float.max !longest (now -. began.(c.next mod on_way));
        c.next <- c.next + 1)
  done;
  Unix.close c.fd;
  !longest

(* [requests] at [rate] for each second, over some connections in turn; half of them read, half replace, of keys at
   random. In nanoseconds: the latencies, and how late the client was to send. *)
let at_rate path ~entries ~requests ~rate ~connections =
  let latencies = H.create () and late = H.create () in
  let all = Array.init connections (fun n -> { (connect path) with next = n }) in
  Array.iter (fun c -> Unix.set_nonblock c.fd) all;
  (* What request i is follows from i. *)
  let key_of i = scattered i mod entries and reads i = scattered (i + 77_777) land 1 = 0 in
  let start = Cache_server.now () + 10_000_000 and distance = 1e9 /. rate in
  let due i = start + int_of_float (float i *. distance) in
  let sent = ref 0 and answered = ref 0 and listed = Array.to_list all in
  while !answered < requests do
    let now = Cache_server.now () in
    while !sent < requests && due !sent <= now do
      let k = key_of !sent and c = all.(!sent mod connections) in
      H.add late (now - due !sent);
      Resp.array c.requests (if reads !sent then [ "GET"; key k ] else [ "SET"; key k; text k ~version:!sent ]);
      incr sent
    done;
    Array.iter send all;
    List.iter
      (fun c ->
        receive c;
        let now = Cache_server.now () in
        replies c (fun reply ->
            let i = c.next in
            let k = key_of i in
            (match reply with
            | Resp.Simple "OK" when not (reads i) -> ()
            | Resp.Bulk s when reads i && is_text_of k s -> ()
            | other -> Bench.fail "request %d, key %d: %s" i k (described other));
            H.add latencies (now - due i);
            c.next <- i + connections;
            incr answered))
      (ready listed 0.)
  done;
  Array.iter (fun c -> Unix.close c.fd) all;
  (latencies, late)

(* The reply to one request. *)
let ask path words =
  let c = connect path in
  Resp.array c.requests words;
  Resp.flush c.requests c.fd;
  let rec await () =
    match Resp.reply c.input with
    | Some reply -> reply
    | None ->
        receive c;
        await ()
  in
  let reply = await () in
  Unix.close c.fd;
  reply

(* SPDX-License-Identifier: MIT *)
(* A cipher is an address in OpenSSL's own table. OCaml's data refer to some while the collector marks. Prints `whole`
   if the table is what it was, or the first cipher whose number of bits has changed.
   ciphers.exe CERTIFICATE KEY CIPHER… *)

(* Names and numbers of bits, as OpenSSL's table has them. *)
external table : unit -> (string * int) array = "ciphers_table"

let certificate, key, wanted =
  match Array.to_list Sys.argv with
  | _ :: certificate :: key :: (_ :: _ as wanted) -> certificate, key, wanted
  | _ -> prerr_endline "ciphers.exe CERTIFICATE KEY CIPHER..."; exit 2

let serve socket =
  let context = Ssl.create_context Ssl.TLSv1_2 Ssl.Server_context in
  Ssl.use_certificate context certificate key;
  let connection = Ssl.embed_socket socket context in
  Ssl.accept connection;
  ignore (Ssl.read connection (Bytes.create 1) 0 1);
  Unix._exit 0

(* The cipher of a connection to a child. *)
let connect name =
  let here, there = Unix.socketpair Unix.PF_UNIX Unix.SOCK_STREAM 0 in
  match Unix.fork () with
  | 0 -> Unix.close here; serve there
  | child ->
      Unix.close there;
      let context = Ssl.create_context Ssl.TLSv1_2 Ssl.Client_context in
      Ssl.set_cipher_list context name;
      let connection = Ssl.embed_socket here context in
      Ssl.connect connection;
      let cipher = Ssl.get_cipher connection in
      ignore (Ssl.write connection (Bytes.of_string "x") 0 1);
      ignore (Unix.waitpid [] child);
      Unix.close here;
      cipher

let () =
  Ssl.init ();
  let before = table () in
  let kept = List.map (fun name -> connect name, name) wanted in
  for _ = 1 to 4 do
    Gc.full_major ()
  done;
  List.iter (fun (cipher, name) -> if Ssl.get_cipher_name cipher <> name then failwith name) kept;
  let compare (name, bits) (_, now) =
    if bits <> now then (Printf.printf "%s: %d bits are %d now\n" name bits now; exit 1)
  in
  Array.iter2 compare before (table ());
  print_endline "whole"

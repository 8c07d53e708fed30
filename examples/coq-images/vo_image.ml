(* SPDX-License-Identifier: MIT *)
(* The library segment of a .vo file, from an image that lies beside the file. The image is made on demand, of what
   Marshal reads. Its schema has the digest of the segment, so that the image of another version of the file is never
   taken. Whatever goes wrong, the segment is read as before. COQ_IMAGES=no: no images. *)
module R = Outheap_region

let wanted = Sys.getenv_opt "COQ_IMAGES" <> Some "no"

let load ~file handle ~segment =
  let read () = ObjFile.marshal_in_segment handle ~segment in
  if not wanted then read ()
  else
    let digest = (ObjFile.get_segment handle ~segment).ObjFile.hash in
    let schema = R.schema ~name:("coq-library-" ^ Digest.to_hex digest) ~version:1 in
    let path = file ^ ".image" in
    match R.map schema ~path () with
    | Ok root -> (R.get root, digest)
    | Error _ ->
      let (data, _) as result = read () in
      (match Unix.access (Filename.dirname file) [ Unix.W_OK ] with
       | exception Unix.Unix_error _ -> result
       | () ->
         match R.save schema ~path data with
         | Error _ -> result
         | Ok () -> (match R.map schema ~path () with Ok root -> (R.get root, digest) | Error _ -> result))

(* SPDX-License-Identifier: MIT *)
(* When an image is made, taken, made again, and left alone. *)
let file = "library.vo"
let image = file ^ ".image"
let check what ok = if not ok then (prerr_endline ("FAIL: " ^ what); exit 1)

(* Loads the file: does it have this value, is it from an image, and how often was the file read? *)
let load v ~mapped ~reads what =
  ObjFile.reads := 0;
  let loaded, digest = Vo_image.load ~file file ~segment:"library" in
  check (what ^ ": value") (loaded = v && digest = (ObjFile.get_segment file ~segment:"library").hash);
  check (what ^ ": place") (Outheap_region.is_in_region (Obj.repr loaded) = mapped);
  check (what ^ ": reads") (!ObjFile.reads = reads)

let () =
  let first = List.init 1000 (fun i -> (i, string_of_int i)) in
  let second = List.map (fun (i, s) -> (i, s ^ s)) first in
  ObjFile.write file first;
  if Sys.argv.(1) = "off" then (
    load first ~mapped:false ~reads:1 "COQ_IMAGES=no";
    check "no image" (not (Sys.file_exists image)))
  else (
    load first ~mapped:true ~reads:1 "makes an image";
    check "image" (Sys.file_exists image);
    load first ~mapped:true ~reads:0 "takes it";
    ObjFile.write file second;
    load second ~mapped:true ~reads:1 "another version of the file";
    load second ~mapped:true ~reads:0 "its image";
    Sys.remove image; (* a file that is mapped must not be changed in place *)
    Out_channel.with_open_bin image (fun c -> output_string c "no image");
    load second ~mapped:true ~reads:1 "a damaged image";
    Sys.remove image;
    ObjFile.write file first;
    Sys.mkdir image 0o755 (* nothing can be written there *);
    load first ~mapped:false ~reads:1 "an image that cannot be written";
    Sys.rmdir image);
  Sys.remove file;
  print_endline "vo_image: passed"

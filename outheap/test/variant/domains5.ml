(* SPDX-License-Identifier: MIT *)
(* OCaml 5: domains that come and go while heaps grow and are compacted; minor heaps of another size meanwhile. *)
let churn () =
  for round = 1 to 6 do
    let domains = List.init 3 (fun i -> Domain.spawn (fun () -> Work.run ((round * 10) + i))) in
    Gc.set { (Gc.get ()) with minor_heap_size = 32_768 * round };
    Work.run round;
    List.iter Domain.join domains
  done

let threads () =
  let t = List.init 4 (fun i -> Thread.create Work.run i) in
  List.iter Thread.join t

let tests = [ ("domains", churn); ("threads", threads) ]

let spawn f = let d = Domain.spawn f in fun () -> Domain.join d
let recommended = 4

let run n work =
  let domains = List.init (n - 1) (fun i -> Domain.spawn (work (i + 1))) in
  work 0 ();
  List.iter Domain.join domains

let spawn f = let r = f () in fun () -> r
let recommended = 1

let spawn f = let d = Domain.spawn f in fun () -> Domain.join d
let recommended = 4

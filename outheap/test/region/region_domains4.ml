let spawn f = let r = f () in fun () -> r
let recommended = 1
let run n work = for i = 0 to n - 1 do work i () done
let pause () = ()
let suspend f = f

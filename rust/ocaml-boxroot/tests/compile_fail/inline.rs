//# ends_with_a_collection E0502
fn f(rt: &mut Runtime, v: &Root<Inline<u64>>) {
    let x = v.payload(rt);
    rt.minor_gc(); //~
    //+ println!("nothing");
    println!("{x}");
}
//# leaves_no_lock E0502
fn f(rt: &mut Runtime, v: &Root<Inline<u64>>, w: &Root<Boxed<u64>>) {
    let x = v.payload(rt); //~
    //+ let x = w.payload(rt);
    rt.release(|| println!("{x}"));
}
//# is_sent_to_the_collector E0277
fn f(rt: &mut Runtime) {
    rt.inline(std::rc::Rc::new(1)); //~
    //+ rt.inline(std::sync::Arc::new(1));
}
//# is_shared E0277
fn f(rt: &mut Runtime) {
    rt.inline(std::cell::Cell::new(1)); //~
    //+ rt.inline(std::sync::atomic::AtomicU32::new(1));
}
//# borrows_nothing E0521
fn f(rt: &mut Runtime, s: &str) {
    rt.inline(s); //~
    //+ rt.inline(s.to_owned());
}
//# is_not_lent_exclusively E0308
fn f(rt: &mut Runtime, v: &Root<Inline<u64>>) {
    let x: &mut u64 = v.payload(rt); //~
    //+ let x: &u64 = v.payload(rt);
}
//# has_one_type E0308
fn f(rt: &Runtime, v: Root<Inline<u64>>) {
    let x: &u32 = v.payload(rt); //~
    //+ let x: &u64 = v.payload(rt);
}

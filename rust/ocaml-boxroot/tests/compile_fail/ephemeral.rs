//# are_not_copied E0382
fn f(e: Ephemeral<Str, Int>) {
    let a = e; //~
    //+ let a = &e;
    drop(e);
}
//# have_no_clone E0599
fn f(rt: &Runtime, e: Ephemeral<Str, Int>) {
    let a = e.clone(); //~
    //+ let a = e.upgrade(rt);
}
//# are_made_with_the_lock E0061
fn f(rt: &Runtime, k: Value<'_, Str>) {
    let _ = Ephemeral::new(k, int(3)); //~
    //+ let _ = Ephemeral::new(rt, k, int(3));
}
//# are_read_with_the_lock E0061
fn f(rt: &Runtime, e: Ephemeral<Str, Int>) {
    e.get(); //~
    //+ e.get(rt);
}
//# keys_are_read_with_the_lock E0061
fn f(rt: &Runtime, e: Ephemeral<Str, Int>) {
    e.key(); //~
    //+ e.key(rt);
}
//# are_changed_with_the_lock E0061
fn f(rt: &Runtime, mut e: Ephemeral<Str, Int>) {
    let _ = e.set(int(3)); //~
    //+ let _ = e.set(rt, int(3));
}
//# find_data_that_ends_with_the_next_collection E0502
fn f(rt: &mut Runtime, e: Ephemeral<Str, Str>) {
    let v = e.get(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    let _ = v.map(|v| v.to_str().map(str::len));
}
//# find_keys_that_end_with_the_next_collection E0502
fn f(rt: &mut Runtime, e: Ephemeral<Str, Str>) {
    let v = e.key(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    let _ = v.map(|v| v.to_str().map(str::len));
}
//# lend_no_payloads E0502
fn f(rt: &mut Runtime, e: Ephemeral<Boxed<u64>, Int>) {
    let v = e.key(rt).unwrap();
    let x = v.payload(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    println!("{x}");
}
//# are_not_changed_when_shared E0596
fn f(rt: &Runtime, e: std::sync::Arc<Ephemeral<Str, Int>>, mut own: Ephemeral<Str, Int>) {
    let _ = e.set(rt, int(3)); //~
    //+ let _ = own.set(rt, int(3));
}
//# data_keeps_its_type E0308
fn f(rt: &Runtime, e: Ephemeral<Str, Str>) {
    let a: Option<Root<Int>> = e.upgrade(rt); //~
    //+ let a: Option<Root<Str>> = e.upgrade(rt);
}
//# keys_and_data_are_not_exchanged E0308
fn f(rt: &Runtime, e: Ephemeral<Str, Int>) {
    let a: Option<Value<'_, Int>> = e.key(rt); //~
    //+ let a: Option<Value<'_, Str>> = e.key(rt);
}
//# data_is_replaced_by_data_of_its_type E0308
fn f(rt: &Runtime, mut e: Ephemeral<Str, Int>, s: Root<Str>) {
    let _ = e.set(rt, s.get(rt)); //~
    //+ let _ = e.set(rt, int(4));
}

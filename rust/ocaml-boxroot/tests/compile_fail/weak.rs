//# are_not_copied E0382
fn f(w: Weak<Str>) {
    let a = w; //~
    //+ let a = &w;
    drop(w);
}
//# are_made_with_the_lock E0061
fn f(rt: &Runtime, v: Value<'_, Str>) {
    let _ = Weak::new(v); //~
    //+ let _ = Weak::new(rt, v);
}
//# are_read_with_the_lock E0061
fn f(rt: &Runtime, w: Weak<Str>) {
    w.get(); //~
    //+ w.get(rt);
}
//# find_values_that_end_with_the_next_collection E0502
fn f(rt: &mut Runtime, w: Weak<Str>) {
    let v = w.get(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    let _ = v.map(|v| v.to_str().map(str::len));
}
//# keep_their_type E0308
fn f(rt: &Runtime, w: Weak<Str>) {
    let a: Option<Root<Int>> = w.upgrade(rt); //~
    //+ let a: Option<Root<Str>> = w.upgrade(rt);
}

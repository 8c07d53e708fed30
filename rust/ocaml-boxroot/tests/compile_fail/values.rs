//# do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    let _ = v.to_str();
}
//# do_not_survive_an_allocation E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    let s = rt.string("x").root(); //~
    //+ let s = v.root(rt);
    let _ = v.to_str();
}
//# do_not_survive_a_call E0502
fn f(rt: &mut Runtime, r: &Root<Str>, g: &Root<Fun<(Str,), Unit>>) {
    let v = r.get(rt);
    let _ = g.call(rt, (r,)); //~
    //+ let _ = g.get(rt);
    let _ = v.to_str();
}
//# do_not_survive_a_release E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    rt.release(|| ()); //~
    //+ std::thread::yield_now();
    let _ = v.to_str();
}
//# do_not_survive_waiting E0502
fn f(rt: &mut Runtime, r: &Root<Str>, m: &std::sync::Mutex<()>) {
    let v = r.get(rt);
    let g = rt.lock_mutex(m); //~
    //+ let g = m.lock();
    let _ = v.to_str();
}
//# do_not_enter_a_release E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt).into_any(); //~
    //+ let v = int(3).into_any();
    rt.release(|| v.raw());
}
//# do_not_leave_attach -
fn f(r: &Root<Str>) {
    let v = attach(|rt| r.get(rt)); //~
    //+ let v = attach(|rt| r.clone_ref(rt));
}
//# are_not_sent E0277
fn f(rt: &Runtime, r: &Root<Str>) {
    let v = r.get(rt).into_any(); //~
    //+ let v = r.clone_ref(rt);
    std::thread::scope(|s| { s.spawn(move || { let v = v; }); });
}
//# are_not_sent_to_a_domain E0277
fn f(rt: &mut Runtime, r: Root<Str>) {
    let v = int(3); //~
    //+ let v = r;
    let _ = rt.spawn_domain(move |rt| drop(v));
}
//# are_not_deferred E0277
fn f(r: Root<Str>) {
    let v = int(3); //~
    //+ let v = r;
    defer(move |rt| drop(v));
}
//# are_not_in_a_static E0277
static S: std::sync::OnceLock<Value<'static, Int>> = std::sync::OnceLock::new(); //~
//+ static S: std::sync::OnceLock<Root<Int>> = std::sync::OnceLock::new();
//# are_not_held_across_await -
async fn io() {}
fn spawn(f: impl std::future::Future<Output = ()> + Send) {}
fn f(r: Root<Str>) {
    spawn(async move { let v = int(3); io().await; drop(v) }); //~
    //+ spawn(async move { let v = r; io().await; drop(v) });
}
//# are_not_made_of_numbers E0133
fn f() {
    let v: Value<'_, Int> = Value::from_raw(3); //~
    //+ let v: Value<'_, Int> = int(1);
}
//# do_not_change_their_type E0133
fn f(v: Value<'_, Int>) {
    let w: Value<'_, Str> = v.cast(); //~
    //+ let w: Value<'_, Any> = v.into_any();
}
//# have_one_type E0308
fn g(s: Value<'_, Str>) {}
fn f(v: Value<'_, Int>, w: Value<'_, Str>) {
    g(v); //~
    //+ g(w);
}
//# typed_values_have_no_unchecked_fields E0599
fn f(v: Value<'_, Str>) {
    let w = v.field(0); //~
    //+ let w = v.into_any().field(0);
}
//# fields_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Any>) {
    let x = r.get(rt).field_ref(0).unwrap();
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    x.get(rt);
}
//# bytes_of_a_string_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let s: &[u8] = r.get(rt).as_bytes();
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    s.len();
}
//# elements_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<List<Str>>) {
    for s in r.get(rt).iter() {
        rt.minor_gc(); //~
        //+ rt.named_value("x");
    }
}
//# encoded_results_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = ValueExn::from(r.get(rt));
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    let _ = v.decode();
}
//# named_values_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime) {
    let v = rt.named_value("x");
    rt.minor_gc(); //~
    //+ rt.named_value("y");
    drop(v);
}
//# values_of_exceptions_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, e: &Exception) {
    let v = e.value(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("y");
    drop(v);
}
//# names_of_exceptions_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, e: &Exception) {
    let v = e.name(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("y");
    drop(v);
}
//# places_are_read_with_the_lock E0061
fn f(rt: &Runtime, x: ValueRef<'_, Str>) {
    x.get(); //~
    //+ x.get(rt);
}
//# places_are_not_sent E0277
fn f(rt: &Runtime, r: &Root<Str>) {
    let x: ValueRef<'_, Str> = r; //~
    //+ let x: &Root<Str> = r;
    std::thread::scope(|s| { s.spawn(move || { let x = x; }); });
}
//# places_are_not_owned E0507
fn f(x: ValueRef<'_, Str>, y: Root<Str>) {
    let z = *x; //~
    //+ let z = y;
}
//# places_have_one_type E0308
fn g(x: ValueRef<'_, Int>) {}
fn f(r: &Root<Str>, s: &Root<Int>) {
    g(r); //~
    //+ g(s);
}
//# mutable_cells_are_not_sent E0277
fn f(c: &MutCell<Str>, r: &Root<Str>) {
    std::thread::scope(|s| { s.spawn(|| drop(c.get())); }); //~
    //+ std::thread::scope(|s| { s.spawn(|| drop(attach(|rt| drop(r.get(rt))))); });
}
//# mutable_cells_are_assigned_with_the_lock E0061
fn f(rt: &Runtime, c: &MutCell<Int>) {
    c.set(int(3)); //~
    //+ c.set(rt, int(3));
}
//# mutable_cells_have_one_type E0308
fn f(rt: &Runtime, c: &MutCell<Str>, s: Value<'_, Str>) {
    c.set(rt, int(3)); //~
    //+ c.set(rt, s);
}
//# adding_is_for_integers E0599
fn f(rt: &Runtime, c: &AtomicCell<Str>, d: &AtomicCell<Int>) {
    c.fetch_add(rt, int(3)); //~
    //+ d.fetch_add(rt, int(3));
}

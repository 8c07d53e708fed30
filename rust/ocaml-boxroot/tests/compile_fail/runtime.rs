//# is_not_owned E0507
fn f(rt: &mut Runtime) -> Runtime { *rt } //~
//+ fn f(rt: &mut Runtime) -> &mut Runtime { rt }
//# is_not_made E0451
fn f(rt: &mut Runtime) {
    let other = Runtime { ..*rt }; //~
    //+ let other = &*rt;
}
//# does_not_leave_attach_by_assignment E0521
fn f() {
    let mut out = None;
    let _ = attach(|rt| { out = Some(rt); }); //~
    //+ let _ = attach(|rt| { out = Some(rt.string("x").root()); });
}
//# does_not_leave_attach_by_return -
fn f() {
    let _ = attach(|rt| rt); //~
    //+ let _ = attach(|rt| rt.string("x").root());
}
//# is_not_sent_to_a_scoped_thread E0277
fn f(rt: &mut Runtime) {
    std::thread::scope(|s| { s.spawn(|| rt.minor_gc()); }); //~
    //+ std::thread::scope(|s| { rt.minor_gc(); });
}
//# is_not_shared_with_a_scoped_thread E0277
fn f(rt: &Runtime, r: &Root<Str>) {
    std::thread::scope(|s| { s.spawn(|| drop(r.get(rt))); }); //~
    //+ std::thread::scope(|s| { s.spawn(|| attach(|rt| drop(r.get(rt)))); });
}
//# is_not_used_while_the_lock_is_released E0500+E0501
fn f(rt: &mut Runtime) {
    rt.release(|| rt.minor_gc()); //~
    //+ rt.release(|| attach(|rt| rt.minor_gc())).unwrap();
}
//# is_not_read_while_the_lock_is_released E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    rt.release(|| r.get(rt).raw()); //~
    //+ rt.release(|| attach(|rt| r.get(rt).raw())).unwrap();
}
//# is_not_sent_to_a_domain E0277
fn f(rt: &mut Runtime, other: &'static Root<Str>) {
    let h = rt.spawn_domain(|_| rt.minor_gc()); //~
    //+ let h = rt.spawn_domain(|rt| rt.minor_gc());
}
//# is_not_in_a_static E0277
static S: std::sync::Mutex<Option<&'static mut Runtime>> = std::sync::Mutex::new(None); //~
//+ static S: std::sync::Mutex<Option<Root<Str>>> = std::sync::Mutex::new(None);
//# is_not_held_across_await -
async fn io() {}
fn spawn(f: impl std::future::Future<Output = ()> + Send) {}
async fn task(rt: &mut Runtime) { io().await; rt.minor_gc() }
fn f(rt: &'static mut Runtime, r: Root<Str>) {
    spawn(async move { task(rt).await }); //~
    //+ spawn(async move { io().await; drop(attach(|rt| drop(r.get(rt)))) });
}
//# the_started_program_is_no_runtime E0599
fn f(mut ocaml: Ocaml) {
    ocaml.minor_gc(); //~
    //+ attach(|rt| rt.minor_gc()).unwrap();
}
//# the_started_program_stays_on_its_thread E0277
fn f(ocaml: Ocaml) {
    std::thread::spawn(move || ocaml.shutdown()); //~
    //+ ocaml.shutdown().unwrap();
}
//# shuts_down_once E0382
fn f(ocaml: Ocaml) {
    ocaml.shutdown().unwrap();
    ocaml.shutdown().unwrap(); //~
    //+ attach(|rt| ()).unwrap_err();
}
//# minor_gc_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    rt.minor_gc(); //~
    //+ rw.minor_gc();
}
//# full_major_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    let _ = rt.full_major(); //~
    //+ let _ = rw.full_major();
}
//# compact_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    let _ = rt.compact(); //~
    //+ let _ = rw.compact();
}
//# poll_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    let _ = rt.poll(); //~
    //+ let _ = rw.poll();
}
//# release_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    rt.release(|| ()); //~
    //+ rw.release(|| ());
}
//# waiting_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime, m: &std::sync::Mutex<()>) {
    drop(rt.lock_mutex(m)); //~
    //+ drop(rw.lock_mutex(m));
}
//# domains_need_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    drop(rt.spawn_domain(|_| ())); //~
    //+ drop(rw.spawn_domain(|_| ()));
}
//# allocation_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    rt.string("x").into_rt(); //~
    //+ rw.string("x").into_rt();
}
//# building_needs_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    rt.build(8, |n| n.string("x")).into_rt(); //~
    //+ rw.build(8, |n| n.string("x")).into_rt();
}
//# frames_need_write_access E0596
fn f(rt: &Runtime, rw: &mut Runtime) {
    rt.frame(|rt, [a]| drop(a)); //~
    //+ rw.frame(|rt, [a]| drop(a));
}
//# calls_need_write_access E0308
fn f(rt: &Runtime, rw: &mut Runtime, g: &Root<Fun<(Unit,), Unit>>) {
    drop(g.call(rt, ((),))); //~
    //+ drop(g.call(rw, ((),)));
}
//# traversals_that_allocate_need_write_access E0308
fn f(rt: &Runtime, rw: &mut Runtime, l: &Root<List<Str>>) {
    let _ = l.try_for_each(rt, |rt, x| Ok::<_, ()>(())); //~
    //+ let _ = l.try_for_each(rw, |rt, x| Ok::<_, ()>(()));
}
//# deferred_closures_are_sent E0277
fn f(x: std::rc::Rc<()>, y: Root<Str>) {
    defer(move |rt| drop(x)); //~
    //+ defer(move |rt| drop(y));
}

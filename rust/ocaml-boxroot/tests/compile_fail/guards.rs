//# values_end_when_the_capability_goes_back E0505
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let v = y.value();
    let rt = y.into_rt(); //~
    //+ let rt = y.rt();
    let _ = v.to_str();
}
//# values_end_when_it_is_rooted E0505
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let v = y.value();
    let (root, rt) = y.root_and_rt(); //~
    //+ let (root, rt) = (v.root(y.rt()), y.rt());
    let _ = v.to_str();
}
//# values_end_when_it_is_dropped E0505
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let v = y.value();
    drop(y); //~
    //+ drop(v.root(y.rt()));
    let _ = v.to_str();
}
//# places_end_when_the_capability_goes_back E0505
fn g(rt: &Runtime, x: ValueRef<'_, Str>) {}
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let x: ValueRef<'_, Str> = &y;
    let rt = y.into_rt(); //~
    //+ let rt = y.rt();
    g(rt, x);
}
//# nothing_is_allocated_meanwhile E0499
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let z = rt.string("z"); //~
    //+ let z = int(3);
    drop(y);
}
//# read_access_does_not_allocate E0596
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let y = rt.string("y");
    y.rt().minor_gc(); //~
    //+ r.get(y.rt());
}
//# frozen_values_end_with_write_access E0499
fn f(rt: &mut Runtime) {
    let (v, ro) = rt.string("y").freeze();
    rt.minor_gc(); //~
    //+ ro.named_value("x");
    let _ = v.to_str();
}
//# frozen_runtimes_do_not_allocate E0596
fn f(rt: &mut Runtime) {
    let (v, ro) = rt.string("y").freeze();
    ro.minor_gc(); //~
    //+ ro.named_value("x");
}
//# is_used_once E0382
fn f(rt: &mut Runtime) {
    let y = rt.string("y");
    let r = y.root();
    let s = y.root(); //~
    //+ let s = r.clone_ref(rt);
}
//# going_on_needs_the_capability_back E0499
type F = Fun<(Str,), Str>;
fn g<'a>(rt: &'a mut Runtime, f: ValueRef<'_, F>, x: ValueRef<'_, Str>) -> Result<ValueGuard<'a, Str>, Exception> {
    let y = f.call(rt, (x,))?;
    if y.value().ptr_eq(x.get(y.rt())) {
        return Ok(y);
    }
    let (y, back) = y.root_and_rt();
    g(rt, f, &y) //~
    //+ g(back, f, &y)
}
//# results_do_not_leave_attach -
fn f() {
    let y = attach(|rt| rt.string("y")); //~
    //+ let y = attach(|rt| rt.string("y").root());
}
//# calls_are_not_nested E0499
fn f(rt: &mut Runtime, g: &Root<Fun<(Str,), Str>>) -> Result<(), Exception> {
    g.call(rt, (rt.string("y").root(),))?; //~
    //+ g.call(rt, ("y",))?;
    Ok(())
}
//# does_not_change_its_type E0133
fn f(rt: &mut Runtime) {
    let y: ValueGuard<'_, Int> = rt.string("y").cast(); //~
    //+ let y: ValueGuard<'_, Any> = rt.string("y").into_any();
}

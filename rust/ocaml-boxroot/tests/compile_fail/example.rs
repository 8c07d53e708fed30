//# forgotten_reference E0308
fn f<A, B>(x: Value<'_, A>, y: Value<'_, B>) {}
fn g2<A, B>(rt: &Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) {}
fn h3<'a, A, B>(rt: &'a mut Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) -> ValueGuard<'a, (A, B)> { rt.pair(x, y) }
fn example(rt: &mut Runtime) {
    let val = int(42);
    h3(rt, val, val); //~
    //+ h3(rt, &val, &val);
    let val2 = rt.string("heap");
    f(val, val2.value());
    g2(val2.rt(), &val, &val2);
    let val2_root = val2.root();
    let val3 = h3(rt, &val, &val2_root);
    g2(val3.rt(), &val3, &val2_root);
}
//# unrooted_value_to_an_allocating_function E0499
fn f<A, B>(x: Value<'_, A>, y: Value<'_, B>) {}
fn g2<A, B>(rt: &Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) {}
fn h3<'a, A, B>(rt: &'a mut Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) -> ValueGuard<'a, (A, B)> { rt.pair(x, y) }
fn example(rt: &mut Runtime) {
    let val = int(42);
    h3(rt, &val, &val);
    let val2 = rt.string("heap");
    f(val, val2.value());
    g2(val2.rt(), &val, &val2);
    h3(rt, &val, &val2); //~
    //+ g2(val2.rt(), &val, &val2);
    let val2_root = val2.root();
    let val3 = h3(rt, &val, &val2_root);
    g2(val3.rt(), &val3, &val2_root);
}
//# value_that_is_no_longer_live E0382+E0499
fn f<A, B>(x: Value<'_, A>, y: Value<'_, B>) {}
fn g2<A, B>(rt: &Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) {}
fn h3<'a, A, B>(rt: &'a mut Runtime, x: ValueRef<'_, A>, y: ValueRef<'_, B>) -> ValueGuard<'a, (A, B)> { rt.pair(x, y) }
fn example(rt: &mut Runtime) {
    let val = int(42);
    h3(rt, &val, &val);
    let val2 = rt.string("heap");
    f(val, val2.value());
    g2(val2.rt(), &val, &val2);
    let val2_root = val2.root();
    let val3 = h3(rt, &val, &val2_root);
    g2(val3.rt(), &val3, &val2_root);
    g2(val3.rt(), &val, &val2); //~
    //+ g2(val3.rt(), &val, &val2_root);
}

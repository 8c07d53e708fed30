//# two_at_once E0500+E0501
fn f(rt: &mut Runtime, a: &Locked<i32>, b: &Locked<i32>) {
    a.with(rt, |_, a| b.with(rt, |_, b| *a += *b)); //~
    //+ let b = b.with(rt, |_, b| *b); a.with(rt, |_, a| *a += b);
}
//# two_at_once_with_what_is_lent E0308
fn f(rt: &mut Runtime, a: &Locked<i32>, b: &Locked<i32>) {
    a.with(rt, |rt, a| b.with(rt, |_, b| *b)); //~
    //+ a.with(rt, |rt, a| *a); b.with(rt, |_, b| *b);
}
//# a_call_inside E0308
fn f(rt: &mut Runtime, hooks: &Locked<Vec<Root<Fun<(Int,), Int>>>>) {
    hooks.with(rt, |rt, hooks| hooks[0].call(rt, (1,)).is_ok()); //~
    //+ let hook = hooks.with(rt, |rt, hooks| hooks[0].clone_ref(rt)); let _ = hook.call(rt, (1,)).is_ok();
}
//# the_lock_released_inside E0596
fn f(rt: &mut Runtime, n: &Locked<i32>) {
    n.with(rt, |rt, n| rt.release(|| *n += 1)); //~
    //+ n.with(rt, |rt, n| *n += 1);
}
//# the_outer_runtime_inside E0500+E0501
fn f(rt: &mut Runtime, n: &Locked<i32>) {
    n.with(rt, |_, n| rt.minor_gc()); //~
    //+ n.with(rt, |_, n| ()); rt.minor_gc();
}
//# without_the_domain_lock E0599
fn f(rt: &mut Runtime, n: &Locked<i32>) {
    rt.release(|| drop(n.lock())); //~
    //+ rt.release(|| drop(attach(|rt| n.with(rt, |_, n| *n += 1))));
}
//# with_read_access E0308
fn f(rt: &Runtime, rw: &mut Runtime, n: &Locked<i32>) {
    n.with(rt, |_, n| *n += 1); //~
    //+ n.with(rw, |_, n| *n += 1);
}
//# the_data_outside -
fn f<'a>(rt: &'a mut Runtime, words: &'a Locked<Vec<i32>>) {
    let first = words.with(rt, |_, words| &mut words[0]); //~
    //+ let first = words.with(rt, |_, words| words[0]);
}
//# values_outside -
fn f(rt: &mut Runtime, words: &Locked<Vec<Root<Str>>>) {
    let first = words.with(rt, |rt, words| words[0].get(rt)); //~
    //+ let first = words.with(rt, |rt, words| words[0].clone_ref(rt));
}
//# data_of_one_thread E0277
static S: Locked<Option<std::rc::Rc<i32>>> = Locked::new(None); //~
//+ static S: Locked<Option<std::sync::Arc<i32>>> = Locked::new(None);

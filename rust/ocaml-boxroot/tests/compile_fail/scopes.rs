//# slots_do_not_leave_a_frame_by_assignment E0521
fn f(rt: &mut Runtime) {
    let mut out = None;
    rt.frame(|rt, [a]| { out = Some(a); }); //~
    //+ rt.frame(|rt, [a]| { out = Some(rt.string("x").root()); });
}
//# slots_do_not_leave_a_frame_by_return -
fn f(rt: &mut Runtime) {
    let a = rt.frame(|rt, [a]| a.root(rt.string("x"))); //~
    //+ let a = rt.frame(|rt, [a]| a.root(rt.string("x")).get(rt).root(rt));
}
//# values_of_a_frame_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime) {
    rt.frame(|rt, [a]| {
        let a = a.root(rt.string("x"));
        let v = a.get(rt);
        rt.minor_gc(); //~
        //+ rt.named_value("x");
        v.raw()
    });
}
//# a_slot_is_filled_once E0382
fn f(rt: &mut Runtime) {
    rt.frame(|rt, [a, b]| {
        let x = a.root(rt.string("x"));
        let y = a.root(rt.string("y")); //~
        //+ let y = b.root(rt.string("y"));
        x.get(rt).raw()
    });
}
//# a_slot_is_used_again_when_nobody_looks E0499
fn f(rt: &mut Runtime) {
    rt.frame(|rt, [mut a, mut b]| {
        let x = a.set(rt.string("x"));
        let y = a.set(rt.string("y")); //~
        //+ let y = b.set(rt.string("y"));
        x.get(rt).raw()
    });
}
//# a_slot_is_not_sent E0277
fn f(rt: &mut Runtime) {
    rt.frame(|rt, [a]| {
        std::thread::scope(|s| { s.spawn(move || drop(a)); }); //~
        //+ std::thread::scope(|s| { s.spawn(move || ()); });
    });
}
//# the_outer_runtime_is_borrowed_by_a_frame E0500+E0501
fn f(rt: &mut Runtime) {
    rt.frame(|_, [a]| { a.root(rt.string("x")); }); //~
    //+ rt.frame(|rt, [a]| { a.root(rt.string("x")); });
}
//# nothing_is_collected_in_a_build E0596
fn f(rt: &mut Runtime) {
    rt.build(8, |n| { n.minor_gc(); n.string("x") }); //~
    //+ rt.build(8, |n| { n.named_value("x"); n.string("x") });
}
//# the_outer_runtime_is_borrowed_by_a_build E0500+E0501
fn f(rt: &mut Runtime) {
    rt.build(8, |n| { rt.minor_gc(); n.string("x") }); //~
    //+ rt.build(8, |n| { n.named_value("x"); n.string("x") });
}
//# the_outer_runtime_is_not_read_in_a_build E0502+-
fn f(rt: &mut Runtime, r: &Root<Str>) {
    rt.build(8, |n| n.some(r.get(rt))); //~
    //+ rt.build(8, |n| n.some(r.get(n)));
}
//# values_do_not_leave_a_build E0521
fn f(rt: &mut Runtime) {
    let mut out = None;
    rt.build(8, |n| { let v = n.string("x"); out = Some(v); v }); //~
    //+ rt.build(8, |n| { let v = n.string("x"); out = Some(v.root(n)); v });
}
//# the_nursery_does_not_leave_a_build E0521
fn f(rt: &mut Runtime) {
    let mut out = None;
    rt.build(8, |n| { out = Some(n); n.string("x") }); //~
    //+ rt.build(8, |n| { out = Some(3); n.string("x") });
}
//# values_do_not_enter_a_build E0502+-
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    rt.build(8, |n| n.some(v)); //~
    //+ rt.named_value("x");
    v.raw();
}
//# elements_have_one_type E0308
fn f(rt: &mut Runtime) {
    rt.build(8, |n| n.cons(n.int(1), n.cons(n.string("2"), n.nil()))); //~
    //+ rt.build(8, |n| n.cons(n.int(1), n.cons(n.int(2), n.nil())));
}
//# a_block_under_construction_is_not_read_by_others E0308
fn g(rt: &Runtime, x: ValueRef<'_, Any>) {}
fn f(rt: &mut Runtime) {
    let _ = rt.try_build(8, |n| {
        let block = n.block_builder(0, 2)?;
        g(n, &block); //~
        //+ g(n, &int(3).into_any());
        Ok::<_, ShapeError>(block.finish())
    });
}
//# a_block_is_finished_once E0382
fn f(rt: &mut Runtime) {
    let _ = rt.try_build(8, |n| {
        let mut block = n.block_builder(0, 2)?;
        let v = block.finish();
        block.set(0, n.unit()); //~
        //+ let w = v;
        Ok::<_, ShapeError>(v)
    });
}
//# a_block_under_construction_is_not_copied E0382
fn f(rt: &mut Runtime) {
    let _ = rt.try_build(8, |n| {
        let block = n.block_builder(0, 2)?;
        let other = block; //~
        //+ let other = n.block_builder(0, 2)?;
        Ok::<_, ShapeError>(block.finish())
    });
}
//# locals_do_not_leave_by_assignment E0521
fn f(rt: &mut Runtime) {
    let mut out = None;
    rt.locals(|rt, locals| { out = Some(locals); }); //~
    //+ rt.locals(|rt, locals| { out = Some(locals.root(rt.string("x")).get(rt).root(rt)); });
}
//# places_of_locals_do_not_leave_by_assignment E0521
fn f(rt: &mut Runtime) {
    let mut out = None;
    rt.locals(|rt, locals| { out = Some(locals.root(rt.string("x"))); }); //~
    //+ rt.locals(|rt, locals| { out = Some(locals.root(rt.string("x")).get(rt).root(rt)); });
}
//# places_of_locals_do_not_leave_by_return -
fn f(rt: &mut Runtime) {
    let a = rt.locals(|rt, locals| locals.root(rt.string("x"))); //~
    //+ let a = rt.locals(|rt, locals| locals.root(rt.string("x")).get(rt).root(rt));
}
//# locals_need_the_lock E0061
fn f(rt: &mut Runtime) {
    rt.locals(|rt, locals| { locals.slot(); }); //~
    //+ rt.locals(|rt, locals| { locals.slot(rt); });
}
//# locals_are_not_made_while_the_lock_is_released E0502
fn f(rt: &mut Runtime) {
    rt.locals(|rt, locals| { rt.release(|| { locals.slot(rt); }); }); //~
    //+ rt.locals(|rt, locals| { rt.release(|| { &locals; }); });
}
//# locals_are_not_sent E0277
fn f(rt: &mut Runtime) {
    rt.locals(|rt, locals| {
        std::thread::scope(|s| { s.spawn(move || { &locals; }); }); //~
        //+ std::thread::scope(|s| { s.spawn(move || ()); });
    });
}
//# values_of_locals_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime) {
    rt.locals(|rt, locals| {
        let a = locals.root(rt.string("x"));
        let v = a.get(rt);
        rt.minor_gc(); //~
        //+ rt.named_value("x");
        v.raw()
    });
}

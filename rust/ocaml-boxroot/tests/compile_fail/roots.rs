//# have_no_clone E0599
fn f(rt: &Runtime, r: Root<Str>) {
    let a = r.clone(); //~
    //+ let a = r.clone_ref(rt);
}
//# are_not_copied E0382
fn f(rt: &Runtime, r: Root<Str>) {
    let a = r; //~
    //+ let a = r.clone_ref(rt);
    drop(r);
}
//# have_no_public_fields E0616
fn f(rt: &Runtime, r: Root<Str>) {
    let a = r.root; //~
    //+ let a = r.get(rt);
}
//# are_made_with_the_lock E0061
fn f(rt: &Runtime, v: Value<'_, Str>) {
    Root::new(v); //~
    //+ Root::new(rt, v);
}
//# are_read_with_the_lock E0061
fn f(rt: &Runtime, r: Root<Str>) {
    r.get(); //~
    //+ r.get(rt);
}
//# are_doubled_with_the_lock E0061
fn f(rt: &Runtime, r: Root<Str>) {
    r.clone_ref(); //~
    //+ r.clone_ref(rt);
}
//# are_not_assigned_while_borrowed E0502
fn f(rt: &mut Runtime, mut r: Root<Str>) {
    let x: ValueRef<'_, Str> = &r;
    r.set(rt.string("y")); //~
    //+ let y = rt.string("y").root();
    x.get(rt);
}
//# are_not_assigned_when_shared E0596
fn f(rt: &mut Runtime, r: std::sync::Arc<Root<Str>>, mut s: Root<Str>) {
    r.set(rt.string("y")); //~
    //+ s.set(rt.string("y"));
}
//# end_once E0382
fn f(rt: &Runtime, r: Root<Str>, s: Root<Str>) {
    r.drop_ref(rt);
    r.drop_ref(rt); //~
    //+ s.drop_ref(rt);
}
//# places_end_with_the_root E0505
fn f(rt: &Runtime, r: Root<Str>, s: Root<Str>) {
    let x: ValueRef<'_, Str> = &r;
    drop(r); //~
    //+ drop(s);
    x.get(rt);
}
//# have_one_type E0308
fn f(rt: &mut Runtime, mut r: Root<Str>) {
    r.set(rt.float(1.0)); //~
    //+ r.set(rt.string("1"));
}

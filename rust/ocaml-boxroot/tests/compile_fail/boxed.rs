//# are_not_lent_exclusively E0308
fn f(rt: &mut Runtime, v: ValueRef<'_, Boxed<u64>>) {
    let x: &mut u64 = v.payload(rt); //~
    //+ let x: &u64 = v.payload(rt);
}
//# are_not_assigned E0594
fn f(rt: &mut Runtime, v: ValueRef<'_, Boxed<u64>>) {
    *v.payload(rt) = 1; //~
    //+ let _one = *v.payload(rt);
}
//# are_sent_to_the_collector E0277
fn f(rt: &mut Runtime) {
    rt.boxed(std::rc::Rc::new(1)); //~
    //+ rt.boxed(std::sync::Arc::new(1));
}
//# are_shared E0277
fn f(rt: &mut Runtime) {
    rt.boxed(std::cell::Cell::new(1)); //~
    //+ rt.boxed(std::sync::atomic::AtomicU32::new(1));
}
//# borrow_nothing E0521
fn f(rt: &mut Runtime, s: &str) {
    rt.boxed(s); //~
    //+ rt.boxed(s.to_owned());
}
//# hold_no_runtime E0277
fn f(rt: &mut Runtime, other: &'static Runtime) {
    rt.boxed(other); //~
    //+ rt.boxed(());
}
//# with_operations_are_sent E0277
struct T(std::rc::Rc<u8>); //~
//+ struct T(std::sync::Arc<u8>);
impl CustomOps for T {}
//# are_read_with_the_lock E0061
fn f(rt: &Runtime, v: Root<Boxed<u64>>) {
    v.payload(); //~
    //+ v.payload(rt);
}
//# end_with_the_root E0505
fn f(rt: &Runtime, v: Root<Boxed<u64>>, w: Root<Boxed<u64>>) {
    let x = v.payload(rt);
    drop(v); //~
    //+ drop(w);
    println!("{x}");
}
//# do_not_leave_with_the_root E0515
fn f(rt: &Runtime, v: Root<Boxed<u64>>, w: &'static Root<Boxed<u64>>) -> &'static u64 {
    v.payload(rt) //~
    //+ w.payload(rt)
}
//# keep_output_roots E0502
fn f(rt: &mut Runtime, mut v: Root<Boxed<u64>>, mut w: Root<Boxed<u64>>) {
    let x = v.payload(rt);
    v.set(rt.boxed(2)); //~
    //+ w.set(rt.boxed(2));
    println!("{x}");
}
//# keep_slots E0499
fn f(rt: &mut Runtime) {
    rt.frame(|rt, [mut a, mut b]| {
        let x = a.set(rt.boxed(1_u64)).payload(rt);
        let y = a.set(rt.boxed(2_u64)).payload(rt); //~
        //+ let y = b.set(rt.boxed(2_u64)).payload(rt);
        println!("{x} {y}");
    })
}
//# do_not_leave_the_frame E0521
fn f<'a>(rt: &mut Runtime, root: &'a Root<Boxed<u64>>) {
    let mut out: Option<&'a u64> = None;
    rt.frame(|rt, [a]| {
        let place = a.root_value(rt, root.get(rt));
        out = Some(place.payload(rt)); //~
        //+ out = Some(root.payload(rt));
    });
}
//# of_values_end_with_a_collection E0502
fn f(rt: &mut Runtime, root: &Root<Boxed<u64>>) {
    let x = root.get(rt).payload(rt); //~
    //+ let x = root.payload(rt);
    rt.minor_gc();
    println!("{x}");
}
//# of_fields_end_with_a_collection E0502
fn f(rt: &mut Runtime, pair: &Root<(Boxed<u64>, Int)>) {
    let first = pair.get(rt).first();
    let place: ValueRef<'_, Boxed<u64>> = &first;
    let x = place.payload(rt);
    rt.minor_gc(); //~
    //+ println!("nothing");
    println!("{x}");
}
//# of_guards_end_with_them E0505
fn f(rt: &mut Runtime) {
    let v = rt.boxed(1_u64);
    let x = v.payload(v.rt());
    v.into_rt(); //~
    //+ v.rt();
    println!("{x}");
}
//# have_one_type E0308
fn f(rt: &Runtime, v: Root<Boxed<u64>>) {
    let x: &u32 = v.payload(rt); //~
    //+ let x: &u64 = v.payload(rt);
}
//# need_a_name_for_ocaml E0277 `T` has no name in OCaml
struct T;
struct U;
ocaml_abstract! { U = "t"; }
fn described<T: OCamlType>() {}
fn f() {
    described::<Boxed<T>>(); //~
    //+ described::<Boxed<U>>();
}
//# have_all_their_parameters E0107
struct Queue<A>(std::sync::Mutex<Vec<Root<A>>>);
ocaml_abstract! { Queue = "queue"; } //~
//+ ocaml_abstract! { Queue<A> = "queue"; }

//# are_not_copied E0382
fn f(w: WideRoot<(Str, Int)>) {
    let a = w; //~
    //+ let a = &w;
    drop(w);
}
//# have_no_clone E0599
fn f(rt: &Runtime, w: WideRoot<(Str, Int)>) {
    let a = w.clone(); //~
    //+ let a = w.clone_ref(rt);
}
//# have_no_public_fields E0616
fn f(rt: &Runtime, w: WideRoot<(Str, Int)>) {
    let a = w.wide; //~
    //+ let a = w.places();
}
//# are_made_with_the_lock E0061
fn f(rt: &Runtime, v: Value<'_, Str>) {
    let _ = WideRoot::new((v, v)); //~
    //+ let _ = WideRoot::new(rt, (v, v));
}
//# are_read_with_the_lock E0061
fn f(rt: &Runtime, w: WideRoot<[Str; 3]>) {
    w[1].get(); //~
    //+ w[1].get(rt);
}
//# are_modified_with_the_lock E0061
fn f(rt: &Runtime, mut w: WideRoot<(Str, Int)>) {
    w.set_value::<1>(int(3)); //~
    //+ w.set_value::<1>(rt, int(3));
}
//# places_end_with_the_root E0505
fn f(rt: &Runtime, w: WideRoot<(Str, Int)>) {
    let (a, _) = w.places();
    drop(w); //~
    //+ w.places();
    a.get(rt);
}
//# places_of_arrays_end_with_the_root E0505
fn f(rt: &Runtime, w: WideRoot<[Str; 3]>) {
    let a: &[ValueCell<Str>] = &w[1..];
    drop(w); //~
    //+ w.len();
    a[0].get(rt);
}
//# places_end_when_a_neighbour_changes E0502
fn f(rt: &Runtime, mut w: WideRoot<(Str, Int)>) {
    let a = w.place::<0>();
    w.set_value::<1>(rt, int(3)); //~
    //+ w.place::<1>();
    a.get(rt);
}
//# places_of_arrays_end_when_a_neighbour_changes E0502
fn f(rt: &Runtime, mut w: WideRoot<[Int; 3]>) {
    let a = &w[0];
    w.set_value_at(rt, 1, int(3)); //~
    //+ w.places();
    a.get(rt);
}
//# places_do_not_leave_the_function_that_owns_it E0515
fn f<'a>(w: WideRoot<(Str, Int)>, outer: &'a WideRoot<(Str, Int)>) -> ValueRef<'a, Str> {
    w.place::<0>() //~
    //+ outer.place::<0>()
}
//# places_are_not_sent E0277
fn f(w: &'static WideRoot<[Str; 3]>) {
    let a = w.places(); //~
    //+ let a = w;
    std::thread::spawn(move || drop(a));
}
//# are_not_modified_when_shared E0596
fn f(rt: &Runtime, w: std::sync::Arc<WideRoot<(Str, Int)>>, mut own: WideRoot<(Str, Int)>) {
    w.set_value::<1>(rt, int(3)); //~
    //+ own.set_value::<1>(rt, int(3));
}
//# are_not_modified_by_the_places E0594+E0508
fn f(rt: &Runtime, mut w: WideRoot<[Int; 3]>, mut other: WideRoot<[Int; 3]>) {
    *w = *other; //~
    //+ w = other;
}
//# places_are_not_swapped E0596
fn f(rt: &Runtime, mut w: WideRoot<[Int; 3]>, mut other: WideRoot<[Int; 3]>) {
    w.swap(0, 1); //~
    //+ std::mem::swap(&mut w, &mut other);
}
//# values_end_with_the_next_collection E0502
fn f(rt: &mut Runtime, w: WideRoot<(Str, Int)>) {
    let v = w.place::<0>().get(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    v.as_bytes().len();
}
//# what_was_replaced_ends_with_the_next_collection E0502
fn f(rt: &mut Runtime, mut w: WideRoot<(Str, Int)>, s: Root<Str>) {
    let v = w.replace::<0>(rt, s.get(rt));
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    v.as_bytes().len();
}
//# values_are_made_before_it_without_a_collection E0499
fn f(rt: &mut Runtime) {
    let a = rt.string("a"); //~
    //+ let a = rt.string("a").root();
    let b = rt.string("b");
    let _ = WideRoot::new(b.rt(), (a.get(b.rt()), b.value()));
}
//# slots_are_those_of_the_tuple E0277 there is no value 2 in a wide root
fn f(w: &WideRoot<(Str, Int)>) {
    w.place::<2>(); //~
    //+ w.place::<1>();
}
//# slots_of_arrays_have_an_index E0277 there is no value 1 in a wide root
fn f(rt: &Runtime, w: &mut WideRoot<[Int; 2]>) {
    w.set_value::<1>(rt, int(3)); //~
    //+ w.set_value_at(rt, 1, int(3));
}
//# slots_keep_their_type E0308
fn f(rt: &mut Runtime, w: &mut WideRoot<(Str, Int)>) {
    w.set::<1>(rt.string("x")); //~
    //+ w.set::<0>(rt.string("x"));
}
//# places_keep_their_type E0308
fn f(w: &WideRoot<(Str, Int)>) {
    let a: (ValueRef<Int>, ValueRef<Int>) = w.places(); //~
    //+ let a: (ValueRef<Str>, ValueRef<Int>) = w.places();
}
//# types_are_those_of_the_values E0308
fn f(rt: &Runtime, s: Value<'_, Str>) -> WideRoot<(Str, Int)> {
    WideRoot::new(rt, (s, s)) //~
    //+ WideRoot::new(rt, (s, int(3)))
}
//# widths_are_those_of_the_values E0308
fn f(rt: &Runtime, s: Value<'_, Str>) -> WideRoot<[Str; 3]> {
    WideRoot::new(rt, [s, s]) //~
    //+ WideRoot::new(rt, [s, s, s])
}
//# are_not_made_of_nothing E0277 a wide root is not made from `()`
fn f(rt: &Runtime) {
    let _ = WideRoot::new(rt, ()); //~
    //+ let _ = WideRoot::new(rt, (int(1),));
}
//# are_not_made_of_places E0277 a wide root is not made from
fn f(rt: &Runtime, s: Root<Str>) {
    let _ = WideRoot::new(rt, (&s, &s)); //~
    //+ let _ = WideRoot::new(rt, (s.get(rt), s.get(rt)));
}
//# have_no_slots_of_others E0117
struct Own;
impl WideSlot<2> for (Own, Str) { //~
//+ impl Other<2> for (Own, Str) {
    type Type = Int;
}
trait Other<const I: usize> { type Type; }
//# shapes_are_not_of_others E0046+E0277
struct Own;
impl WideSlots for Own { //~
//+ impl Other for Own {
    type Places<'a> = ();
    const COUNT: usize = 100;
}
trait Other { type Places<'a>; const COUNT: usize; }
//# values_are_not_of_others E0277 sealed::Values` is not satisfied
struct Own;
impl WideValues for Own { //~
//+ impl Other for Own {
    type Slots = (Str, Int);
}
trait Other { type Slots; }
//# places_are_not_made_of_addresses E0133
fn f(w: &WideRoot<[Str; 3]>) {
    let _ = <[Str; 3]>::places(std::ptr::null()); //~
    //+ let _ = w.places();
}
//# payloads_end_when_a_value_changes E0502
fn f(rt: &Runtime, mut w: WideRoot<(Boxed<u64>, Int)>) {
    let x = w.place::<0>().payload(rt);
    w.set_value::<1>(rt, int(3)); //~
    //+ w.place::<1>();
    println!("{x}");
}
//# payloads_end_with_the_root E0505
fn f(rt: &Runtime, w: WideRoot<[Boxed<u64>; 2]>) {
    let x = w[1].payload(rt);
    drop(w); //~
    //+ w.len();
    println!("{x}");
}
//# types_do_not_change_under_an_exclusive_borrow E0308
type Pair = WideRoot<(Any, Any)>;
fn f<'a>(w: &'a mut WideRoot<(Int, Str)>, any: &'a mut Pair) -> &'a mut Pair {
    w //~
    //+ any
}
//# are_no_roots E0308
fn f(w: WideRoot<(Str,)>, r: Root<Str>) -> Root<Str> {
    w //~
    //+ r
}
//# values_of_a_build_leave_it_in_a_root E0521
fn f(rt: &mut Runtime) {
    let mut kept = None;
    rt.build(100, |n| {
        let s = n.string("a");
        kept = Some((s, s)); //~
        //+ kept = Some(WideRoot::new(n, (s, s)));
        s
    }).into_rt();
    drop(kept);
}

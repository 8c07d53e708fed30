//# roots_end_when_it_is_cleared E0502
fn f(rt: &mut Runtime, s: &mut Storage) {
    let r = s.root(rt.string("x"));
    s.clear(rt); //~
    //+ s.name();
    r.get(rt).as_bytes().len();
}
//# roots_end_when_it_is_dropped E0505
fn f(rt: &mut Runtime, s: Storage) {
    let r = s.root(rt.string("x"));
    drop(s); //~
    //+ s.name();
    r.get(rt).as_bytes().len();
}
//# roots_end_when_it_goes_out_of_scope E0597
fn f(rt: &mut Runtime, outer: &Storage) {
    let r = {
        let s = Storage::new(rt, "s");
        s.root(rt.string("x")) //~
        //+ outer.root(rt.string("x"))
    };
    r.delete();
}
//# roots_do_not_leave_the_function_that_owns_it E0515
fn f<'a>(rt: &mut Runtime, outer: &'a Storage) -> StorageRoot<'a, Str> {
    let s = Storage::new(rt, "s");
    s.root(rt.string("x")) //~
    //+ outer.root(rt.string("x"))
}
//# places_end_when_it_is_cleared E0502
fn f(rt: &mut Runtime, s: &mut Storage) {
    let place = s.root(rt.string("x")).into_ref();
    s.clear(rt); //~
    //+ s.name();
    place.get(rt).as_bytes().len();
}
//# places_of_keys_end_when_it_is_cleared E0502
fn f(rt: &Runtime, s: &mut Storage, key: StorageKey<Str>) {
    let place = s.get(&key).unwrap();
    s.clear(rt); //~
    //+ s.name();
    place.get(rt).as_bytes().len();
}
//# places_of_keys_end_with_the_key E0505
fn f(rt: &Runtime, s: &Storage, key: StorageKey<Str>) {
    let place = s.get(&key).unwrap();
    s.take(key); //~
    //+ s.get(&key);
    place.get(rt).as_bytes().len();
}
//# places_end_with_the_root E0505
fn f(rt: &Runtime, r: StorageRoot<'_, Str>) {
    let place: ValueRef<Str> = &r;
    r.delete(); //~
    //+ r.get(rt);
    place.get(rt).as_bytes().len();
}
//# places_end_when_the_root_changes E0502
fn f(rt: &Runtime, mut r: StorageRoot<'_, Str>, v: Value<'_, Str>) {
    let place: ValueRef<Str> = &r;
    r.set_value(rt, v); //~
    //+ r.get(rt);
    place.get(rt).as_bytes().len();
}
//# is_counted_when_nobody_uses_it E0502
fn f(rt: &mut Runtime, s: &mut Storage) {
    let r = s.root(rt.string("x"));
    let n = s.count(rt); //~
    //+ let n = s.name().len();
    r.delete();
}
//# is_not_cleared_by_borrowers E0596
fn f(rt: &Runtime, s: &Storage) {
    s.clear(rt); //~
    //+ s.name();
}
//# is_not_copied E0382
fn f(s: Storage) {
    let a = s; //~
    //+ let a = &s;
    drop(s);
}
//# roots_are_not_copied E0382
fn f(r: StorageRoot<'_, Str>) {
    let a = r; //~
    //+ let a = &r;
    r.delete();
}
//# keys_are_not_copied E0382
fn f(s: &Storage, key: StorageKey<Str>) {
    let a = key; //~
    //+ let a = &key;
    s.take(key);
}
//# keys_are_not_cloned E0599
fn f(key: StorageKey<Str>) {
    let a = key.clone(); //~
    //+ let a = &key;
}
//# roots_end_once E0382
fn f(rt: &Runtime, r: StorageRoot<'_, Str>) {
    r.drop_ref(rt); //~
    //+ r.get(rt);
    r.delete();
}
//# is_made_with_the_lock E0061
fn f(rt: &Runtime) {
    let s = Storage::new("s"); //~
    //+ let s = Storage::new(rt, "s");
}
//# roots_are_made_with_the_lock E0061
fn f(rt: &Runtime, s: &Storage, v: Value<'_, Str>) {
    let r = s.root_value(v); //~
    //+ let r = s.root_value(rt, v);
}
//# is_cleared_with_the_lock E0061
fn f(rt: &Runtime, s: &mut Storage) {
    s.clear(); //~
    //+ s.clear(rt);
}
//# roots_are_read_with_the_lock E0061
fn f(rt: &Runtime, r: StorageRoot<'_, Str>) {
    r.get(); //~
    //+ r.get(rt);
}
//# values_are_not_used_after_a_collection E0502
fn f(rt: &mut Runtime, r: StorageRoot<'_, Str>) {
    let v = r.get(rt);
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    v.as_bytes().len();
}
//# roots_are_sent_to_threads_that_end_before E0597
fn f(rt: &mut Runtime) {
    let s = Storage::new(rt, "s");
    let r = s.root(rt.string("x")); //~
    //+ let r = s.insert(rt, int(3));
    std::thread::spawn(move || drop(r));
}
//# places_are_not_sent E0277
fn f(s: &Storage, r: StorageRoot<'_, Str>) {
    let place = r.into_ref(); //~
    //+ let place = r;
    std::thread::scope(|scope| { scope.spawn(move || drop(place)); });
}
//# are_not_dropped_while_others_share_it E0505
fn f(s: Storage) {
    let shared = &s;
    std::thread::scope(|scope| {
        scope.spawn(|| shared.name().len());
        drop(s); //~
        //+ shared.name();
    });
}
//# roots_keep_their_type E0308
fn f(rt: &mut Runtime, s: &Storage) {
    let r: StorageRoot<Int> = s.root(rt.string("x")); //~
    //+ let r: StorageRoot<Str> = s.root(rt.string("x"));
}
//# keys_keep_their_type E0308
fn f(rt: &mut Runtime, s: &Storage, key: StorageKey<Str>) {
    let r: Option<StorageRoot<Int>> = s.take(key); //~
    //+ let r: Option<StorageRoot<Str>> = s.take(key);
}
//# roots_are_not_used_in_a_drop_after_it E0597
struct Last<'s>(StorageRoot<'s, Str>);
impl Drop for Last<'_> {
    fn drop(&mut self) {
        let _ = attach(|rt| self.0.get(rt).as_bytes().len());
    }
}
fn f(rt: &mut Runtime, outer: &Storage) {
    let last;
    let s = Storage::new(rt, "s");
    last = Last(s.root(rt.string("x"))); //~
    //+ last = Last(outer.root(rt.string("x")));
}

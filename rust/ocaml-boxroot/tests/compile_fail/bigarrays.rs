//# have_the_kind_of_their_elements E0308
fn f(rt: &mut Runtime) {
    let a: Root<Array1<u8>> = rt.bigarray_from_vec(vec![0_i8], [1]).root(); //~
    //+ let a: Root<Array1<u8>> = rt.bigarray_from_vec(vec![0_u8], [1]).root();
}
//# tell_chars_from_bytes E0308
fn f(rt: &Runtime, a: Root<Array1<Char>>) {
    let x: Option<u8> = a.view(rt).get([0]); //~
    //+ let x: Option<Char> = a.view(rt).get([0]);
}
//# have_no_chars_of_rust E0277 bigarrays have no elements of type `char`
fn f(rt: &mut Runtime) {
    rt.bigarray_from_vec(vec!['a'], [1]); //~
    //+ rt.bigarray_from_vec(vec![b'a'], [1]);
}
//# have_no_booleans E0277
fn f(rt: &mut Runtime) {
    rt.bigarray_from_vec(vec![true], [1]); //~
    //+ rt.bigarray_from_vec(vec![1_u8], [1]);
}
//# have_no_kinds_of_users E0277
#[derive(Clone, Copy)]
struct Mine(u8);
trait Other {
    const KIND: u8;
    const NAMES: (&'static str, &'static str);
    type Cell;
    fn load(c: &u8) -> Self;
    fn store(c: &u8, x: Self);
}
impl BigarrayElement for Mine { //~
//+ impl Other for Mine {
    const KIND: u8 = 7;
    const NAMES: (&'static str, &'static str) = ("", "");
    type Cell = u8;
    fn load(c: &u8) -> Mine { Mine(*c) }
    fn store(_: &u8, _: Mine) {}
}
//# have_the_dimensions_of_their_shape E0308
fn f(rt: &mut Runtime) {
    let a: Root<Array2<u8>> = rt.bigarray_from_vec(vec![0_u8], [1]).root(); //~
    //+ let a: Root<Array2<u8>> = rt.bigarray_from_vec(vec![0_u8], [1, 1]).root();
}
//# of_four_dimensions_are_general E0277
fn f(rt: &mut Runtime) {
    rt.bigarray_from_vec(vec![0_u8], [1, 1, 1, 1]); //~
    //+ rt.bigarray_from_vec(vec![0_u8], vec![1, 1, 1, 1]);
}
//# have_one_layout E0308
fn f(rt: &mut Runtime) {
    let a: Root<Array1<u8>> = rt.bigarray_from_vec_in(FortranLayout, vec![0_u8], [1]).root(); //~
    //+ let a: Root<Array1<u8>> = rt.bigarray_from_vec_in(CLayout, vec![0_u8], [1]).root();
}
//# take_the_vector E0382
fn f(rt: &mut Runtime, v: Vec<u8>, w: Vec<u8>) {
    rt.bigarray_from_vec(v, [1]);
    drop(v); //~
    //+ drop(w);
}
//# are_read_by_cells E0308
fn f(rt: &Runtime, a: Root<Array1<u8>>) {
    let x: &[u8] = a.as_cells(rt); //~
    //+ let x: &[RelaxedCell<u8>] = a.as_cells(rt);
}
//# are_not_plain_slices_in_safe_code E0133
fn f(rt: &Runtime, a: Root<Array1<u8>>) {
    let x = a.as_slice(rt); //~
    //+ let x = a.as_cells(rt);
}
//# are_not_written_as_plain_slices_in_safe_code E0133
fn f(rt: &Runtime, a: Root<Array1<u8>>) {
    let x = a.as_mut_slice(rt); //~
    //+ let x = a.view(rt);
}
//# end_with_the_root E0505
fn f(rt: &mut Runtime, a: Root<Array1<u8>>, b: Root<Array1<u8>>) {
    let x = a.as_cells(rt);
    drop(a); //~
    //+ drop(b);
    println!("{}", x.len());
}
//# views_end_with_the_root E0505
fn f(rt: &mut Runtime, a: Root<Array1<u8>>, b: Root<Array1<u8>>) {
    let x = a.view(rt);
    drop(a); //~
    //+ drop(b);
    println!("{:?}", x.get([0]));
}
//# of_values_end_with_a_collection E0502
fn f(rt: &mut Runtime, a: Root<Array1<u8>>) {
    let x = a.get(rt).as_cells(rt); //~
    //+ let x = a.as_cells(rt);
    rt.minor_gc();
    println!("{}", x.len());
}
//# views_of_values_end_with_a_collection E0502
fn f(rt: &mut Runtime, a: Root<Array1<u8>>) {
    let x = a.get(rt).view(rt); //~
    //+ let x = a.view(rt);
    rt.minor_gc();
    println!("{:?}", x.get([0]));
}
//# keep_output_roots E0502
fn f(rt: &mut Runtime, mut a: Root<Array1<u8>>, mut b: Root<Array1<u8>>) {
    let x = a.as_cells(rt);
    a.set(rt.bigarray_from_vec(vec![1], [1])); //~
    //+ b.set(rt.bigarray_from_vec(vec![1], [1]));
    println!("{}", x.len());
}
//# of_values_are_not_used_without_the_lock E0502
fn f(rt: &mut Runtime, a: Root<Array1<u8>>) {
    let x = a.get(rt).as_cells(rt); //~
    //+ let x = a.as_cells(rt);
    rt.release(|| x.len());
}
//# have_no_int_of_64_bits E0308
fn f(a: &RelaxedCell<Int63>) {
    a.set(1_i64); //~
    //+ a.set(1_i32.into());
}
//# bytes_end_with_a_collection E0502
fn f(rt: &mut Runtime, a: Root<Bytes>) {
    let x = a.get(rt).as_cells(rt);
    rt.minor_gc(); //~
    //+ println!("nothing");
    println!("{}", x.len());
}
//# bytes_are_read_by_cells E0308
fn f(rt: &Runtime, a: Root<Bytes>) {
    let x: &[u8] = a.get(rt).as_cells(rt); //~
    //+ let x: &[RelaxedCell<u8>] = a.get(rt).as_cells(rt);
}
//# only_some_types_are_told_from_others E0277 do not say what they are
fn f(v: Value<'_>) {
    let _ = v.downcast::<Str>(); //~
    //+ let _ = v.downcast::<Boxed<String>>();
}

//# strings_in_place_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Str>) {
    let s: &str = r.to_rust(rt).unwrap();
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    s.len();
}
//# values_in_rust_types_do_not_survive_a_collection E0502
fn f(rt: &mut Runtime, r: &Root<Array<Str>>) {
    let v: Vec<Value<'_, Str>> = r.to_rust(rt).unwrap();
    rt.minor_gc(); //~
    //+ rt.named_value("x");
    v.len();
}
//# values_are_read_as_their_type E0271
fn f(rt: &Runtime, r: &Root<Str>) {
    let _ = r.to_rust::<i32>(rt); //~
    //+ let _ = r.to_rust::<String>(rt);
}
//# unknown_values_get_no_type E0277 cannot be made from an OCaml value of unknown type
fn f(rt: &Runtime, r: &Root) {
    let _ = r.get(rt).to_rust_checked::<Vec<Root<Str>>>(rt); //~
    //+ let _ = r.get(rt).to_rust_checked::<Vec<Root<Any>>>(rt);
}
//# unknown_values_may_be_bytes E0277 cannot be made from an OCaml value of unknown type
fn f(rt: &Runtime, r: &Root) {
    let _ = r.get(rt).to_rust_checked::<&str>(rt); //~
    //+ let _ = r.get(rt).to_rust_checked::<String>(rt);
}
//# bytes_are_not_borrowed E0271
fn f(rt: &Runtime, r: &Root<Bytes>) {
    let _ = r.to_rust::<&[u8]>(rt); //~
    //+ let _ = r.to_rust::<Bytes>(rt);
}
//# descriptions_are_promises E0200
struct S;
impl OCamlType for S { fn describe(_: &mut Definitions) -> String { "int".into() } } //~
//+ impl Typed for S { type Type = Int; }
//# elements_of_arrays_are_declared E0277 arrays of `S` have no counterpart in OCaml
struct S;
impl Typed for S { type Type = Int; }
trait Other {}
impl Other for S {} //~
//+ impl Element for S {}
impl ToOCaml for S {
    fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Int>, ConvertError> { Ok(int(3)) }
}
fn f(rt: &mut Runtime, v: Vec<S>) {
    let _ = rt.alloc(&v);
}
//# numbers_of_one_type_are_not_another E0271
fn f(rt: &mut Runtime, g: &Root<Fun<(Int64,), Unit>>) {
    let _ = g.call(rt, (3i64,)); //~
    //+ let _ = g.call(rt, (Int64(3),));
}
//# numbers_in_flat_arrays_have_a_type E0308
struct S;
impl Typed for S { type Type = Str; } //~
//+ impl Typed for S { type Type = Float; }
impl ToOCaml for S {
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> { loop {} }
    fn to_float(&self) -> Option<Flat<Self::Type>> { 1.0f64.to_float() }
}
//# numbers_from_flat_arrays_have_a_type E0308
fn f(rt: &Runtime, x: f64) {
    let _ = Root::<Str>::from_float(rt, x.to_float().unwrap()); //~
    //+ let _ = Root::<Float>::from_float(rt, x.to_float().unwrap());
}

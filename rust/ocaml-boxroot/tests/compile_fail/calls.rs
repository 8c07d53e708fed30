//# arguments_have_the_right_type E0271
fn f(rt: &mut Runtime, g: &Root<Fun<(Int,), Int>>) {
    let _ = g.call(rt, ("three",)); //~
    //+ let _ = g.call(rt, (3,));
}
//# rooted_arguments_have_the_right_type E0271
fn f(rt: &mut Runtime, g: &Root<Fun<(Int,), Int>>, s: &Root<Str>, n: &Root<Int>) {
    let _ = g.call(rt, (s,)); //~
    //+ let _ = g.call(rt, (n,));
}
//# there_are_as_many_arguments E0277 are not the arguments of an OCaml function that takes
fn f(rt: &mut Runtime, g: &Root<Fun<(Int, Int), Int>>) {
    let _ = g.call(rt, (3,)); //~
    //+ let _ = g.call(rt, (3, 4));
}
//# arguments_are_a_tuple E0277 are not the arguments of an OCaml function that takes
fn f(rt: &mut Runtime, g: &Root<Fun<(Int,), Int>>) {
    let _ = g.call(rt, 3); //~
    //+ let _ = g.call(rt, (3,));
}
//# results_have_the_right_type E0308
fn h(x: Value<'_, Str>) {}
fn k(x: Value<'_, Int>) {}
fn f(rt: &mut Runtime, g: &Root<Fun<(Int,), Int>>) {
    let y = g.call(rt, (3,)).unwrap();
    h(y.value()); //~
    //+ k(y.value());
}
//# other_values_are_not_called E0599
fn f(rt: &mut Runtime, s: &Root<Str>, g: &Root<Fun<(Int,), Int>>) {
    let _ = s.call(rt, (3,)); //~
    //+ let _ = g.call(rt, (3,));
}
//# unrooted_values_are_not_arguments E0502
fn f(rt: &mut Runtime, g: &Root<Fun<(Str,), Int>>, s: &Root<Str>) {
    let v = s.get(rt);
    let _ = g.call(rt, (&v,)); //~
    //+ let _ = g.call(rt, (s,));
}
//# unrooted_functions_are_not_called E0502
fn f(rt: &mut Runtime, g: &Root<Fun<(Int,), Int>>) {
    let h = g.get(rt); //~
    //+ let h = g;
    let _ = h.call(rt, (3,));
}

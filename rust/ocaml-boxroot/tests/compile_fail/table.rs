//# value_without_access E0502
fn f(x: Value<'_, Str>) -> usize { x.as_bytes().len() }
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    rt.minor_gc(); //~
    //+ f(v);
    f(v);
}
//# value_with_read_access E0502
fn f<'a>(rt: &'a Runtime, x: Value<'_, Str>) -> Root<Str> { x.root(rt) }
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    rt.minor_gc(); //~
    //+ f(rt, v);
    f(rt, v);
}
//# value_with_write_access E0502
fn f<T>(rt: &mut Runtime, x: Value<'_, T>) -> isize { rt.minor_gc(); x.raw() }
fn test(rt: &mut Runtime, r: &Root<Int>) {
    let v = r.get(rt); //~
    //+ let v = int(3);
    f(rt, v);
}
//# value_exn_without_access E0502
fn f(x: ValueExn<'_, Str>) -> bool { x.decode().is_ok() }
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let v = ValueExn::from(r.get(rt));
    rt.minor_gc(); //~
    //+ f(v);
    f(v);
}
//# value_exn_with_read_access E0502
fn f(rt: &Runtime, x: ValueExn<'_, Str>) -> Result<Root<Str>, Exception> {
    x.decode().map(|v| v.root(rt)).map_err(|e| Exception::new(rt, e))
}
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let v = ValueExn::from(r.get(rt));
    rt.minor_gc(); //~
    //+ let _ = f(rt, v);
    let _ = f(rt, v);
}
//# value_exn_with_write_access E0502
fn f<T>(rt: &mut Runtime, x: ValueExn<'_, T>) {}
fn test(rt: &mut Runtime, r: &Root<Int>) {
    let v = ValueExn::from(r.get(rt)); //~
    //+ let v = ValueExn::from(int(3));
    f(rt, v);
}
//# value_unshared_without_access E0382
fn f(mut x: BlockBuilder<'_>) -> BlockBuilder<'_> { x.set(0, int(3)); x }
fn test(rt: &mut Runtime) {
    let _ = rt.try_build(8, |n| {
        let block = n.block_builder(0, 2)?;
        let done = f(block);
        let again = f(block); //~
        //+ let again = f(done);
        Ok::<_, ShapeError>(again.finish())
    });
}
//# value_unshared_with_read_access E0382
fn f<'n>(rt: &'n Runtime, mut x: BlockBuilder<'n>, y: ValueRef<'_, Str>) -> BlockBuilder<'n> {
    x.set(0, y.get(rt));
    x
}
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let _ = rt.try_build(8, |n| {
        let block = n.block_builder(0, 2)?;
        let done = f(n, block, r);
        let again = f(n, block, r); //~
        //+ let again = f(n, done, r);
        Ok::<_, ShapeError>(again.finish())
    });
}
//# value_unshared_with_write_access E0308
fn f(rt: &mut Runtime, x: BlockBuilder<'_>) -> isize { 0 }
fn g(rt: &Runtime, x: BlockBuilder<'_>) -> isize { 0 }
fn test(rt: &mut Runtime) {
    let _ = rt.try_build(8, |n| {
        f(n, n.block_builder(0, 2)?); //~
        //+ g(n, n.block_builder(0, 2)?);
        Ok::<_, ShapeError>(n.unit())
    });
}
//# value_ref_without_access E0061
fn f(x: ValueRef<'_, Str>, rt: &Runtime) -> usize {
    x.get().as_bytes().len() //~
    //+ x.get(rt).as_bytes().len()
}
//# value_ref_with_read_access E0502
fn f(rt: &Runtime, x: ValueRef<'_, Str>) -> usize { x.get(rt).as_bytes().len() }
fn test(rt: &mut Runtime, r: &Root<Any>, s: &Root<Str>) {
    let v = s.get(rt);
    f(rt, &v) + f(rt, s);
    rt.minor_gc(); //~
    //+ f(rt, s);
    f(rt, &v);
}
//# value_ref_with_write_access E0502
fn f<T>(rt: &mut Runtime, x: ValueRef<'_, T>) -> isize { rt.minor_gc(); x.get(rt).raw() }
fn test(rt: &mut Runtime, r: &Root<Str>) {
    let v = r.get(rt);
    f(rt, &v); //~
    //+ f(rt, r); f(rt, &int(3)); rt.frame(|rt, [a]| { let a = a.root(rt.string("x")); f(rt, a) });
}
//# mut_cell_without_access E0502
fn f(x: &MutCell<Str>) -> usize { x.get().as_bytes().len() }
fn test(rt: &mut Runtime, r: &Root<Ref<Str>>) {
    let c = r.get(rt).contents();
    rt.minor_gc(); //~
    //+ f(c);
    f(c);
}
//# mut_cell_with_read_access E0502
fn f(rt: &Runtime, x: &MutCell<Str>, y: Value<'_, Str>) { x.set(rt, y) }
fn test(rt: &mut Runtime, r: &Root<Ref<Str>>, s: &Root<Str>) {
    let c = r.get(rt).contents();
    rt.minor_gc(); //~
    //+ f(rt, c, s.get(rt));
    f(rt, c, s.get(rt));
}
//# mut_cell_with_write_access E0502
fn f(rt: &mut Runtime, x: &MutCell<Str>) {}
fn g(rt: &Runtime, x: &MutCell<Str>) {}
fn test(rt: &mut Runtime, r: &Root<Ref<Str>>) {
    let c = r.get(rt).contents();
    f(rt, c); //~
    //+ g(rt, c);
}
//# atomic_cell_without_access E0502
fn f(x: &AtomicCell<Int>) -> isize { x.get().to_isize() }
fn test(rt: &mut Runtime, r: &Root<Atomic<Int>>) {
    let c = r.get(rt).contents();
    rt.minor_gc(); //~
    //+ f(c);
    f(c);
}
//# atomic_cell_with_read_access E0502
fn f(rt: &Runtime, x: &AtomicCell<Int>) -> isize { x.fetch_add(rt, int(1)) }
fn test(rt: &mut Runtime, r: &Root<Atomic<Int>>) {
    let c = r.get(rt).contents();
    rt.minor_gc(); //~
    //+ f(rt, c);
    f(rt, c);
}
//# atomic_cell_with_write_access E0502
fn f(rt: &mut Runtime, x: &AtomicCell<Int>) {}
fn g(rt: &Runtime, x: &AtomicCell<Int>) {}
fn test(rt: &mut Runtime, r: &Root<Atomic<Int>>) {
    let c = r.get(rt).contents();
    f(rt, c); //~
    //+ g(rt, c);
}
//# root_without_access E0061
fn f(x: Root<Str>, rt: &Runtime) -> usize {
    x.get().as_bytes().len() //~
    //+ x.get(rt).as_bytes().len()
}
//# root_with_read_access E0382
fn f(rt: &Runtime, x: Root<Str>) -> usize { x.get(rt).as_bytes().len() }
fn test(rt: &mut Runtime, r: Root<Str>) {
    f(rt, r); //~
    //+ f(rt, r.clone_ref(rt));
    rt.minor_gc();
    f(rt, r);
}
//# root_with_write_access E0382
fn f(rt: &mut Runtime, x: Root<Str>) -> usize { rt.minor_gc(); x.get(rt).as_bytes().len() }
fn test(rt: &mut Runtime, r: Root<Str>, s: Root<Str>) {
    f(rt, r);
    rt.minor_gc();
    f(rt, r); //~
    //+ f(rt, s);
}

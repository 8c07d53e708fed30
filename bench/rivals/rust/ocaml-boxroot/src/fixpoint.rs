// SPDX-License-Identifier: MIT
use ocaml_boxroot::*;

#[inline(never)]
fn same(x: Value<'_, Float>, y: Value<'_, Float>) -> bool {
    x.to_f64() == y.to_f64()
}

/// A loop, as C compilers make one of the recursion in C.
#[export(unsafe(symbol = "fixpoint"))]
fn fixpoint<'a>(
    rt: &'a mut Runtime,
    f: Root<Fun<(Float,), Float>>,
    x: Root<Float>,
) -> Result<ValueGuard<'a, Float>, Exception> {
    let (mut rt, mut x) = (rt, x);
    loop {
        let y = f.call(rt, (&x,))?;
        if same(x.get(y.rt()), y.value()) {
            x.drop_ref(y.rt());
            f.drop_ref(y.rt());
            return Ok(y);
        }
        let (y, back) = y.root_and_rt();
        rt = back;
        std::mem::replace(&mut x, y).drop_ref(rt);
    }
}

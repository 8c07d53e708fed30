// SPDX-License-Identifier: MIT
use ocaml::Value;

#[inline(never)]
fn same(x: &Value, y: &Value) -> bool {
    // SAFETY: both are floats.
    unsafe { x.double_val() == y.double_val() }
}

#[ocaml::func]
pub fn fixpoint(f: Value, x: Value) -> Result<Value, ocaml::Error> {
    let mut x = x;
    loop {
        let y = unsafe { f.call1(gc, &x)? };
        if same(&x, &y) {
            return Ok(y);
        }
        x = y;
    }
}

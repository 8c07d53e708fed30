// SPDX-License-Identifier: MIT
use ocaml_interop::*;

#[inline(never)]
fn same(x: OCaml<OCamlFloat>, y: OCaml<OCamlFloat>) -> bool {
    x.to_rust::<f64>() == y.to_rust::<f64>()
}

#[export]
fn fixpoint(
    cr: &mut OCamlRuntime,
    f: BoxRoot<fn(OCamlFloat) -> OCamlFloat>,
    x: BoxRoot<OCamlFloat>,
) -> OCaml<OCamlFloat> {
    let mut x = x;
    loop {
        // The argument as a reference, since a root would be rooted again.
        let y = match f.try_call::<_, ()>(cr, &&*x) {
            Ok(y) => y.root(),
            Err(e) => panic!("{:?}", e.message()),
        };
        if same(x.get(cr), y.get(cr)) {
            break y.get(cr);
        }
        x = y;
    }
}

// SPDX-License-Identifier: MIT
//! Safe Rust against C on the same library: the benchmark local_roots, and loops of creations and deletions. Median of
//! rounds.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing::bench::compare;
use ocaml_boxroot_testing::{self as ocaml, attached, c};
use std::hint::black_box;

type Step = Fun<(Float,), Float>;

#[inline(never)]
fn same(x: Value<'_, Float>, y: Value<'_, Float>) -> bool {
    x.to_f64() == y.to_f64()
}

/// A loop, as C compilers make one of the recursion in C.
fn fixpoint<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Step>,
    mut x: Root<Float>,
) -> Result<ValueGuard<'a, Float>, Exception> {
    let mut rt = rt;
    loop {
        let y = f.call(rt, (&x,))?;
        if same(x.get(y.rt()), y.value()) {
            x.drop_ref(y.rt());
            return Ok(y);
        }
        let (y, back) = y.root_and_rt();
        rt = back;
        std::mem::replace(&mut x, y).drop_ref(rt);
    }
}

/// The same with a local slot in place of roots.
fn fixpoint_slots<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Step>,
    x: ValueRef<'_, Float>,
) -> Result<ValueGuard<'a, Float>, Exception> {
    rt.frame(|rt, [mut slot]| {
        let mut rt = rt;
        let mut x = slot.set_value(rt, x.get(rt));
        loop {
            let y = f.call(rt, (x,))?;
            if same(x.get(y.rt()), y.value()) {
                return Ok(y);
            }
            let (v, ro) = (y.value(), y.rt());
            x = slot.set_value(ro, v);
            rt = y.into_rt();
        }
    })
}

fn consume(x: f64) {
    black_box(x);
}

fn main() {
    attached(|rt| {
        println!("{:<28}{:>10}{:>10}{:>10}{:>10}{:>8}", "ns", "C boxroot", "C local", "roots", "slots", "ratio");
        let (mut product, mut cases) = (1.0, 0);
        for n in [1, 2, 5, 10, 100, 1000] {
            let f = ocaml::stepper(rt).call(rt, (f64::from(n),)).unwrap().root();
            let x = rt.float(1.0).root();
            let count = 40_000 / n as usize;
            let t = compare(
                rt,
                count,
                [
                    &mut |rt, count| (0..count).for_each(|_| consume(c::fixpoint(rt, &f, &x))),
                    &mut |rt, count| (0..count).for_each(|_| consume(c::fixpoint_local(rt, &f, &x))),
                    &mut |rt, count| {
                        for _ in 0..count {
                            // As in C, which makes roots of function and argument.
                            let (f, x) = (f.clone_ref(rt), x.clone_ref(rt));
                            consume(fixpoint(rt, &f, x).unwrap().value().to_f64());
                            f.drop_ref(rt);
                        }
                    },
                    &mut |rt, count| {
                        (0..count).for_each(|_| consume(fixpoint_slots(rt, &f, &x).unwrap().value().to_f64()))
                    },
                ],
            );
            let ratio = t[2] / t[0];
            product *= ratio;
            cases += 1;
            println!("local_roots, N = {n:<11}{:>10.1}{:>10.1}{:>10.1}{:>10.1}{ratio:>8.3}", t[0], t[1], t[2], t[3]);
        }
        println!("{:<68}{:>8.3}", "geometric mean", f64::powf(product, 1.0 / f64::from(cases)));

        println!("\n{:<28}{:>10}{:>10}{:>10}{:>8}{:>8}", "ns per root", "C", "drop", "end", "ratio", "ratio");
        let v = rt.string("value").into_any().root();
        let t = compare(
            rt,
            1_000_000,
            [
                &mut |rt, count| c::pairs(rt, &v, count),
                &mut |rt, count| (0..count).for_each(|_| drop(black_box(Root::new(rt, v.get(rt))))),
                &mut |rt, count| (0..count).for_each(|_| black_box(Root::new(rt, v.get(rt))).drop_ref(rt)),
            ],
        );
        println!(
            "{:<28}{:>10.2}{:>10.2}{:>10.2}{:>8.3}{:>8.3}",
            "create, delete",
            t[0],
            t[1],
            t[2],
            t[1] / t[0],
            t[2] / t[0]
        );
        let mut roots: Vec<Root> = Vec::with_capacity(1000);
        let mut others: Vec<Root> = Vec::with_capacity(1000);
        let t = compare(
            rt,
            1_000_000,
            [
                &mut |rt, count| c::batches(rt, &v, count),
                &mut |rt, count| {
                    for _ in 0..count / 1000 {
                        roots.extend((0..1000).map(|_| Root::new(rt, v.get(rt))));
                        black_box(&mut roots).clear();
                    }
                },
                &mut |rt, count| {
                    for _ in 0..count / 1000 {
                        others.extend((0..1000).map(|_| Root::new(rt, v.get(rt))));
                        black_box(&mut others).drain(..).for_each(|r| r.drop_ref(rt));
                    }
                },
            ],
        );
        println!(
            "{:<28}{:>10.2}{:>10.2}{:>10.2}{:>8.3}{:>8.3}",
            "a thousand at a time",
            t[0],
            t[1],
            t[2],
            t[1] / t[0],
            t[2] / t[0]
        );
    })
}

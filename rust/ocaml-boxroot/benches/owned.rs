// SPDX-License-Identifier: MIT
//! Rust values that OCaml owns, against the same in C: making and dropping them, reading through a root; and sums over
//! the elements of a bigarray. Medians of rounds.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing::attached;
use ocaml_boxroot_testing::bench::compare;
use ocaml_boxroot_testing::own::c;
use std::hint::black_box;

struct Operated(u64);
impl CustomOps for Operated {
    const COMPARE: Option<fn(&Self, &Self) -> std::cmp::Ordering> = Some(|a, b| a.0.cmp(&b.0));
}
struct Later(#[allow(dead_code)] u64);
impl CustomOps for Later {
    const DEFER_DROP: bool = true;
}

fn let_go<T>(v: ValueGuard<'_, T>) {
    black_box(v).into_rt();
}

fn show<const N: usize>(names: [&str; N], times: [f64; N]) {
    for (name, time) in names.into_iter().zip(times) {
        println!("{name:<44}{time:>8.2} ns{:>8.3}", time / times[0]);
    }
}

fn main() {
    attached(|rt| {
        let times = compare(
            rt,
            200_000,
            [
                &mut |rt, count| c::numbers(rt, count),
                &mut |rt, count| (0..count).for_each(|i| let_go(rt.boxed(i as u64))),
                &mut |rt, count| (0..count).for_each(|i| let_go(rt.boxed_custom(Operated(i as u64)))),
                &mut |rt, count| {
                    (0..count).for_each(|i| let_go(rt.boxed_custom(Later(i as u64))));
                    rt.poll().unwrap();
                },
            ],
        );
        let names = ["make and drop, C", "boxed", "boxed_custom, with comparison", "boxed_custom, dropped later"];
        show(names, times);

        let number = c::number(rt, 3);
        let plain = rt.boxed(3_u64).root();
        let operated = rt.boxed_custom(Operated(3)).root();
        let times = compare(
            rt,
            2_000_000,
            [
                &mut |rt, count| assert_eq!(c::read(rt, &number, count), 3 * count as u64),
                &mut |rt, count| {
                    let sum: u64 = (0..count).map(|_| *black_box(&plain).payload(rt)).sum();
                    assert_eq!(sum, 3 * count as u64)
                },
                &mut |rt, count| {
                    let sum: u64 = (0..count).map(|_| black_box(&operated).payload(rt).0).sum();
                    assert_eq!(sum, 3 * count as u64)
                },
            ],
        );
        show(["read through a root, C (not checked)", "payload", "payload with comparison"], times);

        let array = rt.bigarray_from_vec(vec![1.0_f64; 100_000], [100_000]).root();
        let plain = vec![1.0_f64; 100_000];
        let times = compare(
            rt,
            100_000,
            [&mut |_, _| assert_eq!(black_box(&plain).iter().sum::<f64>(), 100_000.0), &mut |rt, _| {
                assert_eq!(array.as_cells(rt).iter().map(RelaxedCell::get).sum::<f64>(), 100_000.0)
            }],
        );
        show(["sum of a slice, each element", "sum of a bigarray"], times);
    })
}

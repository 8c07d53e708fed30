// SPDX-License-Identifier: MIT
//! Conversions of lists, arrays and records of 100,000 elements, both ways. Nanoseconds for each element, the best of
//! many rounds: to OCaml; to OCaml, and the minor collection after it; from OCaml. A full collection
//! between rounds is not counted.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing::attached;
use std::hint::black_box;
use std::time::Instant;

const N: usize = 100_000;

#[derive(OCamlType, ToOCaml, FromOCaml)]
struct Record<A> {
    number: i64,
    item: A,
    flag: bool,
}

#[derive(OCamlType, ToOCaml, FromOCaml)]
struct Point {
    x: f64,
    y: f64,
}

fn best(rt: &mut Runtime, mut run: impl FnMut(&mut Runtime)) -> f64 {
    (0..51)
        .map(|_| {
            rt.full_major().expect("no finaliser raises");
            let start = Instant::now();
            run(rt);
            start.elapsed().as_nanos() as f64 / N as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn measure<R: ToOCaml + for<'a> FromOCaml<'a>>(rt: &mut Runtime, name: &str, r: R) {
    let to = best(rt, |rt| _ = black_box(rt.alloc(&r).expect("converted")));
    // With the collection that follows, where the value lives on.
    let live = best(rt, |rt| {
        let value = rt.alloc(&r).expect("converted").root();
        rt.minor_gc();
        drop(value);
    });
    let value = rt.alloc(&r).expect("converted").root();
    let from = best(rt, |rt| drop(black_box(value.to_rust::<R>(rt).expect("read"))));
    println!("{name:<28}{to:>10.2}{live:>10.2}{from:>10.2}");
}

fn main() {
    attached(|rt| {
        println!("{:<28}{:>10}{:>10}{:>10}", "ns per element", "to OCaml", "kept", "from");
        let ints = || (0..N as i64).collect::<Vec<_>>();
        let floats = || (0..N).map(|i| i as f64).collect::<Vec<_>>();
        let strings = || (0..N).map(|i| format!("number {i}")).collect::<Vec<_>>();
        fn records<A>(items: Vec<A>) -> Vec<Record<A>> {
            items.into_iter().map(|item| Record { number: 1, item, flag: true }).collect()
        }
        measure(rt, "list of ints", List(ints()));
        measure(rt, "list of floats", List(floats()));
        measure(rt, "list of strings", List(strings()));
        measure(rt, "array of ints", ints());
        measure(rt, "array of floats", floats());
        measure(rt, "array of strings", strings());
        measure(rt, "array of records of ints", records(ints()));
        measure(rt, "array of records of floats", records(floats()));
        measure(rt, "array of records of strings", records(strings()));
        measure(rt, "array of flat records", floats().into_iter().map(|x| Point { x, y: x }).collect::<Vec<_>>());
    })
}

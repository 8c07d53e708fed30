// SPDX-License-Identifier: MIT
//! What the hot paths cost in Rust: the workloads `pair` and, with a step in C instead of OCaml, `local_roots` of
//! bench/.
//!
//!     cargo run --release --features link-ocaml-runtime-and-dummy-program --example hot_paths [REPEATS]
//!
//! For comparison with C, which OCaml and dune compile with -O2, set CARGO_PROFILE_RELEASE_OPT_LEVEL=2: level 3 unrolls
//! the batch of 10, as it does in C, which takes longer. Prints nanoseconds: the least of REPEATS measurements (default
//! 20). With REPEATS = 0 it runs each workload once and measures nothing: for `valgrind --tool=callgrind`, where each
//! function below has a line of its own.

use ocaml_boxroot_sys::*;
use std::ffi::c_char;
use std::hint::black_box;
use std::time::Instant;

extern "C" {
    fn caml_startup(argv: *const *const c_char);
    fn caml_copy_double(d: f64) -> Value;
}

const MOST: usize = 1000;
type Roots = [Option<BoxRoot>; MOST];

// One function per operation, so that a profiler tells them apart. `batch_nothing` is what the loop itself costs.

#[inline(never)]
unsafe fn batch_create(roots: &mut Roots, v: Value) {
    roots.iter_mut().for_each(|r| *r = boxroot_create(v));
}

#[inline(never)]
unsafe fn batch_delete(roots: &mut Roots) {
    roots.iter_mut().for_each(|r| boxroot_delete(r.unwrap_unchecked()));
}

#[inline(never)]
unsafe fn batch_modify(roots: &mut Roots, v: Value) {
    for r in roots.iter_mut() {
        boxroot_modify(r.as_mut().unwrap_unchecked(), v);
    }
}

#[inline(never)]
unsafe fn batch_create_in(d: BoxrootDomain, roots: &mut Roots, v: Value) {
    roots.iter_mut().for_each(|r| *r = boxroot_create_in(d, v));
}

#[inline(never)]
unsafe fn batch_delete_in(d: BoxrootDomain, roots: &mut Roots) {
    roots.iter_mut().for_each(|r| boxroot_delete_in(d, r.unwrap_unchecked()));
}

#[inline(never)]
unsafe fn batch_nothing(values: &mut [Value; MOST], v: Value) {
    values.iter_mut().for_each(|w| std::ptr::write_volatile(w, v));
}

#[inline(always)]
unsafe fn batches<const SIZE: usize>(roots: &mut Roots, v: Value) {
    for _ in 0..MOST / SIZE {
        roots[..SIZE].iter_mut().for_each(|r| *r = boxroot_create(v));
        black_box(&mut *roots);
        roots[..SIZE].iter_mut().for_each(|r| boxroot_delete(r.unwrap_unchecked()));
        black_box(&mut *roots);
    }
}

#[inline(always)]
unsafe fn batches_in<const SIZE: usize>(d: BoxrootDomain, roots: &mut Roots, v: Value) {
    for _ in 0..MOST / SIZE {
        roots[..SIZE].iter_mut().for_each(|r| *r = boxroot_create_in(d, v));
        black_box(&mut *roots);
        roots[..SIZE].iter_mut().for_each(|r| boxroot_delete_in(d, r.unwrap_unchecked()));
        black_box(&mut *roots);
    }
}

unsafe fn number(v: Value) -> f64 {
    *(v as *const f64)
}

/// Counts up to `last` by recursion; each level has a root of its own.
#[inline(never)]
unsafe fn fixpoint(last: f64, x: BoxRoot) -> BoxRoot {
    let next = number(boxroot_get(x)) + 1.;
    let y = boxroot_create(caml_copy_double(if next > last { last } else { next })).unwrap_unchecked();
    let done = number(boxroot_get(x)) == number(boxroot_get(y));
    boxroot_delete(x);
    if done {
        y
    } else {
        black_box(fixpoint(last, y))
    }
}

unsafe fn local_roots(last: usize) {
    let y = fixpoint(last as f64, boxroot_create(caml_copy_double(1.)).unwrap());
    assert_eq!(number(boxroot_get(y)), last as f64);
    boxroot_delete(y);
}

/// Prints the least time of an operation, of which each call of `f` does `operations`.
fn report(name: &str, repeats: usize, operations: usize, mut f: impl FnMut()) {
    let mut least = f64::INFINITY;
    for _ in 0..repeats {
        let start = Instant::now();
        (0..100).for_each(|_| f());
        least = least.min(start.elapsed().as_nanos() as f64 / (100 * operations) as f64);
    }
    if repeats == 0 {
        (0..100).for_each(|_| f());
    } else {
        println!("{name:32} {least:7.2} ns");
    }
}

fn main() {
    let repeats = std::env::args().nth(1).map_or(20, |a| a.parse().expect("REPEATS is a number"));
    let name = b"hot_paths\0".as_ptr() as *const c_char;
    // SAFETY: this thread holds the lock from the first line on, and the roots are deleted once.
    unsafe {
        caml_startup([name, std::ptr::null()].as_ptr());
        let v = 1;
        let roots: &mut Roots = &mut [None; MOST];
        report("create + delete, 1", repeats, MOST, || batches::<1>(roots, v));
        report("create + delete, 10", repeats, MOST, || batches::<10>(roots, v));
        report("create + delete, 100", repeats, MOST, || batches::<100>(roots, v));
        report("create + delete, 1000", repeats, MOST, || batches::<1000>(roots, v));
        let d = boxroot_domain_here().unwrap();
        report("create_in + delete_in, 1", repeats, MOST, || batches_in::<1>(d, roots, v));
        report("create_in + delete_in, 10", repeats, MOST, || batches_in::<10>(d, roots, v));
        report("create_in + delete_in, 100", repeats, MOST, || batches_in::<100>(d, roots, v));
        report("create_in + delete_in, 1000", repeats, MOST, || batches_in::<1000>(d, roots, v));
        batch_create(roots, v);
        report("modify", repeats, MOST, || batch_modify(roots, v));
        batch_delete(roots);
        for n in [1, 10, 1000] {
            report(&format!("local_roots, N = {n}"), repeats, 1, || local_roots(n));
        }
        if repeats == 0 {
            for _ in 0..100 {
                batch_create(roots, v);
                batch_delete(roots);
                batch_create_in(d, roots, v);
                batch_delete_in(d, roots);
                batch_nothing(&mut [0; MOST], v);
            }
        }
        boxroot_teardown();
    }
}

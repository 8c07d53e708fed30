// SPDX-License-Identifier: MIT
//! Times of the benchmarks.
use ocaml_boxroot::Runtime;
use std::time::Instant;

/// Does something so many times.
pub type Run<'a> = &'a mut dyn FnMut(&mut Runtime, usize);

/// Nanoseconds of each, alternating; medians.
pub fn compare<const N: usize>(rt: &mut Runtime, count: usize, mut run: [Run<'_>; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..31 {
        for (times, run) in times.iter_mut().zip(&mut run) {
            let start = Instant::now();
            run(rt, count);
            times.push(start.elapsed().as_nanos() as f64 / count as f64);
        }
    }
    times.map(|mut t| {
        t.sort_by(f64::total_cmp);
        t[t.len() / 2]
    })
}

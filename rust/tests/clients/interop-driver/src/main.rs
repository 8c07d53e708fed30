// SPDX-License-Identifier: MIT
//! A Rust program that starts OCaml: several threads take the domain lock by turns, call OCaml and keep roots; others
//! drop roots without the lock.

use ocaml_interop::{BoxRoot, OCaml, OCamlInt, OCamlRuntime, ToOCaml};

pub struct Tree;

mod ml {
    use super::Tree;
    use ocaml_interop::{ocaml, OCamlInt};
    ocaml! {
        pub fn empty(unit: ()) -> Tree;
        pub fn insert(s: String, t: Tree) -> Tree;
        pub fn size(t: Tree) -> OCamlInt;
        pub fn collect(full: bool);
    }
}

/// `ocaml-interop` does not let its roots cross threads; Boxroot allows it.
struct Kept(Vec<BoxRoot<Tree>>);
unsafe impl Send for Kept {}

fn size(cr: &mut OCamlRuntime, t: &BoxRoot<Tree>) -> i64 {
    let n: BoxRoot<OCamlInt> = ml::size(cr, t);
    n.to_rust(cr)
}

/// Builds a tree of `n` strings and keeps every version of it.
fn versions(cr: &mut OCamlRuntime, who: usize, n: usize) -> Vec<BoxRoot<Tree>> {
    let mut all = vec![ml::empty(cr, &OCaml::unit())];
    for i in 0..n {
        let s: BoxRoot<String> = format!("{} {}", i * 7919 % n, who).to_boxroot(cr);
        let t = ml::insert(cr, &s, all.last().unwrap());
        all.push(t);
        if i % 100 == 0 {
            ml::collect(cr, &OCaml::of_bool(i % 500 == 0));
        }
    }
    all
}

fn worker(who: usize) -> Kept {
    let mut kept = Vec::new();
    for round in 0..5 {
        OCamlRuntime::with_domain_lock(|cr| {
            let all = versions(cr, who + 10 * round, 400);
            for (i, t) in all.iter().enumerate() {
                assert_eq!(size(cr, t), i as i64);
            }
            kept.extend(all.into_iter().step_by(3));
        });
        std::thread::yield_now();
        // Half of them are dropped on a thread of their own, while another thread may be running OCaml code.
        let half = Kept(kept.split_off(kept.len() / 2));
        std::thread::spawn(move || drop(half)).join().unwrap();
    }
    Kept(kept)
}

fn main() {
    let guard = OCamlRuntime::init().unwrap();
    let workers: Vec<_> = (0..4).map(|who| std::thread::spawn(move || worker(who))).collect();
    let kept: Vec<Kept> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    OCamlRuntime::with_domain_lock(|cr| {
        ml::collect(cr, &OCaml::of_bool(true));
        for Kept(trees) in &kept {
            let sizes: Vec<i64> = trees.iter().map(|t| size(cr, t)).collect();
            assert!(sizes.iter().all(|n| (0..=400).contains(n)) && sizes[1] == 3, "{sizes:?}");
        }
    });
    drop(kept); // without the lock
    OCamlRuntime::with_domain_lock(|cr| ml::collect(cr, &OCaml::of_bool(true)));
    drop(guard); // tears Boxroot down, then shuts OCaml down
    println!("driver: ok");
}

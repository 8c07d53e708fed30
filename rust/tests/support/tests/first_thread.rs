// SPDX-License-Identifier: MIT
//! OCaml's stack overflows on the program's first thread, on which no harness runs tests.
#![forbid(unsafe_code)]

use ocaml_boxroot::exceptions::StackOverflow;
use ocaml_boxroot::*;
use ocaml_boxroot_testing as testing;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static LEFT: AtomicUsize = AtomicUsize::new(0);
struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT.fetch_add(1, SeqCst);
    }
}

fn overflow(rt: &mut Runtime) -> Result<isize, Exception> {
    let _guard = Guard;
    let kept = rt.string("kept").root();
    let error = match testing::deep(rt).call(rt, (1_000_000_000,)) {
        Ok(n) => return Ok(n.value().to_isize()),
        Err(error) => error,
    };
    assert!(error.matches::<StackOverflow>(rt), "{error}");
    rt.full_major()?;
    assert_eq!(kept.get(rt).to_str(), Ok("kept"));
    Err(error)
}

fn main() {
    let before = testing::signal_stack().expect("a program of Rust's");
    let _ocaml = start(&StartOptions::default()).unwrap();
    assert_eq!(testing::signal_stack(), Some(before), "Rust's is put back");
    attach(|rt| {
        if testing::OCAML5 {
            testing::beat(rt).call(rt, (2000,)).unwrap();
        }
        testing::stack_limit(rt).call(rt, (1 << 20,)).unwrap();
        overflow(rt).unwrap_err();
        // Below frames of Rust that OCaml has called.
        let n = testing::on_rust(|rt, _| {
            overflow(rt).unwrap_err();
            3
        });
        for round in 1..=5 {
            assert_eq!(testing::call_rust(rt).call(rt, (n,)).unwrap().value().to_isize(), 3);
            assert_eq!(LEFT.load(SeqCst), 1 + round);
        }
    })
    .unwrap();
    println!("first thread: ok");
}

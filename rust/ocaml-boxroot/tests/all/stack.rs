// SPDX-License-Identifier: MIT
//! OCaml's stack has no room left when Rust calls OCaml. A process of its own, since it makes the stack small.

use crate::process::{again, alone, told};
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const LEVELS: usize = 2000;
static ENTERED: AtomicUsize = AtomicUsize::new(0);
static LEFT: AtomicUsize = AtomicUsize::new(0);
static OVERFLOWS: AtomicUsize = AtomicUsize::new(0);

/// Must be dropped, whatever fails.
struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT.fetch_add(1, SeqCst);
    }
}

#[test]
fn an_overflow_skips_no_rust_frame() {
    alone(an_overflow_skips_no_rust_frame, || {
        if !ocaml::OCAML5 {
            return;
        }
        let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(|| {
            attached(|rt| {
                let mut next = ocaml::on_rust(|_, _| 0);
                for _ in 0..LEVELS {
                    let callee = next;
                    next = ocaml::on_rust(move |rt, _| {
                        let _guard = Guard;
                        ENTERED.fetch_add(1, SeqCst);
                        match ocaml::call_rust(rt).call(rt, (callee,)) {
                            Ok(n) => n.value().to_isize() + 1,
                            Err(error) => {
                                assert!(error.is(rt, "Stack_overflow"));
                                OVERFLOWS.fetch_add(1, SeqCst);
                                0
                            }
                        }
                    });
                }
                ocaml::stack_limit(rt).call(rt, (4096,)).unwrap();
                let levels = ocaml::call_rust(rt).call(rt, (next,)).unwrap().value().to_isize();
                rt.full_major().unwrap();
                levels
            })
        });
        let levels = thread.unwrap().join().unwrap() as usize;
        assert!(levels < LEVELS, "the stack overflows");
        assert_eq!(OVERFLOWS.load(SeqCst), 1);
        assert_eq!((ENTERED.load(SeqCst), LEFT.load(SeqCst)), (levels + 1, levels + 1));
    })
}

fn down(n: usize) -> usize {
    let here = std::hint::black_box([n; 64]);
    here[n % 64].wrapping_add(if n == usize::MAX { 0 } else { down(n + 1) })
}

#[test]
fn an_overflow_of_rust_after_attach() {
    if let Some(what) = told(an_overflow_of_rust_after_attach) {
        match &*what {
            "inside" => attached(|_| println!("{}", down(0))),
            _ => attached(|_| ()),
        }
        println!("{}", down(0));
    }
}

#[test]
fn an_overflow_of_rust_is_told() {
    for what in ["inside", "afterwards"] {
        let output = again(an_overflow_of_rust_after_attach, what);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("has overflowed its stack"), "{what}: {}\n{errors}", output.status);
    }
}

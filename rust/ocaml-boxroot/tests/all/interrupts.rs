// SPDX-License-Identifier: MIT
//! Interrupts by the user. A process of its own, since any thread may be interrupted.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

static LEFT: AtomicUsize = AtomicUsize::new(0);
struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT.fetch_add(1, SeqCst);
    }
}

/// Waits for it in Rust, with OCaml code below and above.
fn wait(rt: &mut Runtime) -> Result<Infallible, Exception> {
    let _guard = Guard;
    ocaml::interrupt_me(rt).call(rt, ((),))?;
    loop {
        rt.poll()?;
        rt.release(thread::yield_now);
        rt.string("allocation runs no handlers");
    }
}

#[test]
fn an_interrupt_is_an_error_and_skips_nothing() {
    alone(an_interrupt_is_an_error_and_skips_nothing, || {
        attached(|rt| {
            ocaml::catch_break(rt).call(rt, (true,)).unwrap();
            for round in 1..=10 {
                let error = wait(rt).unwrap_err();
                assert_eq!(error.to_string(), "Stdlib.Sys.Break");
                assert_eq!(LEFT.load(SeqCst), round);
            }
            ocaml::catch_break(rt).call(rt, (false,)).unwrap();
        })
    })
}

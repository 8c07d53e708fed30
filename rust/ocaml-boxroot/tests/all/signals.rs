// SPDX-License-Identifier: MIT
//! OCaml's signal handlers. A process of its own, since any thread may run them.

use crate::process::alone;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::thread;

#[test]
fn an_exception_of_a_signal_handler_comes_out_of_poll() {
    alone(an_exception_of_a_signal_handler_comes_out_of_poll, || {
        attached(|rt| {
            ocaml::raise_on_signal(rt).call(rt, ((),)).unwrap();
            let signal_me = ocaml::signal_me(rt);
            let mut raised = signal_me.call(rt, ((),)).map(drop);
            while raised.is_ok() {
                rt.release(thread::yield_now);
                raised = rt.poll();
            }
            assert_eq!(raised.unwrap_err().to_string(), r#"Failure("signal")"#);
        })
    })
}

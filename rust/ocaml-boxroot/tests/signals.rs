// SPDX-License-Identifier: MIT
//! OCaml's signal handlers. A process of its own, since any thread may run them.
#![forbid(unsafe_code)]

use ocaml_boxroot_testing::{self as ocaml, attached};
use std::thread;

#[test]
fn an_exception_of_a_signal_handler_comes_out_of_poll() {
    attached(|rt| {
        ocaml::raise_on_signal(rt).call(rt, ((),)).unwrap();
        let signal_me = ocaml::signal_me(rt);
        let mut raised = signal_me.call(rt, ((),)).map(drop);
        for _ in 0..1000 {
            raised = raised.and_then(|()| rt.poll());
            if raised.is_err() {
                break;
            }
            rt.release(|| thread::sleep(std::time::Duration::from_millis(1)));
        }
        assert_eq!(raised.unwrap_err().to_string(), r#"Failure("signal")"#);
    })
}

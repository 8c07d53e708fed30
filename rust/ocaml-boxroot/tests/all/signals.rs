// SPDX-License-Identifier: MIT
//! OCaml's signal handlers. A process of its own, since any thread may run them.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::sync::mpsc;
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

/// Each would wait for ever.
#[test]
fn waiting_ends_by_an_exception_of_a_signal_handler() {
    alone(waiting_ends_by_an_exception_of_a_signal_handler, || {
        attached(|rt| ocaml::raise_on_signal(rt).call(rt, ((),)).map(drop).unwrap());
        // On this thread as a rule, which holds the lock whenever somebody else could run the handler.
        let signal = |rt: &mut Runtime| rt.release(ocaml::signal);
        attached(|rt| {
            let (sender, receiver) = mpsc::channel::<()>();
            signal(rt);
            let Err(RecvError::Exception(error)) = rt.recv(&receiver) else { panic!("not interrupted") };
            assert_eq!(error.to_string(), r#"Failure("signal")"#);
            sender.send(()).unwrap();
            rt.recv(&receiver).unwrap();

            let waiting = thread::spawn(move || receiver.recv().unwrap());
            signal(rt);
            let Err(JoinError::Exception(error)) = rt.join(waiting) else { panic!("not interrupted") };
            assert_eq!(error.to_string(), r#"Failure("signal")"#);
            sender.send(()).unwrap();
        });
        attached(|rt| {
            let (sender, receiver) = mpsc::channel::<()>();
            let (begin, begun) = mpsc::channel();
            let waiting = rt.spawn_domain(move |rt| {
                begin.send(()).unwrap();
                rt.release(|| receiver.recv()).unwrap();
            });
            let Ok(waiting) = waiting else { return }; // OCaml 4
            rt.recv(&begun).unwrap();
            signal(rt);
            let Err(JoinError::Exception(error)) = waiting.join(rt) else { panic!("not interrupted") };
            assert_eq!(error.to_string(), r#"Failure("signal")"#);
            sender.send(()).unwrap();
        })
    })
}

/// Rust's own, where Rust has made one. OCaml's, or ours, elsewhere.
#[test]
fn an_attached_thread_has_a_signal_stack() {
    ocaml::ocaml();
    let thread = |f: fn()| thread::spawn(f).join().unwrap();
    thread(|| {
        let before = ocaml::signal_stack().expect("tests are a program of Rust's");
        for _ in 0..3 {
            attached(|rt| {
                rt.minor_gc();
                assert_eq!(ocaml::signal_stack(), Some(before));
            });
            assert_eq!(ocaml::signal_stack(), Some(before));
        }
    });
    thread(|| {
        ocaml::no_signal_stack();
        for _ in 0..3 {
            attached(|_| assert!(ocaml::signal_stack().is_some()));
            assert_eq!(ocaml::signal_stack(), None);
        }
    });
}

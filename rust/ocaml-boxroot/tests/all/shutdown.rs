// SPDX-License-Identifier: MIT
//! The life of a program. A process of its own, since OCaml starts and ends once.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing as testing;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

static AT_EXIT: AtomicBool = AtomicBool::new(false);

#[test]
fn the_life_of_a_program() {
    alone(the_life_of_a_program, life)
}

fn life() {
    assert_eq!(attach(|_| ()), Err(AttachError::NotStarted));
    assert_eq!(std::thread::spawn(|| attach(|_| ())).join().unwrap(), Err(AttachError::NotStarted));
    defer(|rt| rt.string("before the start").into_rt().minor_gc());

    let bad = StartOptions { arguments: vec!["a\0b".into()] };
    assert_eq!(start(&bad).unwrap_err(), StartError::Argument);
    let ocaml = start(&StartOptions::default()).unwrap();
    assert_eq!(start(&StartOptions::default()).unwrap_err(), StartError::AlreadyStarted);

    // The lock is not held: others can have it.
    let kept = std::thread::spawn(|| attach(|rt| rt.string("kept").root())).join().unwrap().unwrap();
    let kept_too = attach(|rt| {
        let n = testing::on_rust(|rt, _| {
            assert_eq!(rt.string("at exit").value().to_str(), Ok("at exit"));
            // Others find the door closed already.
            let other = rt.release(|| std::thread::spawn(|| attach(|_| ())).join().unwrap());
            assert_eq!(other, Err(AttachError::ShutDown));
            AT_EXIT.store(true, SeqCst);
            0
        });
        testing::rust_at_exit(rt).call(rt, (n,)).unwrap();
        rt.string("kept too").root()
    })
    .unwrap();
    struct Payload(AtomicBool);
    impl Drop for Payload {
        fn drop(&mut self) {
            unreachable!("a root keeps it")
        }
    }
    let owned = attach(|rt| rt.boxed(Payload(AtomicBool::new(true))).root()).unwrap();
    let storage = attach(|rt| Storage::new(rt, "kept")).unwrap();
    let stored = attach(|rt| storage.root(rt.string("stored"))).unwrap();
    let other = attach(|rt| Storage::new(rt, "other")).unwrap();
    attach(|rt| other.root(rt.string("stored too"))).unwrap();
    let wide = attach(|rt| {
        let kept = rt.string("wide").root();
        WideRoot::new(rt, (kept.get(rt), int(3)))
    });
    let (wide, wide_too) = (wide.unwrap(), attach(|rt| WideRoot::new(rt, [int(1); 9])).unwrap());
    let ephemeral = attach(|rt| {
        let data = rt.string("data");
        Ephemeral::new(data.rt(), kept.get(data.rt()), data.value()).unwrap()
    });
    let (ephemeral, ephemeral_too) =
        (ephemeral.unwrap(), attach(|rt| Ephemeral::new(rt, kept.get(rt), int(3)).unwrap()).unwrap());
    let weak = attach(|rt| kept.get(rt).downgrade(rt).unwrap()).unwrap();
    let payload = attach(|rt| owned.payload(rt)).unwrap();
    let numbers = attach(|rt| rt.bigarray_from_vec(vec![7u8; 1 << 20], [1 << 20]).root()).unwrap();
    let elements = attach(|rt| numbers.as_cells(rt)).unwrap();

    ocaml.shutdown().unwrap();
    assert!(AT_EXIT.load(SeqCst));
    assert_eq!(attach(|_| ()), Err(AttachError::ShutDown));
    assert_eq!(start(&StartOptions::default()).unwrap_err(), StartError::AlreadyStarted);
    defer(|_| unreachable!("never run"));
    assert!(payload.0.load(SeqCst), "what a root keeps is not freed");
    assert!(elements.len() == 1 << 20 && elements.iter().all(|x| x.get() == 7));
    stored.delete();
    assert_eq!(storage.name(), "kept");
    drop(storage);
    std::thread::spawn(|| drop(other)).join().unwrap();
    drop((wide, ephemeral, weak));
    std::thread::spawn(|| drop((wide_too, ephemeral_too))).join().unwrap();
    drop(owned);
    drop(kept);
    std::thread::spawn(|| drop(kept_too)).join().unwrap();
}

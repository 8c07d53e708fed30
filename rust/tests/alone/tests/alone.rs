// SPDX-License-Identifier: MIT
//! Only the thread that started OCaml can use it; everything else is an error.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing_alone as _;

fn main() {
    assert_eq!(attach(|_| ()), Err(AttachError::NotStarted));
    let ocaml = start(&StartOptions::default()).unwrap();
    let other = || std::thread::spawn(|| attach(|_| ())).join().unwrap();
    assert_eq!(other(), Err(AttachError::NoThreads));
    let kept = attach(|rt| {
        assert_eq!(other(), Err(AttachError::NoThreads));
        assert_eq!(rt.release(other), Err(AttachError::NoThreads));
        assert_eq!(attach(|_| ()), Err(AttachError::Nested));
        rt.release(|| attach(|rt| rt.full_major().unwrap()).unwrap());
        assert!(matches!(rt.spawn_domain(|_| ()), Err(SpawnError::NoDomains)));
        assert!(rt.named_value("succ").is_none());
        let kept = rt.string("kept").root();
        rt.full_major().unwrap();
        rt.frame(|rt, [a]| {
            let a = a.root(rt.string("slot"));
            rt.minor_gc();
            assert_eq!((a.get(rt).to_str(), kept.get(rt).to_str()), (Ok("slot"), Ok("kept")));
        });
        kept
    })
    .unwrap();
    std::thread::spawn(|| drop(kept)).join().unwrap();
    ocaml.shutdown().unwrap();
    assert_eq!(attach(|_| ()), Err(AttachError::ShutDown));
    println!("alone: ok");
}

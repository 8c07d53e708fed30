// SPDX-License-Identifier: MIT
//! Exceptions of finalisers. A process of its own, since any thread may run them.

use crate::process::alone;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn exceptions_of_finalisers() {
    alone(exceptions_of_finalisers, || {
        attached(|rt| {
            for _ in 0..3 {
                ocaml::finalise_raising(rt).call(rt, ((),)).unwrap();
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    // Allocation collects, but does not run finalisers, which would raise over Rust's frames.
                    for i in 0..200_000 {
                        rt.string(i.to_string());
                    }
                    rt.full_major()
                }));
                let error = caught.unwrap().unwrap_err();
                assert_eq!(error.printed(rt), "printed <5>");
                rt.full_major().unwrap();
            }
        })
    })
}

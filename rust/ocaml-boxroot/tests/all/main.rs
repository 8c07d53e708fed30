// SPDX-License-Identifier: MIT
//! The tests that run OCaml. They share one runtime, as the libraries of a program do. A test that changes the runtime
//! for all, or counts in all of it, has a process of its own (`process::alone`).
#![forbid(unsafe_code)]

mod backtraces;
mod bigarrays;
mod boxed;
mod calls;
mod convert;
mod custom_ops;
mod derive;
mod domains;
mod ephemeral;
mod ephemeral_random;
mod exceptions;
#[cfg(feature = "checked")]
mod exhausted;
mod finalisers;
mod inline;
mod interrupts;
mod large;
mod memprof;
mod payload_races;
mod process;
mod random;
mod random_values;
mod report;
mod roots;
mod runtime;
mod scopes;
mod shutdown;
mod signals;
mod stack;
mod storages;
mod weak;
mod wide;
mod wide_random;

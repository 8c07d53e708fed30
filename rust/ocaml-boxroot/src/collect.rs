// SPDX-License-Identifier: MIT
use crate::{defer, exception, glue, Exception, Runtime};

impl Runtime {
    /// Runs what is due: signal handlers, finalisers, other threads' turns, closures of [`defer`](crate::defer). An
    /// error is the exception that one of them raised; what is due after it stays so.
    pub fn poll(&mut self) -> Result<(), Exception> {
        defer::run(self);
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_poll() };
        exception::check(self, result).map(drop)
    }

    /// Empties the minor heap: what is alive in it moves. Runs no OCaml code, but may drop Rust values that OCaml owns.
    /// With OCaml 5 all domains take part, so it waits for them.
    pub fn minor_gc(&mut self) {
        // SAFETY: LOCK.
        unsafe { glue::obx_minor() }
    }

    /// Completes major cycles until what is unreachable now is freed; finalisers and signal handlers run. An error is
    /// the exception that one of them raised. Takes as long as marking the whole heap three times; with OCaml 5 all
    /// domains take part.
    pub fn full_major(&mut self) -> Result<(), Exception> {
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_full_major() };
        exception::check(self, result).map(drop)
    }

    /// As [`full_major`](Runtime::full_major), and compacts the heap where the runtime can (not OCaml 5.0 and 5.1):
    /// blocks of the major heap move too.
    pub fn compact(&mut self) -> Result<(), Exception> {
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_compact() };
        exception::check(self, result).map(drop)
    }
}

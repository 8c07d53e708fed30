// SPDX-License-Identifier: MIT
use crate::{glue, Runtime};

impl Runtime {
    /// Runs `f` with the lock released, so that other threads of this domain can run OCaml, and other domains need not
    /// wait for this one to collect. The lock is taken again afterwards, also when `f` panics. Some 40 ns where nobody
    /// else wants the lock. Signal handlers do not run here: see [`poll`](Runtime::poll).
    ///
    /// ```
    /// # use ocaml_boxroot::*;
    /// fn checksum(rt: &mut Runtime, data: ValueRef<'_, Array1<u8>>) -> u64 {
    ///     let bytes = data.racy(rt);
    ///     rt.release(|| bytes.iter().map(|byte| u64::from(byte.get())).sum())
    /// }
    /// ```
    pub fn release<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct Reacquire(core::ffi::c_int);
        impl Drop for Reacquire {
            fn drop(&mut self) {
                // SAFETY: this thread released the lock, with this result.
                unsafe { glue::obx_reacquire(self.0) }
            }
        }
        // SAFETY: LOCK. The Runtime cannot be used meanwhile, as it is borrowed; any values that borrow from it ended
        // before.
        let _reacquire = Reacquire(unsafe { glue::obx_release() });
        f()
    }
}

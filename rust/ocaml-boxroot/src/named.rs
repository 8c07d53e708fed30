// SPDX-License-Identifier: MIT
use crate::{glue, Any, Runtime, Value};
use alloc::ffi::CString;

impl Runtime {
    /// The value that the program registered under this name (`Callback.register`) last. `None` if there is none. OCaml
    /// looks it up in a table under a mutex; what is called often is kept in a root, or declared by
    /// [`import!`](crate::import).
    pub fn named(&self, name: &str) -> Option<Value<'_, Any>> {
        let name = CString::new(name).ok()?;
        // SAFETY: LOCK.
        let raw = unsafe { glue::obx_named(name.as_ptr()) };
        // SAFETY: registered values are roots; it is copied, so that registering another one later does no harm.
        (raw != 0).then(|| unsafe { Value::from_raw(raw) })
    }
}

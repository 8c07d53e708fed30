// SPDX-License-Identifier: MIT
//! Values that Rust finds as long as somebody else keeps them alive.
use crate::{Any, Root, RootError, Runtime, Value};
use core::marker::PhantomData;
use ocaml_boxroot_sys::{self as sys, BoxRootWeak};

/// A value that Rust does not keep alive. Pointer-sized, with a niche; `Send + Sync` for every `T`; it may be dropped
/// anywhere, as a [`Root`] may.
///
/// For observers, caches, and cycles: a closure that holds a Rust value (see [`Boxed`](crate::Boxed)) which holds a
/// [`Root`] of the closure is never collected; with a `Weak` it is. Where nobody else would keep the value, an
/// [`Ephemeral`](crate::Ephemeral) root keeps it as long as another one lives.
///
/// ```
/// # use ocaml_boxroot::prelude::*;
/// fn found(rt: &mut Runtime) {
///     let text = rt.string("text").root();
///     let weak = text.get(rt).downgrade(rt).unwrap();
///     assert!(weak.get(rt).is_some());
///     drop(text);
///     rt.full_major().unwrap();
///     assert!(weak.get(rt).is_none());
/// }
/// ```
///
/// What "alive" means is what it means for OCaml's module `Weak`: a value is alive in its own finaliser, immediates and
/// static data always are.
// OWNED: the weak root is not deleted, nobody else deletes it, and the value that it held when it was made has the type
// that T describes.
#[repr(transparent)]
pub struct Weak<T = Any> {
    weak: BoxRootWeak,
    _marker: PhantomData<fn() -> T>,
}

// SAFETY: all that can be done without a Runtime is to drop it, which any thread may do (boxroot_weak_delete). Reading
// needs a Runtime, so the lock of some domain.
unsafe impl<T> Send for Weak<T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for Weak<T> {}

impl<T> Weak<T> {
    /// A weak root that holds `v`. Never runs the collector. An error when memory is short; when `v` is a lazy value,
    /// whose place its result may take (wrap it); and, before OCaml 5.5, on a domain but the first.
    #[inline]
    pub fn new(rt: &Runtime, v: Value<'_, T>) -> Result<Weak<T>, RootError> {
        let _ = rt;
        // SAFETY: LOCK; LIVE for the value.
        match unsafe { sys::boxroot_weak_create(v.raw()) } {
            Some(weak) => Ok(Weak { weak, _marker: PhantomData }),
            None => Err(RootError::last_weak()),
        }
    }

    /// The value, unless it is dead; then it is for ever.
    #[inline]
    pub fn get<'a>(&self, rt: &'a Runtime) -> Option<Value<'a, T>> {
        let _ = rt;
        let mut raw = 1;
        // SAFETY: OWNED; LOCK.
        if !unsafe { sys::boxroot_weak_get(self.weak, &mut raw) } {
            return None;
        }
        // SAFETY: OWNED for the type. The value is alive, and is not collected or moved in 'a, a shared borrow of the
        // Runtime (LIVE).
        Some(unsafe { Value::from_raw(raw) })
    }

    /// A root that holds the value, unless it is dead. Panics when memory is short.
    #[inline]
    pub fn upgrade(&self, rt: &Runtime) -> Option<Root<T>> {
        self.get(rt).map(|v| Root::new(rt, v))
    }

    /// Whether the value is alive.
    #[inline]
    pub fn is_alive(&self, rt: &Runtime) -> bool {
        self.get(rt).is_some()
    }
}

impl<T> Drop for Weak<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: OWNED; it is not used any more. The call needs no lock.
        unsafe { sys::boxroot_weak_delete(self.weak) }
    }
}

impl<T> core::fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Weak")
    }
}

impl<T> Value<'_, T> {
    /// A weak root that holds the value: see [`Weak::new`].
    #[inline]
    pub fn downgrade(self, rt: &Runtime) -> Result<Weak<T>, RootError> {
        Weak::new(rt, self)
    }
}

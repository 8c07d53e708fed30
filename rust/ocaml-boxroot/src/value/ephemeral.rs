// SPDX-License-Identifier: MIT
//! Values that Rust keeps alive exactly as long as another one lives.
use crate::{Any, Root, RootError, Runtime, Value};
use core::marker::PhantomData;
use ocaml_boxroot_sys::{self as sys, BoxRootEphemeral};

/// A value, the *data*, that lives as long as another one does, the *key*: OCaml's `Ephemeron.K1`, owned by Rust.
/// Pointer-sized, with a niche; `Send + Sync` for every `K` and `D`; it may be dropped anywhere, as a [`Root`] may.
///
/// For what Rust keeps on behalf of an OCaml value: a callback of an object, which may refer to the OCaml value that
/// stands for the object. With a [`Root`] in its place neither would ever be collected; with a [`Weak`](crate::Weak)
/// root somebody else would have to keep the callback.
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// use std::sync::Mutex;
///
/// /// Owned by OCaml; its handler may be a closure that refers to it.
/// #[derive(Default)]
/// struct Button {
///     on_click: Mutex<Option<ocaml::Ephemeral<Boxed<Button>, Fun<(Unit,), Unit>>>>,
/// }
/// ocaml_abstract! { Button = "button"; }
///
/// #[export]
/// fn on_click(
///     rt: &mut Runtime,
///     button: ValueRef<Boxed<Button>>,
///     handler: ValueRef<Fun<(Unit,), Unit>>,
/// ) -> Result<(), ocaml::RootError> {
///     let handler = ocaml::Ephemeral::new(rt, button.get(rt), handler.get(rt))?; // as long as OCaml has the button
///     let old = button.payload(rt).on_click.lock().unwrap().replace(handler);
///     drop(old);
///     Ok(())
/// }
///
/// #[export]
/// fn click(rt: &mut Runtime, button: ValueRef<Boxed<Button>>) -> Result<(), ocaml::Exception> {
///     let handler = button.payload(rt).on_click.lock().unwrap().as_ref().and_then(|handler| handler.upgrade(rt));
///     handler.map_or(Ok(()), |handler| handler.call(rt, ((),)).map(drop))
/// }
/// ```
///
/// It keeps nothing alive once its key is dead or it is dropped, unless something else keeps the data; and never the
/// key, not even if the data refers to it. What "alive" means is what it means for OCaml's module `Ephemeron`: a key is
/// alive in its own finaliser; immediates and static data always are, so that their data lives until the drop. A root
/// of the data does not keep the key.
///
/// Cost: a root, and four words of the major heap, at which each major cycle looks twice.
// OWNED: the ephemeral root is not deleted, nobody else deletes it, and the key and the data that it was made with have
// the types that K and D describe.
#[repr(transparent)]
pub struct Ephemeral<K = Any, D = Any> {
    ephemeral: BoxRootEphemeral,
    _marker: PhantomData<fn() -> (K, D)>,
}

// SAFETY: all that can be done without a Runtime is to drop it, which any thread may do (boxroot_ephemeral_delete).
// Reading needs a Runtime, so the lock of some domain; replacing needs that and an exclusive borrow.
unsafe impl<K, D> Send for Ephemeral<K, D> {}
// SAFETY: as for Send.
unsafe impl<K, D> Sync for Ephemeral<K, D> {}

impl<K, D> Ephemeral<K, D> {
    /// An ephemeral root that keeps `data` alive as long as `key` lives. Never runs the collector. An error when memory
    /// is short; when the key is a lazy value, whose place its result may take (wrap it); before OCaml 5.5, on a domain
    /// but the first; and with versions of OCaml that were not tested.
    #[inline]
    pub fn new(rt: &Runtime, key: Value<'_, K>, data: Value<'_, D>) -> Result<Ephemeral<K, D>, RootError> {
        let _ = rt;
        // SAFETY: LOCK; LIVE for both values.
        match unsafe { sys::boxroot_ephemeral_create(key.raw(), data.raw()) } {
            Some(ephemeral) => Ok(Ephemeral { ephemeral, _marker: PhantomData }),
            None => Err(RootError::last_weak()),
        }
    }

    /// The data, unless the key is dead; then it is for ever.
    #[inline]
    pub fn get<'a>(&self, rt: &'a Runtime) -> Option<Value<'a, D>> {
        let _ = rt;
        let mut raw = 1;
        // SAFETY: OWNED; LOCK.
        if !unsafe { sys::boxroot_ephemeral_get(self.ephemeral, &mut raw) } {
            return None;
        }
        // SAFETY: OWNED for the type. The value is alive, and is not collected or moved in 'a, a shared borrow of the
        // Runtime (LIVE).
        Some(unsafe { Value::from_raw(raw) })
    }

    /// The key, unless it is dead; then it is for ever.
    #[inline]
    pub fn key<'a>(&self, rt: &'a Runtime) -> Option<Value<'a, K>> {
        let _ = rt;
        let mut raw = 1;
        // SAFETY: OWNED; LOCK.
        if !unsafe { sys::boxroot_ephemeral_get_key(self.ephemeral, &mut raw) } {
            return None;
        }
        // SAFETY: as in `get`.
        Some(unsafe { Value::from_raw(raw) })
    }

    /// Whether the key is alive.
    #[inline]
    pub fn is_alive(&self, rt: &Runtime) -> bool {
        self.key(rt).is_some()
    }

    /// A root that holds the data, unless the key is dead. Panics when memory is short.
    #[inline]
    pub fn upgrade(&self, rt: &Runtime) -> Option<Root<D>> {
        self.get(rt).map(|v| Root::new(rt, v))
    }

    /// Keeps `data` from now on, instead of what it kept, for the same key. `false`, and nothing has changed, if the
    /// key is dead. Errors are those of [`new`](Ephemeral::new): it then keeps what it kept.
    ///
    /// Cost: that of a new one, and of dropping the old one. Data that changes often is better a mutable block.
    pub fn set(&mut self, rt: &Runtime, data: Value<'_, D>) -> Result<bool, RootError> {
        let Some(key) = self.key(rt) else { return Ok(false) };
        *self = Ephemeral::new(rt, key, data)?;
        Ok(true)
    }
}

impl<K, D> Drop for Ephemeral<K, D> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: OWNED; it is not used any more. The call needs no lock.
        unsafe { sys::boxroot_ephemeral_delete(self.ephemeral) }
    }
}

impl<K, D> core::fmt::Debug for Ephemeral<K, D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ephemeral")
    }
}

// SPDX-License-Identifier: MIT
//! What keeps values alive: roots, and having just made them.
use crate::{Any, RootError, Runtime, Typed, Value, ValueCell};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::sync::atomic::Ordering::Relaxed;
use ocaml_boxroot_sys::{self as sys, BoxRoot};

/// A value that Rust keeps alive. Pointer-sized, with a niche; `Send + Sync` for every `T`.
///
/// It may be dropped anywhere: on another domain, in a thread that OCaml does not know, without the lock, during a
/// panic, in a finaliser inside the collector, in a thread-local's destructor, after its domain's end, after shutdown.
/// There is no `Clone`, since another root needs the lock: call [`clone_ref`](Root::clone_ref), or share one in an
/// `Arc`.
///
/// Passed by reference it is a [`ValueRef`](crate::ValueRef): `&root`.
// OWNED: the root is live, nobody else deletes or modifies it, and it holds a value of the type that T describes.
#[repr(transparent)]
pub struct Root<T = Any> {
    root: BoxRoot,
    _marker: PhantomData<fn() -> T>,
}

// SAFETY: all that can be done without a Runtime is to drop it, which any thread may do (boxroot_delete), and to name
// the place. Reading needs a Runtime, so the lock; modifying needs that and an exclusive borrow.
unsafe impl<T> Send for Root<T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for Root<T> {}

impl<T> Root<T> {
    /// A root that holds `v`. Never runs the collector. Panics when memory is short.
    #[inline]
    pub fn new(rt: &Runtime, v: Value<'_, T>) -> Root<T> {
        match Root::try_new(rt, v) {
            Ok(root) => root,
            Err(error) => fail(error),
        }
    }

    /// A root that holds `v`, or an error when memory is short.
    #[inline]
    pub fn try_new(rt: &Runtime, v: Value<'_, T>) -> Result<Root<T>, RootError> {
        // SAFETY: LOCK for the domain; LIVE for the value.
        match unsafe { sys::boxroot_create_in(rt.domain(), v.raw()) } {
            Some(root) => Ok(Root { root, _marker: PhantomData }),
            None => Err(RootError::last()),
        }
    }

    /// Another root that holds the same value. Panics when memory is short.
    #[inline]
    pub fn clone_ref(&self, rt: &Runtime) -> Root<T> {
        Root::new(rt, self.get(rt))
    }

    /// Makes this root hold the value just made, instead of a new root: for output parameters and loops. Panics when
    /// memory is short.
    #[inline]
    pub fn set(&mut self, v: ValueGuard<'_, T>) -> &ValueCell<T> {
        self.set_value(v.rt(), v.value());
        self
    }

    /// As [`set`](Root::set), and gives the runtime back for as long as it was lent.
    #[inline]
    pub fn set_and_rt<'a>(&mut self, v: ValueGuard<'a, T>) -> &'a mut Runtime {
        self.set_value(v.rt(), v.value());
        v.into_rt()
    }

    /// Makes this root hold `v`. Panics when memory is short.
    #[inline]
    pub fn set_value(&mut self, rt: &Runtime, v: Value<'_, T>) {
        if let Err(error) = self.try_set_value(rt, v) {
            fail(error)
        }
    }

    /// Makes this root hold `v`; on an error it holds its old value.
    #[inline]
    pub fn try_set_value(&mut self, rt: &Runtime, v: Value<'_, T>) -> Result<(), RootError> {
        let _ = rt;
        // SAFETY: OWNED, and no reference to the old cell is left, since self is borrowed exclusively; LOCK; LIVE.
        match unsafe { sys::boxroot_modify(&mut self.root, v.raw()) } {
            true => Ok(()),
            false => Err(RootError::last()),
        }
    }

    /// Drops the root with the lock at hand, which is a little faster.
    #[inline]
    pub fn drop_ref(self, rt: &Runtime) {
        let this = ManuallyDrop::new(self);
        // SAFETY: OWNED, and it is not used or dropped any more; LOCK.
        unsafe { sys::boxroot_delete_in(rt.domain(), this.root) }
    }

    /// The same root without its type.
    #[inline]
    pub fn into_any(self) -> Root<Any> {
        // SAFETY: Any describes every type.
        unsafe { self.into_typed() }
    }

    /// The same root with another type.
    ///
    /// # Safety
    /// The value has the type that `U` describes.
    #[inline]
    pub unsafe fn into_typed<U>(self) -> Root<U> {
        Root { root: ManuallyDrop::new(self).root, _marker: PhantomData }
    }
}

#[cold]
#[inline(never)]
pub(crate) fn fail(error: RootError) -> ! {
    panic!("{error}")
}

impl<T> Deref for Root<T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        // SAFETY: OWNED: the cell lives, and only the collector writes it, as long as self is borrowed. Both are one
        // word.
        unsafe { &*sys::boxroot_get_ref(self.root).cast() }
    }
}

impl<T> Drop for Root<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: OWNED; it is not used any more. The call needs no lock.
        unsafe { sys::boxroot_delete(self.root) }
    }
}

impl<T> core::fmt::Debug for Root<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Root")
    }
}

impl<T> Value<'_, T> {
    /// A root that holds the value. Panics when memory is short.
    #[inline]
    pub fn root(self, rt: &Runtime) -> Root<T> {
        Root::new(rt, self)
    }
}

// --- values just made

/// A value just made, with the `&mut Runtime` that made it.
///
/// As long as you keep it, [`rt`](ValueGuard::rt) gives read access, and nothing can be collected. Taking the runtime
/// back, by [`root_and_rt`](ValueGuard::root_and_rt), [`into_rt`](ValueGuard::into_rt) or dropping it, ends every view
/// of the value. So one branch can return the value without a root while the other goes on allocating, and a caller
/// pays for a root only where it keeps the value.
// OWNER: it holds the only usable reference to the Runtime, so the value stays valid until it is taken apart.
pub struct ValueGuard<'a, T = Any> {
    rt: &'a mut Runtime,
    cell: ValueCell<T>,
}

impl<'a, T> ValueGuard<'a, T> {
    /// # Safety
    /// `raw` is a value of the type that `T` describes, and valid now.
    #[inline]
    pub(crate) unsafe fn from_raw(rt: &'a mut Runtime, raw: isize) -> Self {
        // SAFETY: by the caller and OWNER.
        ValueGuard { rt, cell: unsafe { ValueCell::new(raw) } }
    }

    /// A value that needs no collection to stay away.
    #[inline]
    pub fn from_static(rt: &'a mut Runtime, v: Value<'static, T>) -> Self {
        // SAFETY: LIVE for 'static.
        unsafe { ValueGuard::from_raw(rt, v.raw()) }
    }

    #[inline]
    fn raw(&self) -> isize {
        self.cell.word().load(Relaxed)
    }

    /// Read access, as long as the value is kept.
    #[inline]
    pub fn rt(&self) -> &Runtime {
        self.rt
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Value<'_, T> {
        // SAFETY: OWNER: nobody uses the Runtime for writing while self is borrowed.
        unsafe { Value::from_raw(self.raw()) }
    }

    /// The value with read access for the rest of `'a`.
    #[inline]
    pub fn freeze(self) -> (Value<'a, T>, &'a Runtime) {
        // SAFETY: OWNER: the only reference becomes a shared one for all of 'a.
        (unsafe { Value::from_raw(self.raw()) }, self.rt)
    }

    /// The value for the rest of `'a`, during which nothing is collected.
    #[inline]
    pub fn into_value(self) -> Value<'a, T> {
        self.freeze().0
    }

    /// A root that holds the value; the borrow of the runtime ends. Panics when memory is short.
    #[inline]
    pub fn root(self) -> Root<T> {
        Root::new(self.rt, self.value())
    }

    /// A root that holds the value, or an error when memory is short.
    #[inline]
    pub fn try_root(self) -> Result<Root<T>, RootError> {
        Root::try_new(self.rt, self.value())
    }

    /// A root that holds the value, and the capability for as long as it was lent: for code that returns the value in
    /// one branch and goes on in another. Panics when memory is short.
    #[inline]
    pub fn root_and_rt(self) -> (Root<T>, &'a mut Runtime) {
        (Root::new(self.rt, self.value()), self.rt)
    }

    /// Gives the value up, and the capability back.
    #[inline]
    pub fn into_rt(self) -> &'a mut Runtime {
        self.rt
    }

    /// The same value without its type.
    #[inline]
    pub fn into_any(self) -> ValueGuard<'a, Any> {
        // SAFETY: Any describes every type.
        unsafe { self.cast() }
    }

    /// The same value with another type.
    ///
    /// # Safety
    /// The value has the type that `U` describes.
    #[inline]
    pub unsafe fn cast<U>(self) -> ValueGuard<'a, U> {
        let raw = self.raw();
        // SAFETY: OWNER, and the caller.
        unsafe { ValueGuard::from_raw(self.rt, raw) }
    }
}

impl<T> Typed for ValueGuard<'_, T> {
    type Type = T;
}

impl<T> Deref for ValueGuard<'_, T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        &self.cell
    }
}

impl<T> core::fmt::Debug for ValueGuard<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ValueGuard").field(&self.value()).finish()
    }
}

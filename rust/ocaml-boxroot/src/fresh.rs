// SPDX-License-Identifier: MIT
use crate::{Any, Root, RootError, Runtime, Value, ValueCell};
use core::ops::Deref;

/// A value just made, with the `&mut Runtime` that made it.
///
/// As long as you keep it, [`rt`](Fresh::rt) gives read access, and nothing can be collected. Taking the capability
/// back, by [`root_rt`](Fresh::root_rt), [`discard`](Fresh::discard) or dropping it, ends every view of the value. So
/// one branch can return the value without a root while the other goes on allocating, and a caller pays for a root only
/// where it keeps the value.
// OWNER: it holds the only usable reference to the Runtime, so the value stays valid until it is taken apart.
pub struct Fresh<'a, T = Any> {
    rt: &'a mut Runtime,
    cell: ValueCell<T>,
}

impl<'a, T> Fresh<'a, T> {
    /// # Safety
    /// `raw` is a value of the type that `T` describes, and valid now.
    #[inline]
    pub(crate) unsafe fn new(rt: &'a mut Runtime, raw: isize) -> Self {
        // SAFETY: by the caller and OWNER.
        Fresh { rt, cell: unsafe { ValueCell::new(raw) } }
    }

    /// A value that needs no collection to stay away.
    #[inline]
    pub fn constant(rt: &'a mut Runtime, v: Value<'static, T>) -> Self {
        // SAFETY: LIVE for 'static.
        unsafe { Fresh::new(rt, v.raw()) }
    }

    #[inline]
    fn raw(&self) -> isize {
        self.cell.word().load(core::sync::atomic::Ordering::Relaxed)
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
    pub fn root_rt(self) -> (Root<T>, &'a mut Runtime) {
        (Root::new(self.rt, self.value()), self.rt)
    }

    /// Gives the value up, and the capability back.
    #[inline]
    pub fn discard(self) -> &'a mut Runtime {
        self.rt
    }

    /// The same value without its type.
    #[inline]
    pub fn erase(self) -> Fresh<'a, Any> {
        // SAFETY: Any describes every type.
        unsafe { self.cast() }
    }

    /// The same value with another type.
    ///
    /// # Safety
    /// The value has the type that `U` describes.
    #[inline]
    pub unsafe fn cast<U>(self) -> Fresh<'a, U> {
        let raw = self.raw();
        // SAFETY: OWNER, and the caller.
        unsafe { Fresh::new(self.rt, raw) }
    }
}

impl<T> crate::Typed for Fresh<'_, T> {
    type Type = T;
}

impl<T> Deref for Fresh<'_, T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        &self.cell
    }
}

impl<T> core::fmt::Debug for Fresh<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Fresh").field(&self.value()).finish()
    }
}

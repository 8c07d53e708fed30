// SPDX-License-Identifier: MIT
use crate::{Any, Fresh, Runtime, Value, ValueCell, ValueRef};
use core::sync::atomic::Ordering::Relaxed;

/// A local root of a [`frame`](Runtime::frame), to be filled.
// SLOT: the cell is a local root for all of 'f, and belongs to this slot alone.
pub struct Slot<'f> {
    cell: &'f ValueCell<Any>,
}

impl<'f> Slot<'f> {
    pub(crate) fn new(cell: &'f ValueCell<Any>) -> Slot<'f> {
        Slot { cell }
    }

    /// Keeps the value for the rest of the frame.
    #[inline]
    pub fn set<T>(self, v: Fresh<'_, T>) -> ValueRef<'f, T> {
        self.keep(v.rt(), v.value())
    }

    /// Keeps the value for the rest of the frame, with the capability back for as long as it was lent.
    #[inline]
    pub fn set_rt<'a, T>(self, v: Fresh<'a, T>) -> (ValueRef<'f, T>, &'a mut Runtime) {
        (self.keep(v.rt(), v.value()), v.discard())
    }

    /// Keeps the value for the rest of the frame.
    #[inline]
    pub fn keep<T>(self, rt: &Runtime, v: Value<'_, T>) -> ValueRef<'f, T> {
        let _ = rt;
        self.cell.word().store(v.raw(), Relaxed);
        // SAFETY: SLOT: nothing else is stored in it any more, since self is gone.
        unsafe { self.cell.cast() }
    }

    /// Keeps the value until the slot is used again.
    #[inline]
    pub fn put<T>(&mut self, rt: &Runtime, v: Value<'_, T>) -> ValueRef<'_, T> {
        let _ = rt;
        self.cell.word().store(v.raw(), Relaxed);
        // SAFETY: SLOT: nothing else is stored in it as long as self is borrowed.
        unsafe { self.cell.cast() }
    }

    /// Keeps the value just made until the slot is used again.
    #[inline]
    pub fn put_fresh<T>(&mut self, v: Fresh<'_, T>) -> ValueRef<'_, T> {
        self.put(v.rt(), v.value())
    }
}

impl core::fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Slot")
    }
}

// SPDX-License-Identifier: MIT
use crate::kind::DOUBLE_ARRAY;
use crate::{Array, Runtime, Value, ValueCell, ValueRef};

impl<T> Value<'_, Array<T>> {
    /// The number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.header().map_or(0, |(_, size)| size)
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<T> ValueCell<Array<T>> {
    /// Calls `f` for each element, until an error. The element is in a local root, so `f` may allocate, and assign the
    /// elements. Floats in a flat array are boxed.
    pub fn try_for_each<E>(
        &self,
        rt: &mut Runtime,
        mut f: impl FnMut(&mut Runtime, ValueRef<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        rt.frame(|rt, [array, mut element]| {
            // The place may be assigned meanwhile; the array is the one that is there now.
            let array = array.keep(rt, self.get(rt));
            for i in 0..array.get(rt).len() {
                let v = array.get(rt);
                let place = if v.header().is_some_and(|(tag, _)| tag == DOUBLE_ARRAY) {
                    // SAFETY: TYPED: T is Float then; a flat array has so many floats. Others may write them, whole
                    // words at a time.
                    unsafe {
                        let bits = (*(v.raw() as *const core::sync::atomic::AtomicU64).add(i))
                            .load(core::sync::atomic::Ordering::Relaxed);
                        element.put_fresh(rt.float(f64::from_bits(bits)).cast())
                    }
                } else {
                    // SAFETY: TYPED: an array of so many elements of type T.
                    element.put(rt, unsafe { v.part(i) })
                };
                f(rt, place)?;
            }
            Ok(())
        })
    }
}

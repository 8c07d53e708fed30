// SPDX-License-Identifier: MIT
use crate::kind::DOUBLE_ARRAY;
use crate::{Array, Float, Runtime, ShapeError, Value, ValueCell, ValueRef};

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

impl<'a, T> Value<'a, Array<T>> {
    /// Element `i`. An error if there is none, or the array is flat: then no value holds the float.
    #[inline]
    pub fn get(self, i: usize) -> Result<Value<'a, T>, ShapeError> {
        match self.header() {
            // SAFETY: TYPED: an array of so many elements.
            Some((0, len)) if i < len => Ok(unsafe { self.part(i) }),
            Some((0, len)) => Err(ShapeError::Bounds { index: i, len }),
            _ => Err(ShapeError::Opaque(DOUBLE_ARRAY)),
        }
    }
}

impl Value<'_, Array<Float>> {
    /// Float `i`, if it exists. A relaxed load: another domain may write it meanwhile.
    #[inline]
    pub fn float(self, i: usize) -> Option<f64> {
        match self.header() {
            // SAFETY: so many floats; LIVE.
            Some((DOUBLE_ARRAY, len)) if i < len => Some(unsafe { self.float_at(i) }),
            _ => Some(self.get(i).ok()?.to_f64()),
        }
    }
}

impl<T> ValueCell<Array<T>> {
    /// Calls `f` for each element, until an error, which is returned. The element is in a local root, so `f` may
    /// allocate, and assign the elements: it sees what is there when its turn comes. Floats in a flat array are boxed,
    /// one by one. Two local roots in all; to convert an array, [`to_rust`](ValueCell::to_rust) is faster.
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
                        let x = v.float_at(i);
                        element.put_fresh(rt.float(x).cast())
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

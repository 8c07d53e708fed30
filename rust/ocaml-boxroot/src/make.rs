// SPDX-License-Identifier: MIT
use crate::kind::FIRST_SPECIAL_TAG;
use crate::{block_words, glue, AllocError, Any, Float, Fresh, List, Ref, Runtime, ShapeError, Str, ValueRef};

impl Runtime {
    /// A float. As all functions here that take `&mut Runtime`, it may run the collector first.
    #[inline]
    pub fn float(&mut self, x: f64) -> Fresh<'_, Float> {
        // SAFETY: LOCK; the value is new.
        unsafe { Fresh::new(self, glue::obx_alloc_float(x)) }
    }

    /// A string. Panics when memory is short.
    pub fn string(&mut self, s: impl AsRef<[u8]>) -> Fresh<'_, Str> {
        match self.try_string(s) {
            Ok(v) => v,
            Err(error) => error.panic(),
        }
    }

    /// A string, or an error when the heap has no room for it.
    pub fn try_string(&mut self, s: impl AsRef<[u8]>) -> Result<Fresh<'_, Str>, AllocError> {
        let bytes = s.as_ref();
        // SAFETY: LOCK; the value is new, and has room for as many bytes.
        unsafe {
            let raw = glue::obx_alloc_string(bytes.len());
            if raw == 0 {
                return Err(AllocError { words: bytes.len() / 8 + 1 });
            }
            (raw as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Ok(Fresh::new(self, raw))
        }
    }

    /// A block with these fields. Refuses tags with a meaning of their own, and fails when memory is short.
    pub fn block(&mut self, tag: u8, fields: &[ValueRef<'_>]) -> Result<Fresh<'_, Any>, ShapeError> {
        if tag >= FIRST_SPECIAL_TAG {
            return Err(ShapeError::Tag(tag));
        }
        if fields.is_empty() {
            // SAFETY: LOCK; atoms are static.
            return Ok(unsafe { Fresh::new(self, glue::obx_atom(tag.into())) });
        }
        self.try_build(block_words(fields.len()), |n| {
            let mut block = n.unshared(tag, fields.len())?;
            for (i, field) in fields.iter().enumerate() {
                block.set(i, field.get(n));
            }
            Ok(block.share())
        })
    }

    /// A pair.
    #[inline]
    pub fn pair<A, B>(&mut self, a: ValueRef<'_, A>, b: ValueRef<'_, B>) -> Fresh<'_, (A, B)> {
        self.build(3, |n| n.pair(a.get(n), b.get(n)))
    }

    /// `head :: tail`
    #[inline]
    pub fn cons<T>(&mut self, head: ValueRef<'_, T>, tail: ValueRef<'_, List<T>>) -> Fresh<'_, List<T>> {
        self.build(3, |n| n.cons(head.get(n), tail.get(n)))
    }

    /// `ref v`
    #[inline]
    pub fn reference<T>(&mut self, v: ValueRef<'_, T>) -> Fresh<'_, Ref<T>> {
        self.build(2, |n| n.reference(v.get(n)))
    }
}

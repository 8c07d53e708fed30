// SPDX-License-Identifier: MIT
use crate::kind::NO_SCAN;
use crate::nursery::Block;
use crate::{glue, AllocError, Nursery, Value};
use core::ptr::null_mut;

/// While it exists, its nursery makes blocks in the major heap.
// CARVED: nothing is carved meanwhile; dropping it gives the nursery what it had.
struct InMajor<'n> {
    nursery: &'n Nursery,
    at: *mut usize,
    piece_end: *mut usize,
    surplus: usize,
}

impl Drop for InMajor<'_> {
    fn drop(&mut self) {
        self.nursery.at.set(self.at);
        self.nursery.piece_end.set(self.piece_end);
        self.nursery.surplus.set(self.surplus);
    }
}

/// A block that is filled from the first field to the last, and where those before `next` are values. Dropping it makes
/// the others units.
///
/// Where the block is in the major heap, what is made for its fields is there too: in the minor heap it would cost less
/// now, but the next collection would copy all of it, even if it were dead by then.
pub(crate) struct Row<'n> {
    start: *mut isize,
    next: *mut isize,
    end: *mut isize,
    /// Where young values are that the collector must be told of: nowhere, if the block is young itself.
    young: core::ops::Range<usize>,
    _major: Option<InMajor<'n>>,
}

impl Nursery {
    fn in_major(&self) -> InMajor<'_> {
        InMajor {
            nursery: self,
            at: self.at.replace(null_mut()),
            piece_end: self.piece_end.replace(null_mut()),
            surplus: self.surplus.replace(usize::MAX),
        }
    }

    /// A block of `size` > 0 fields.
    pub(crate) fn row(&self, tag: u8, size: usize) -> Result<Row<'_>, AllocError> {
        debug_assert!(tag < NO_SCAN);
        let Block { fields, young } = self.alloc(size, tag)?;
        let (young, major) = match young {
            true => (0..0, None),
            false => {
                // SAFETY: LOCK. Until the next collection (QUIET) the minor heaps stay where they are.
                let range = unsafe { glue::obx_young() };
                (range.start..range.end, Some(self.in_major()))
            }
        };
        // SAFETY: the end of a block of so many fields.
        Ok(Row { start: fields, next: fields, end: unsafe { fields.add(size) }, young, _major: major })
    }
}

impl<'n> Row<'n> {
    /// The block with these fields, of type `T`; or the first error.
    ///
    /// # Safety
    /// The fields are live values, and together have the type that `T` describes. If there are fewer than the block
    /// has, the others may be units.
    #[inline]
    pub(crate) unsafe fn fill<T, E>(
        mut self,
        first: isize,
        rest: impl Iterator<Item = Result<isize, E>>,
    ) -> Result<Value<'n, T>, E> {
        // Not in `self`, which is in memory: after an error or a panic all fields become units.
        let mut next = self.next;
        let mut put = |v: isize| {
            // SAFETY: there is this field. The collector is told of pointers from the major heap to the minor heap.
            unsafe {
                if v & 1 == 1 || !self.young.contains(&(v as usize)) {
                    next.write(v)
                } else {
                    glue::obx_initialize(next, v)
                }
                next = next.add(1);
            }
            next < self.end
        };
        let mut room = put(first);
        for v in rest {
            let v = v?;
            if !room {
                break;
            }
            room = put(v);
        }
        self.next = next;
        let raw = self.start as isize;
        drop(self);
        // SAFETY: complete now, and of that type by the caller; LIVE by QUIET.
        Ok(unsafe { Value::from_raw(raw) })
    }
}

impl Drop for Row<'_> {
    #[inline]
    fn drop(&mut self) {
        while self.next < self.end {
            // SAFETY: a field of a new block.
            unsafe {
                self.next.write(1);
                self.next = self.next.add(1);
            }
        }
    }
}

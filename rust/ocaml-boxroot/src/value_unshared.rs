// SPDX-License-Identifier: MIT
use crate::{glue, Any, Value};
use core::marker::PhantomData;

/// A block under construction: nobody else can read it. It is linear, and complete at any time: fields that were not
/// set hold units. [`share`](ValueUnshared::share) makes it a value.
// UNSHARED: the block is new and scanned, of `len` fields that are valid values; no other reference to it exists; 'n as
// in Nursery.
#[must_use = "a block that is not shared is lost"]
pub struct ValueUnshared<'n> {
    fields: *mut isize,
    len: usize,
    young: bool,
    _marker: PhantomData<Value<'n>>,
}

impl<'n> ValueUnshared<'n> {
    /// # Safety
    /// UNSHARED. `young`: the block is in the minor heap.
    pub(crate) unsafe fn new(fields: *mut isize, len: usize, young: bool) -> Self {
        ValueUnshared { fields, len, young, _marker: PhantomData }
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a field. Panics when there is no such field.
    pub fn set<T>(&mut self, i: usize, v: Value<'n, T>) {
        assert!(i < self.len, "field {i} of a block of {} fields", self.len);
        // SAFETY: UNSHARED. The collector need not know of fields in the minor heap; of others caml_modify tells it.
        unsafe {
            let field = self.fields.add(i);
            if self.young {
                field.write(v.raw())
            } else {
                glue::obx_modify(field, v.raw())
            }
        }
    }

    /// The field as it is now. Panics when there is no such field.
    pub fn get(&self, i: usize) -> Value<'n, Any> {
        assert!(i < self.len, "field {i} of a block of {} fields", self.len);
        // SAFETY: UNSHARED: all fields are valid values.
        unsafe { Value::from_raw(self.fields.add(i).read()) }
    }

    /// The finished block.
    pub fn share(self) -> Value<'n, Any> {
        // SAFETY: UNSHARED: it is a complete block, alive during 'n.
        unsafe { Value::from_raw(self.fields as isize) }
    }
}

impl core::fmt::Debug for ValueUnshared<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ValueUnshared({} fields)", self.len)
    }
}

// SPDX-License-Identifier: MIT
use crate::{Bool, Int, Unit, Value};

/// An immediate integer. For numbers that may have more than 63 bits see [`Value::int`].
#[inline]
pub const fn int(n: i32) -> Value<'static, Int> {
    // SAFETY: an immediate.
    unsafe { Value::from_raw(((n as isize) << 1) | 1) }
}

impl Value<'static, Int> {
    /// An immediate integer; `None` when the number does not fit in 63 bits.
    #[inline]
    pub const fn int(n: isize) -> Option<Value<'static, Int>> {
        if (n << 1) >> 1 == n {
            // SAFETY: an immediate.
            Some(unsafe { Value::from_raw((n << 1) | 1) })
        } else {
            None
        }
    }
}

impl Value<'static, Unit> {
    /// `()`
    // SAFETY: an immediate.
    pub const UNIT: Value<'static, Unit> = unsafe { Value::from_raw(1) };
}

impl From<bool> for Value<'static, Bool> {
    #[inline]
    fn from(b: bool) -> Self {
        // SAFETY: an immediate: 0 or 1.
        unsafe { Value::from_raw(if b { 3 } else { 1 }) }
    }
}

impl Value<'_, Int> {
    /// The number.
    #[inline]
    pub const fn to_isize(self) -> isize {
        self.raw() >> 1
    }
}

impl Value<'_, Bool> {
    /// The truth value.
    #[inline]
    pub const fn to_bool(self) -> bool {
        self.raw() != 1
    }
}

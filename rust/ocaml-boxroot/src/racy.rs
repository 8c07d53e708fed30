// SPDX-License-Identifier: MIT
use crate::{BigarrayElement, Bytes, Kind, Runtime, Value};
use alloc::string::{FromUtf8Error, String};
use core::fmt;

/// An element of a bigarray, or a byte of `bytes`, which others may write at any time: another domain, or another
/// thread while the lock is released. It is read and written by relaxed atomic accesses, so that a race gives one of
/// the values. A complex number is two such elements.
#[repr(transparent)]
pub struct Racy<E: BigarrayElement>(E::Cell);

impl<E: BigarrayElement> Racy<E> {
    /// The value now.
    #[inline]
    pub fn get(&self) -> E {
        E::load(&self.0)
    }

    /// Writes it.
    #[inline]
    pub fn set(&self, x: E) {
        E::store(&self.0, x)
    }
}

impl<E: BigarrayElement + fmt::Debug> fmt::Debug for Racy<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<'a> Value<'a, Bytes> {
    /// The bytes in place, for as long as nothing is collected. Other domains may write them.
    pub fn racy(self, rt: &Runtime) -> &'a [Racy<u8>] {
        let _ = rt;
        match self.erase().kind() {
            // SAFETY: LIVE: the block has so many bytes. The cells are atomic, so others may access them.
            Kind::String { len } => unsafe { core::slice::from_raw_parts(self.raw() as *const Racy<u8>, len) },
            _ => &[],
        }
    }

    /// A copy as a string, if it is UTF-8.
    pub fn to_utf8(self, rt: &Runtime) -> Result<String, FromUtf8Error> {
        String::from_utf8(self.racy(rt).iter().map(Racy::get).collect())
    }
}

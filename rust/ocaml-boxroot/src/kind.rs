// SPDX-License-Identifier: MIT
use crate::{Any, ShapeError, Value, ValueCell, ValueRef};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};

/// What a value is, as far as its block tells.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// An immediate: an integer, a constant constructor, `()`, …
    Int(isize),
    /// A constructor with arguments, a tuple, a record, an array of anything but floats, a reference, …
    Block {
        /// The constructor's number among those with arguments.
        tag: u8,
        /// The number of fields.
        len: usize,
    },
    /// A `float`. (`int64` and the like are [`Kind::Custom`].)
    Float(f64),
    /// An array or record of unboxed floats.
    FloatArray {
        /// The number of floats.
        len: usize,
    },
    /// A `string` or `bytes`.
    String {
        /// The number of bytes.
        len: usize,
    },
    /// A function.
    Closure,
    /// A function inside another's block.
    Infix,
    /// A captured continuation (OCaml 5).
    Continuation,
    /// A `lazy` that was not forced yet.
    Lazy,
    /// A `lazy` that is being forced (OCaml 5).
    Forcing,
    /// A `lazy` that was forced; its only field is the result.
    Forward,
    /// An object, or the constructor of an exception.
    Object {
        /// The number of fields.
        len: usize,
    },
    /// `int32`, `int64`, `nativeint`, bigarrays, channels, values of Rust and C.
    Custom,
    /// Words that only foreign code understands.
    Abstract,
}

#[cfg(ocaml5)]
pub(crate) const FIRST_SPECIAL_TAG: u8 = 244;
#[cfg(not(ocaml5))]
pub(crate) const FIRST_SPECIAL_TAG: u8 = 246;
#[cfg(ocaml5)]
pub(crate) const FORCING: u8 = 244;
pub(crate) const LAZY: u8 = 246;
const CLOSURE: u8 = 247;
const OBJECT: u8 = 248;
const INFIX: u8 = 249;
pub(crate) const FORWARD: u8 = 250;
pub(crate) const NO_SCAN: u8 = 251;
pub(crate) const ABSTRACT: u8 = 251;
pub(crate) const STRING: u8 = 252;
pub(crate) const DOUBLE: u8 = 253;
pub(crate) const DOUBLE_ARRAY: u8 = 254;
pub(crate) const CUSTOM: u8 = 255;

impl<'a, T> Value<'a, T> {
    /// Tag and size of its block; `None` for an immediate.
    ///
    /// An acquire load: a lazy value changes its tag after its field.
    #[inline]
    pub(crate) fn header(self) -> Option<(u8, usize)> {
        if self.raw() & 1 == 1 {
            return None;
        }
        // SAFETY: LIVE: a block is preceded by its header. Others may change it meanwhile, whole words at a time.
        let header = unsafe { (*(self.raw() as *const AtomicUsize).sub(1)).load(Acquire) };
        Some((header as u8, header >> 10))
    }

    /// The place of field `i`.
    ///
    /// # Safety
    /// The block has that field, it holds values, and `U` describes their type.
    #[inline]
    pub(crate) unsafe fn place<U>(self, i: usize) -> ValueRef<'a, U> {
        // SAFETY: by the caller; LIVE, so PLACE for 'a.
        unsafe { &*(self.raw() as *const ValueCell<U>).add(i) }
    }

    /// Float `i` of a flat block, by a relaxed load: others may write it meanwhile.
    ///
    /// # Safety
    /// The block is flat and has that float.
    #[inline]
    pub(crate) unsafe fn float_at(self, i: usize) -> f64 {
        // SAFETY: by the caller; LIVE.
        let word = unsafe { (*(self.raw() as *const AtomicU64).add(i)).load(Relaxed) };
        f64::from_bits(word)
    }

    /// The value in field `i`.
    ///
    /// # Safety
    /// As for `place`.
    #[inline]
    pub(crate) unsafe fn part<U>(self, i: usize) -> Value<'a, U> {
        // SAFETY: by the caller. What a live block holds lives as long as it (LIVE).
        unsafe { Value::from_raw(self.place::<U>(i).word().load(Relaxed)) }
    }
}

impl<'a> Value<'a, Any> {
    /// What the value is.
    pub fn kind(self) -> Kind {
        let Some((tag, len)) = self.header() else { return Kind::Int(self.raw() >> 1) };
        match tag {
            #[cfg(ocaml5)]
            FORCING => Kind::Forcing,
            #[cfg(ocaml5)]
            245 => Kind::Continuation,
            LAZY => Kind::Lazy,
            CLOSURE => Kind::Closure,
            OBJECT => Kind::Object { len },
            INFIX => Kind::Infix,
            FORWARD => Kind::Forward,
            ABSTRACT => Kind::Abstract,
            STRING => {
                let size = len * 8;
                // SAFETY: LIVE: the last byte of a string says how many of the last word do not count.
                let unused = unsafe { *(self.raw() as *const u8).add(size - 1) };
                Kind::String { len: size - 1 - usize::from(unused) }
            }
            // SAFETY: LIVE: the block holds a float.
            DOUBLE => Kind::Float(unsafe { *(self.raw() as *const f64) }),
            DOUBLE_ARRAY => Kind::FloatArray { len },
            CUSTOM => Kind::Custom,
            tag => Kind::Block { tag, len },
        }
    }

    /// Field `i`, if it exists and holds a value. An error for immediates, for fields out of bounds, and for blocks
    /// whose words are not values or may stop being so: floats, strings, closures, continuations, lazy values before
    /// they are forced.
    #[inline]
    pub fn field(self, i: usize) -> Result<Value<'a, Any>, ShapeError> {
        self.check(i)?;
        // SAFETY: checked just now; the tags that pass do not change.
        Ok(unsafe { self.part(i) })
    }

    /// The place of field `i`, if it exists and holds a value; errors as for [`field`](Value::field).
    #[inline]
    pub fn field_ref(self, i: usize) -> Result<ValueRef<'a, Any>, ShapeError> {
        self.check(i)?;
        // SAFETY: as in `field`.
        Ok(unsafe { self.place(i) })
    }

    #[inline]
    fn check(self, i: usize) -> Result<(), ShapeError> {
        let Some((tag, len)) = self.header() else { return Err(ShapeError::Immediate) };
        if tag >= FIRST_SPECIAL_TAG && tag != OBJECT && tag != FORWARD {
            Err(ShapeError::Opaque(tag))
        } else if i >= len {
            Err(ShapeError::Bounds { index: i, len })
        } else {
            Ok(())
        }
    }

    /// The bytes of a string or bytes; others are empty. Another domain may write bytes meanwhile, so they are read by
    /// relaxed loads, a word at a time.
    pub(crate) fn copy_bytes(self) -> alloc::vec::Vec<u8> {
        let Kind::String { len } = self.kind() else { return alloc::vec::Vec::new() };
        let words = self.raw() as *const AtomicUsize;
        let size = len / 8 + 1;
        let mut bytes = alloc::vec::Vec::<u8>::with_capacity(size * 8);
        // SAFETY: LIVE: the block has so many words; so has the vector.
        unsafe {
            let to = bytes.as_mut_ptr().cast::<usize>();
            for i in 0..size {
                to.add(i).write_unaligned((*words.add(i)).load(Relaxed));
            }
            bytes.set_len(len);
        }
        bytes
    }

    /// The first `most` bytes of a string or bytes, up to eight at a time, read as `copy_bytes` does. Others have none.
    pub(crate) fn each_word_of_bytes(self, most: usize, mut f: impl FnMut(&[u8])) {
        let Kind::String { len } = self.kind() else { return };
        let (len, words) = (len.min(most), self.raw() as *const AtomicUsize);
        for i in 0..len.div_ceil(8) {
            // SAFETY: LIVE: the block has so many words, and one more if the last is full.
            let word = unsafe { (*words.add(i)).load(Relaxed) };
            f(&word.to_ne_bytes()[..(len - i * 8).min(8)]);
        }
    }
}

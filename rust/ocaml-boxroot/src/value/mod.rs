// SPDX-License-Identifier: MIT
//! Values, the places that hold them, and what their blocks tell.
pub(crate) mod ephemeral;
pub(crate) mod local;
pub(crate) mod nursery;
pub(crate) mod root;
pub(crate) mod storage;
pub(crate) mod weak;
pub(crate) mod wide;

use crate::{Any, Exn, Runtime, ShapeError};
use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};

/// A value that is not rooted: valid until something that needs `&mut Runtime` happens. `Copy`, one word, the same
/// representation as C's `value`. `Value<'static>` is an immediate, or static data that never changes.
///
/// `T` describes the OCaml type; [`Any`] is unknown, and every access is checked.
// LIVE: during 'a the value is valid, and so is all that can be reached from it. Either it is an immediate or static
// and constant, or 'a is part of a shared borrow of the thread's Runtime, or of a ValueGuard that owns it, so that no
// collection happens in 'a.
// TYPED: if T is not Any, the value has the type that T describes.
#[repr(transparent)]
pub struct Value<'a, T = Any> {
    raw: isize,
    _runtime: PhantomData<&'a Runtime>,
    _type: PhantomData<fn() -> T>,
}

impl<T> Clone for Value<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Value<'_, T> {}

impl<'a, T> Value<'a, T> {
    /// # Safety
    /// `raw` is a value of the type that `T` describes; it and what it leads to are valid for all of `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: isize) -> Self {
        Value { raw, _runtime: PhantomData, _type: PhantomData }
    }

    /// The word that C calls `value`.
    #[inline]
    pub const fn raw(self) -> isize {
        self.raw
    }

    /// The same value without its type.
    #[inline]
    pub fn into_any(self) -> Value<'a, Any> {
        // SAFETY: LIVE; Any describes every type.
        unsafe { Value::from_raw(self.raw) }
    }

    /// The same value with another type.
    ///
    /// # Safety
    /// The value has the type that `U` describes.
    #[inline]
    pub unsafe fn cast<U>(self) -> Value<'a, U> {
        // SAFETY: LIVE, and the caller.
        unsafe { Value::from_raw(self.raw) }
    }

    /// Whether the two are the same word: `==` in OCaml.
    #[inline]
    pub fn ptr_eq<U>(self, other: Value<'_, U>) -> bool {
        self.raw == other.raw
    }
}

impl<T> Deref for Value<'_, T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        // SAFETY: the same representation; PLACE holds as long as this variable is borrowed, since 'a is longer. Nobody
        // ever writes through a ValueCell.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }
}

impl<T> core::fmt::Debug for Value<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.raw & 1 == 1 {
            write!(f, "Value({})", self.raw >> 1)
        } else {
            f.write_str("Value(block)")
        }
    }
}

// --- places

/// A place that holds a value, however the value is kept alive: a root, a local slot, an argument, a field of a block,
/// a variable with an immediate. Always behind a reference, see [`ValueRef`].
// PLACE: as long as the reference to it may be used by somebody who has a Runtime, the cell holds a value that is valid
// then, of the type that T describes. Others may write it meanwhile, whole words at a time: the collector, and mutators
// on other domains.
#[repr(transparent)]
pub struct ValueCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn() -> T>,
    _local: PhantomData<*mut ()>,
}

/// A value by reference: `&root`, `&immediate`, `&value`, a field, an argument and a local slot all pass as one, by
/// deref coercion.
pub type ValueRef<'a, T = Any> = &'a ValueCell<T>;

impl<T> ValueCell<T> {
    /// # Safety
    /// `raw` stays a valid value of the type that `T` describes as long as the cell is used.
    #[inline]
    pub(crate) const unsafe fn new(raw: isize) -> Self {
        ValueCell { word: AtomicIsize::new(raw), _type: PhantomData, _local: PhantomData }
    }

    /// The value that the place holds now. A relaxed load, which is what OCaml's memory model asks for.
    #[inline]
    pub fn get<'r>(&self, rt: &'r Runtime) -> Value<'r, T> {
        let _ = rt;
        // SAFETY: PLACE, and no collection happens during 'r.
        unsafe { Value::from_raw(self.word.load(Relaxed)) }
    }

    /// The same place without its type.
    #[inline]
    pub fn as_any(&self) -> &ValueCell<Any> {
        // SAFETY: the same representation; Any describes every type.
        unsafe { self.cast() }
    }

    /// The same place with another type.
    ///
    /// # Safety
    /// The values in this place have the type that `U` describes as long as it is borrowed.
    #[inline]
    pub unsafe fn cast<U>(&self) -> &ValueCell<U> {
        // SAFETY: the same representation; PLACE by the caller.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// The word in it, whoever may look: by those who know that nobody writes it.
    #[inline]
    pub(crate) fn word(&self) -> &AtomicIsize {
        &self.word
    }
}

impl<T> core::fmt::Debug for ValueCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ValueCell")
    }
}

// --- encoded results

/// A result or an exception, encoded in one word as OCaml's runtime does it.
// LIVE and TYPED as for Value, of what is encoded.
#[repr(transparent)]
pub struct ValueExn<'a, T = Any> {
    raw: isize,
    _marker: PhantomData<Value<'a, T>>,
}

impl<T> Clone for ValueExn<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ValueExn<'_, T> {}

impl<'a, T> ValueExn<'a, T> {
    /// An encoded exception.
    #[inline]
    pub fn raise(exn: Value<'a, Exn>) -> Self {
        ValueExn { raw: exn.raw() | 2, _marker: PhantomData }
    }

    /// The result, or the exception.
    #[inline]
    pub fn decode(self) -> Result<Value<'a, T>, Value<'a, Exn>> {
        // SAFETY: LIVE and TYPED.
        unsafe {
            if self.raw & 3 == 2 {
                Err(Value::from_raw(self.raw & !3))
            } else {
                Ok(Value::from_raw(self.raw))
            }
        }
    }

    /// The encoded word.
    #[inline]
    pub const fn raw(self) -> isize {
        self.raw
    }

    /// # Safety
    /// `raw` encodes a value of the type that `T` describes, or an exception; it is valid for all of `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: isize) -> Self {
        ValueExn { raw, _marker: PhantomData }
    }
}

impl<'a, T> From<Value<'a, T>> for ValueExn<'a, T> {
    #[inline]
    fn from(v: Value<'a, T>) -> Self {
        ValueExn { raw: v.raw(), _marker: PhantomData }
    }
}

impl<T> core::fmt::Debug for ValueExn<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ValueExn").field(&self.decode()).finish()
    }
}

// --- blocks

/// What a value is, as far as its block tells.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ValueKind {
    /// An immediate: an integer, a constant constructor, `()`, …
    Int(isize),
    /// A constructor with arguments, a tuple, a record, an array of anything but floats, a reference, …
    Block {
        /// The constructor's number among those with arguments.
        tag: u8,
        /// The number of fields.
        len: usize,
    },
    /// A `float`. (`int64` and the like are [`ValueKind::Custom`].)
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
    pub fn kind(self) -> ValueKind {
        let Some((tag, len)) = self.header() else { return ValueKind::Int(self.raw() >> 1) };
        match tag {
            #[cfg(ocaml5)]
            FORCING => ValueKind::Forcing,
            #[cfg(ocaml5)]
            245 => ValueKind::Continuation,
            LAZY => ValueKind::Lazy,
            CLOSURE => ValueKind::Closure,
            OBJECT => ValueKind::Object { len },
            INFIX => ValueKind::Infix,
            FORWARD => ValueKind::Forward,
            ABSTRACT => ValueKind::Abstract,
            STRING => {
                let size = len * 8;
                // SAFETY: LIVE: the last byte of a string says how many of the last word do not count.
                let unused = unsafe { *(self.raw() as *const u8).add(size - 1) };
                ValueKind::String { len: size - 1 - usize::from(unused) }
            }
            // SAFETY: LIVE: the block holds a float.
            DOUBLE => ValueKind::Float(unsafe { *(self.raw() as *const f64) }),
            DOUBLE_ARRAY => ValueKind::FloatArray { len },
            CUSTOM => ValueKind::Custom,
            tag => ValueKind::Block { tag, len },
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
        let ValueKind::String { len } = self.kind() else { return alloc::vec::Vec::new() };
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
        let ValueKind::String { len } = self.kind() else { return };
        let (len, words) = (len.min(most), self.raw() as *const AtomicUsize);
        for i in 0..len.div_ceil(8) {
            // SAFETY: LIVE: the block has so many words, and one more if the last is full.
            let word = unsafe { (*words.add(i)).load(Relaxed) };
            f(&word.to_ne_bytes()[..(len - i * 8).min(8)]);
        }
    }
}

// --- types that values tell

/// Types whose values say at run time what they are: [`Boxed`](crate::Boxed), [`Inline`](crate::Inline),
/// [`Bigarray`](crate::Bigarray).
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` do not say what they are",
    note = "only `Boxed`, `Inline` and bigarrays can be told from other values"
)]
pub trait Downcast: sealed::Downcast {}

pub(crate) mod sealed {
    use crate::{Any, ShapeError, Value};
    pub trait Downcast {
        fn check(v: Value<'_, Any>) -> Result<(), ShapeError>;
    }
}

impl<'a> Value<'a, Any> {
    /// The same value as one of type `T`, if it is one.
    #[inline]
    pub fn downcast<T: Downcast>(self) -> Result<Value<'a, T>, ShapeError> {
        T::check(self)?;
        // SAFETY: checked just now; neither changes its type.
        Ok(unsafe { self.cast() })
    }
}

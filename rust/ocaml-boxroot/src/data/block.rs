// SPDX-License-Identifier: MIT
//! Values with fields: tuples, options, results, references, lazy values, and blocks without a type.
use crate::convert::good;
use crate::types::for_tuples;
#[cfg(ocaml5)]
use crate::value::FORCING;
use crate::value::{FIRST_SPECIAL_TAG, FORWARD, LAZY};
use crate::{
    block_words, glue, Any, Atomic, ConvertError, Element, FromAny, FromOCaml, Int, Lazy, Nursery, Opt, Ref, Res,
    Runtime, ShapeError, ToOCaml, Typed, Value, ValueGuard, ValueRef,
};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicIsize, Ordering::Acquire};

impl Runtime {
    /// A block with these fields. Refuses tags with a meaning of their own, and fails when memory is short.
    pub fn block(&mut self, tag: u8, fields: &[ValueRef<'_>]) -> Result<ValueGuard<'_, Any>, ShapeError> {
        if tag >= FIRST_SPECIAL_TAG {
            return Err(ShapeError::Tag(tag));
        }
        if fields.is_empty() {
            // SAFETY: LOCK; atoms are static.
            return Ok(unsafe { ValueGuard::from_raw(self, glue::obx_atom(tag.into())) });
        }
        self.try_build(block_words(fields.len()), |n| {
            let mut block = n.block_builder(tag, fields.len())?;
            for (i, field) in fields.iter().enumerate() {
                block.set(i, field.get(n));
            }
            Ok(block.finish())
        })
    }

    /// A pair.
    #[inline]
    pub fn pair<A, B>(&mut self, a: ValueRef<'_, A>, b: ValueRef<'_, B>) -> ValueGuard<'_, (A, B)> {
        self.build(3, |n| n.pair(a.get(n), b.get(n)))
    }

    /// `ref v`
    #[inline]
    pub fn reference<T>(&mut self, v: ValueRef<'_, T>) -> ValueGuard<'_, Ref<T>> {
        self.build(2, |n| n.reference(v.get(n)))
    }
}

impl Nursery {
    /// A pair.
    #[inline]
    pub fn pair<'n, A, B>(&'n self, a: Value<'n, A>, b: Value<'n, B>) -> Value<'n, (A, B)> {
        self.filled(0, [a.raw(), b.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// A triple.
    #[inline]
    pub fn triple<'n, A, B, C>(&'n self, a: Value<'n, A>, b: Value<'n, B>, c: Value<'n, C>) -> Value<'n, (A, B, C)> {
        self.filled(0, [a.raw(), b.raw(), c.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `None`
    #[inline]
    pub fn none<T>(&self) -> Value<'_, Opt<T>> {
        // SAFETY: an immediate.
        unsafe { Value::from_raw(1) }
    }

    /// `Some v`
    #[inline]
    pub fn some<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Opt<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `ref v`
    #[inline]
    pub fn reference<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Ref<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `Atomic.make v`
    #[inline]
    pub fn atomic<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Atomic<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }
}

impl<'a, T> Value<'a, Opt<T>> {
    /// What is in `Some`.
    #[inline]
    pub fn to_option(self) -> Option<Value<'a, T>> {
        // SAFETY: TYPED: `None` is an immediate, `Some` a block with one field.
        (self.raw() & 1 == 0).then(|| unsafe { self.part(0) })
    }
}

impl<'a, T> Value<'a, Lazy<T>> {
    /// The result, if the value was forced.
    pub fn forced(self) -> Option<Value<'a, T>> {
        match self.header() {
            #[cfg(ocaml5)]
            Some((FORCING, _)) => None,
            Some((LAZY, _)) => None,
            // SAFETY: TYPED: the result of a value that was forced.
            Some((FORWARD, _)) => Some(unsafe { self.part(0) }),
            // SAFETY: TYPED: a result may stand for itself.
            _ => Some(unsafe { self.cast() }),
        }
    }
}

macro_rules! components {
    ($(($($t:ident $i:tt $f:ident),+))*) => {$(
        impl<'a, $($t),+> Value<'a, ($($t,)+)> {
            $(
                /// The component.
                #[inline]
                pub fn $f(self) -> Value<'a, $t> {
                    // SAFETY: TYPED: a tuple of as many fields.
                    unsafe { self.part($i) }
                }
            )+
        }
    )*}
}
components! { (A 0 first, B 1 second) (A 0 first, B 1 second, C 2 third) }

impl<T: Typed> Typed for Option<T> {
    type Type = Opt<T::Type>;
}
impl<T> Element for Option<T> {}
impl<T: ToOCaml> ToOCaml for Option<T> {
    #[inline]
    fn words(&self) -> usize {
        self.as_ref().map_or(0, |x| block_words(1) + x.words())
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Opt<T::Type>>, ConvertError> {
        match self {
            None => Ok(n.none()),
            Some(x) => Ok(n.filled(0, [x.to_ocaml(n)?.raw()])?),
        }
    }
}
impl<'a, T: FromOCaml<'a>> FromOCaml<'a> for Option<T> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Opt<T::Type>>) -> Result<Self, ConvertError> {
        match v.header() {
            None if v.raw() == 1 => Ok(None),
            // SAFETY: the block has one field; TYPED.
            Some((0, 1)) => T::from_ocaml(rt, unsafe { v.part(0) }).map(Some),
            _ => Err(ShapeError::Not("an option").into()),
        }
    }
}
// SAFETY: tag and size are tested; the content by T.
unsafe impl<'a, T: FromAny<'a>> FromAny<'a> for Option<T> {}

impl<T: Typed, E: Typed> Typed for Result<T, E> {
    type Type = Res<T::Type, E::Type>;
}
impl<T, E> Element for Result<T, E> {}
impl<T: ToOCaml, E: ToOCaml> ToOCaml for Result<T, E> {
    #[inline]
    fn words(&self) -> usize {
        block_words(1) + self.as_ref().map_or_else(|e| e.words(), |x| x.words())
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
        let (tag, field) = match self {
            Ok(x) => (0, x.to_ocaml(n)?.raw()),
            Err(e) => (1, e.to_ocaml(n)?.raw()),
        };
        Ok(n.filled(tag, [field])?)
    }
}
impl<'a, T: FromOCaml<'a>, E: FromOCaml<'a>> FromOCaml<'a> for Result<T, E> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
        match v.header() {
            // SAFETY: the block has one field; TYPED.
            Some((0, 1)) => T::from_ocaml(rt, unsafe { v.part(0) }).map(Ok),
            // SAFETY: as above.
            Some((1, 1)) => E::from_ocaml(rt, unsafe { v.part(0) }).map(Err),
            _ => Err(ShapeError::Not("a result").into()),
        }
    }
}
// SAFETY: tag and size are tested; the content by T and E.
unsafe impl<'a, T: FromAny<'a>, E: FromAny<'a>> FromAny<'a> for Result<T, E> {}

impl<'a, T, E> Value<'a, Res<T, E>> {
    /// What is in `Ok` or `Error`.
    #[inline]
    pub fn to_result(self) -> Result<Value<'a, T>, Value<'a, E>> {
        // SAFETY: TYPED: a block with one field and tag 0 or 1.
        unsafe {
            match self.header() {
                Some((0, _)) => Ok(self.part(0)),
                _ => Err(self.part(0)),
            }
        }
    }
}

macro_rules! tuples {
    ($($t:ident $i:tt),+) => {
        impl<$($t: ToOCaml),+> ToOCaml for ($($t,)+) {
            #[inline]
            fn words(&self) -> usize {
                1 $(+ 1 + self.$i.words())+
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
                let fields = [$(good!(self.$i.to_ocaml(n)).raw()),+];
                Ok(n.filled(0, fields)?)
            }
        }
        impl<'a, $($t: FromOCaml<'a>),+> FromOCaml<'a> for ($($t,)+) {
            #[inline]
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                const SIZE: usize = [$($i),+].len();
                match v.header() {
                    // SAFETY: the block has so many fields; TYPED.
                    Some((0, SIZE)) => Ok(($(good!($t::from_ocaml(rt, unsafe { v.part($i) })),)+)),
                    _ => Err(ShapeError::Not(concat!("a tuple of ", stringify!($($t),+))).into()),
                }
            }
        }
        // SAFETY: tag and size are tested; the components by their types.
        unsafe impl<'a, $($t: FromAny<'a>),+> FromAny<'a> for ($($t,)+) {}
        impl<'a, $($t),+> Value<'a, ($($t,)+)> {
            /// The components.
            #[inline]
            pub fn to_tuple(self) -> ($(Value<'a, $t>,)+) {
                // SAFETY: TYPED: a tuple of as many fields.
                unsafe { ($(self.part::<$t>($i),)+) }
            }
        }
    };
}
for_tuples! { tuples }

// --- mutable fields

/// A mutable field of a block in OCaml's heap. The reference ends with the next thing that needs `&mut Runtime`.
///
/// `get` is an acquire load, so that what another domain wrote before it published the value is seen; `set` is OCaml's
/// own assignment, which publishes by a release.
// FIELD: the reference points to a field of a block that is valid as long as the reference, which is a kind of Value;
// the field's values have the type that T describes. Having one means to hold the lock.
#[repr(transparent)]
pub struct MutCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn(T) -> T>,
    _local: PhantomData<*mut ()>,
}

impl<T> MutCell<T> {
    /// The value of the field now.
    #[inline]
    pub fn get(&self) -> Value<'_, T> {
        // SAFETY: FIELD: no collection happens while self is borrowed, so what a live field holds lives.
        unsafe { Value::from_raw(self.word.load(Acquire)) }
    }

    /// Assigns the field.
    #[inline]
    pub fn set(&self, rt: &Runtime, v: Value<'_, T>) {
        let _ = rt;
        // SAFETY: FIELD; LIVE. caml_modify does not run the collector.
        unsafe { glue::obx_modify(self.word.as_ptr(), v.raw()) }
    }
}

impl<'a, T> Value<'a, Ref<T>> {
    /// The field of the reference.
    #[inline]
    pub fn contents(self) -> &'a MutCell<T> {
        // SAFETY: TYPED: a block with one mutable field; LIVE.
        unsafe { &*(self.raw() as *const MutCell<T>) }
    }
}

impl<T> core::fmt::Debug for MutCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("MutCell")
    }
}

/// The field of an `Atomic.t`. All operations are sequentially consistent, as in OCaml. The reference ends with the
/// next thing that needs `&mut Runtime`.
// FIELD as for MutCell; the field is the first of its block.
#[repr(transparent)]
pub struct AtomicCell<T = Any> {
    word: AtomicIsize,
    _type: PhantomData<fn(T) -> T>,
    _local: PhantomData<*mut ()>,
}

impl<T> AtomicCell<T> {
    /// The value now.
    #[inline]
    pub fn get(&self) -> Value<'_, T> {
        // SAFETY: FIELD, for all four: the lock is held, and none of them runs the collector.
        unsafe { Value::from_raw(glue::obx_atomic_get(self.word.as_ptr())) }
    }

    /// Stores `v`.
    #[inline]
    pub fn set(&self, rt: &Runtime, v: Value<'_, T>) {
        self.exchange(rt, v);
    }

    /// Stores `v`; the result is what was there.
    #[inline]
    pub fn exchange(&self, rt: &Runtime, v: Value<'_, T>) -> Value<'_, T> {
        let _ = rt;
        // SAFETY: FIELD; LIVE.
        unsafe { Value::from_raw(glue::obx_atomic_exchange(self.word.as_ptr(), v.raw())) }
    }

    /// Stores `new` if `old` is there (the same word, as `==`), and says whether it did.
    #[inline]
    pub fn compare_and_set(&self, rt: &Runtime, old: Value<'_, T>, new: Value<'_, T>) -> bool {
        let _ = rt;
        // SAFETY: FIELD; LIVE.
        unsafe { glue::obx_atomic_cas(self.word.as_ptr(), old.raw(), new.raw()) }
    }
}

impl AtomicCell<Int> {
    /// Adds `n`, modulo 2⁶³ as in OCaml; the result is the number before.
    #[inline]
    pub fn fetch_add(&self, rt: &Runtime, n: Value<'_, Int>) -> isize {
        let _ = rt;
        // SAFETY: FIELD; TYPED: the field holds an immediate.
        unsafe { glue::obx_atomic_add(self.word.as_ptr(), n.raw()) >> 1 }
    }
}

impl<'a, T> Value<'a, Atomic<T>> {
    /// The field of the atomic reference.
    #[inline]
    pub fn contents(self) -> &'a AtomicCell<T> {
        // SAFETY: TYPED: a block with one atomic field; LIVE.
        unsafe { &*(self.raw() as *const AtomicCell<T>) }
    }
}

impl<T> core::fmt::Debug for AtomicCell<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AtomicCell")
    }
}

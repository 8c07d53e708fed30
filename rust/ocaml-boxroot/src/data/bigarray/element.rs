// SPDX-License-Identifier: MIT
//! The kinds of bigarrays: each is one type of Rust, so that kind and type cannot disagree.
use crate::{Bytes, Char, Runtime, Value, ValueKind};
use alloc::string::{FromUtf8Error, String};
use core::fmt;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};

/// A type of elements of bigarrays; it says the kind. `i8`, `u8`, `i16`, `u16`, `i32`, `i64`, `isize` (`nativeint`),
/// `f32` and `f64`; [`Char`], [`Int63`], [`Complex`] and [`F16`] for the others.
#[diagnostic::on_unimplemented(
    message = "bigarrays have no elements of type `{Self}`",
    note = "an OCaml `char` is a `Char`, an OCaml `int` an `Int63`"
)]
// ELEMENT: Self and Cell have the size of the elements of bigarrays of this kind, and the same alignment; every bit
// pattern is a value of both, and values need no drop.
pub trait BigarrayElement: Copy + Send + Sync + 'static + Sealed {
    /// `caml_ba_kind`
    #[doc(hidden)]
    const KIND: u8;
    /// The type in OCaml, and that of the kind.
    #[doc(hidden)]
    const NAMES: (&'static str, &'static str);
    /// What relaxed accesses go to.
    #[doc(hidden)]
    type Cell: Send + Sync + 'static;
    #[doc(hidden)]
    fn load(cell: &Self::Cell) -> Self;
    #[doc(hidden)]
    fn store(cell: &Self::Cell, x: Self);
}

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

macro_rules! elements {
    ($($t:ty, $kind:literal, $of:literal $name:literal, $cell:ty,
       $x:ident => $to:expr, $n:ident => $from:expr;)*) => {$(
        impl Sealed for $t {}
        impl BigarrayElement for $t {
            const KIND: u8 = $kind;
            const NAMES: (&'static str, &'static str) = ($of, concat!("Stdlib.Bigarray.", $name, "_elt"));
            type Cell = $cell;
            #[inline]
            fn load(cell: &$cell) -> $t {
                let $n = cell.load(Relaxed);
                $from
            }
            #[inline]
            fn store(cell: &$cell, $x: $t) {
                cell.store($to, Relaxed)
            }
        }
        const _: () = assert!(size_of::<$t>() == size_of::<$cell>() && align_of::<$t>() == align_of::<$cell>());
    )*}
}
elements! {
    f32, 0, "float" "float32", AtomicU32, x => x.to_bits(), n => f32::from_bits(n);
    f64, 1, "float" "float64", AtomicU64, x => x.to_bits(), n => f64::from_bits(n);
    i8, 2, "int" "int8_signed", AtomicU8, x => x as u8, n => n as i8;
    u8, 3, "int" "int8_unsigned", AtomicU8, x => x, n => n;
    i16, 4, "int" "int16_signed", AtomicU16, x => x as u16, n => n as i16;
    u16, 5, "int" "int16_unsigned", AtomicU16, x => x, n => n;
    i32, 6, "int32" "int32", AtomicU32, x => x as u32, n => n as i32;
    i64, 7, "int64" "int64", AtomicU64, x => x as u64, n => n as i64;
    Int63, 8, "int" "int", AtomicU64, x => x.0 as u64, n => Int63(n as i64);
    isize, 9, "nativeint" "nativeint", AtomicU64, x => x as u64, n => n as isize;
    Char, 12, "char" "int8_unsigned", AtomicU8, x => x.0, n => Char(n);
    F16, 13, "float" "float16", AtomicU16, x => x.0, n => F16(n);
}

macro_rules! complex {
    ($($f:ty, $kind:literal, $name:literal;)*) => {$(
        impl Sealed for Complex<$f> {}
        impl BigarrayElement for Complex<$f> {
            const KIND: u8 = $kind;
            const NAMES: (&'static str, &'static str) =
                ("Stdlib.Complex.t", concat!("Stdlib.Bigarray.", $name, "_elt"));
            type Cell = [<$f as BigarrayElement>::Cell; 2];
            #[inline]
            fn load([re, im]: &Self::Cell) -> Self {
                Complex { re: <$f>::load(re), im: <$f>::load(im) }
            }
            #[inline]
            fn store([re, im]: &Self::Cell, x: Self) {
                <$f>::store(re, x.re);
                <$f>::store(im, x.im);
            }
        }
        const _: () = assert!(size_of::<Complex<$f>>() == 2 * size_of::<$f>());
    )*}
}
complex! {
    f32, 10, "complex32";
    f64, 11, "complex64";
}

/// An `int`, as OCaml has it: 63 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Int63(i64);

impl Int63 {
    /// The number, if it has at most 63 bits.
    #[inline]
    pub const fn new(n: i64) -> Option<Int63> {
        if (n << 1) >> 1 == n {
            Some(Int63(n))
        } else {
            None
        }
    }

    /// The number. (Of an element that C code wrote with more bits, those that OCaml sees.)
    #[inline]
    pub const fn get(self) -> i64 {
        (self.0 << 1) >> 1
    }
}

impl From<i32> for Int63 {
    fn from(n: i32) -> Int63 {
        Int63(n.into())
    }
}

/// The bits of a number of 16 bits (IEEE 754 binary16). OCaml 5.2 and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A complex number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
pub struct Complex<F> {
    /// The real part.
    pub re: F,
    /// The imaginary part.
    pub im: F,
}

// --- elements in place

/// An element of a bigarray, or a byte of `bytes`, which others may write at any time: another domain, or another
/// thread while the lock is released. It is read and written by relaxed atomic accesses, so that a race gives one of
/// the values. A complex number is two such elements.
#[repr(transparent)]
pub struct RelaxedCell<E: BigarrayElement>(E::Cell);

impl<E: BigarrayElement> RelaxedCell<E> {
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

impl<E: BigarrayElement + fmt::Debug> fmt::Debug for RelaxedCell<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<'a> Value<'a, Bytes> {
    /// The bytes in place, for as long as nothing is collected. Other domains may write them.
    pub fn as_cells(self, rt: &Runtime) -> &'a [RelaxedCell<u8>] {
        let _ = rt;
        match self.into_any().kind() {
            // SAFETY: LIVE: the block has so many bytes. The cells are atomic, so others may access them.
            ValueKind::String { len } => unsafe {
                core::slice::from_raw_parts(self.raw() as *const RelaxedCell<u8>, len)
            },
            _ => &[],
        }
    }

    /// A copy as a string, if it is UTF-8.
    pub fn to_utf8(self, rt: &Runtime) -> Result<String, FromUtf8Error> {
        String::from_utf8(self.as_cells(rt).iter().map(RelaxedCell::get).collect())
    }
}

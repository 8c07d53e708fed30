// SPDX-License-Identifier: MIT
//! Numbers, truth values and characters. All integers of Rust are `int` in OCaml; those that may not fit are tested.
use crate::convert::Flat;
use crate::value::{CUSTOM, DOUBLE};
use crate::{
    glue, AllocError, Bool, Char, ConvertError, Element, Float, FromAny, FromOCaml, Int, Int32, Int64, Nativeint,
    Nursery, Runtime, ShapeError, ToOCaml, Typed, Uchar, Unit, Value, ValueGuard,
};
use core::ffi::c_void;

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

impl Value<'_, Float> {
    /// The number.
    #[inline]
    pub fn to_f64(self) -> f64 {
        // SAFETY: TYPED: a boxed float; LIVE.
        unsafe { *(self.raw() as *const f64) }
    }
}

impl Nursery {
    /// `()`
    pub fn unit(&self) -> Value<'_, Unit> {
        Value::UNIT
    }

    /// An integer of at most 32 bits; for others see [`Value::int`].
    pub fn int(&self, n: i32) -> Value<'_, Int> {
        int(n)
    }

    /// A float.
    #[inline]
    pub fn float(&self, x: f64) -> Value<'_, Float> {
        self.try_float(x).unwrap_or_else(|e| e.panic())
    }

    /// A float, or an error when memory is short.
    #[inline]
    pub fn try_float(&self, x: f64) -> Result<Value<'_, Float>, AllocError> {
        let block = self.alloc(1, DOUBLE)?;
        // SAFETY: a new block of one word; complete afterwards.
        unsafe {
            block.write(0, x.to_bits());
            Ok(block.share())
        }
    }

    /// A custom block of one word.
    ///
    /// # Safety
    /// The operations have no finaliser, and are those of the type T for such a word.
    #[inline]
    pub(crate) unsafe fn custom<T>(&self, operations: *const c_void, word: isize) -> Result<Value<'_, T>, AllocError> {
        let block = self.alloc(2, CUSTOM)?;
        // SAFETY: a new block of two words; complete afterwards.
        unsafe {
            block.write(0, operations as u64);
            block.write(1, word as u64);
            Ok(block.share())
        }
    }
}

impl Runtime {
    /// A float. As all functions here that take `&mut Runtime`, it may run the collector first.
    #[inline]
    pub fn float(&mut self, x: f64) -> ValueGuard<'_, Float> {
        // SAFETY: LOCK; the value is new.
        unsafe { ValueGuard::from_raw(self, glue::obx_alloc_float(x)) }
    }
}

/// The number of an immediate.
#[inline]
fn immediate<T>(v: Value<'_, T>, expected: &'static str) -> Result<isize, ConvertError> {
    if v.raw() & 1 == 1 {
        Ok(v.raw() >> 1)
    } else {
        Err(ShapeError::Not(expected).into())
    }
}

macro_rules! ints {
    ($($t:ident $name:literal $make:expr;)*) => {$(
        impl Typed for $t {
            type Type = Int;
        }
        impl ToOCaml for $t {
            #[inline]
            fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Int>, ConvertError> {
                let make: fn($t) -> Option<Value<'static, Int>> = $make;
                make(*self).ok_or(ConvertError::Range { target: "OCaml's int" })
            }
        }
        impl<'a> FromOCaml<'a> for $t {
            #[inline]
            fn from_ocaml(_: &'a Runtime, v: Value<'a, Int>) -> Result<Self, ConvertError> {
                let number = immediate(v, "an int")?;
                $t::try_from(number).map_err(|_| ConvertError::Range { target: $name })
            }
        }
        // SAFETY: any immediate will do, and nothing else is accepted.
        unsafe impl FromAny<'_> for $t {}
    )*}
}
ints! {
    i8 "i8" |n| Some(int(n.into()));
    i16 "i16" |n| Some(int(n.into()));
    i32 "i32" |n| Some(int(n));
    u8 "u8" |n| Some(int(n.into()));
    u16 "u16" |n| Some(int(n.into()));
    u32 "u32" |n| Value::int(n as isize);
    i64 "i64" |n| Value::int(n as isize);
    isize "isize" Value::int;
    u64 "u64" |n| Value::int(n.try_into().ok()?);
    usize "usize" |n| Value::int(n.try_into().ok()?);
    i128 "i128" |n| Value::int(n.try_into().ok()?);
    u128 "u128" |n| Value::int(n.try_into().ok()?);
}

// Not u8: arrays of bytes are strings.
macro_rules! elements {
    ($($t:ty)*) => {$(impl Element for $t {})*}
}
elements! { () i8 i16 i32 u16 u32 i64 isize u64 usize i128 u128 bool char }

impl Typed for bool {
    type Type = Bool;
}
impl ToOCaml for bool {
    #[inline]
    fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Bool>, ConvertError> {
        Ok((*self).into())
    }
}
impl<'a> FromOCaml<'a> for bool {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Bool>) -> Result<Self, ConvertError> {
        match v.raw() {
            1 => Ok(false),
            3 => Ok(true),
            _ => Err(ShapeError::Not("a bool").into()),
        }
    }
}
// SAFETY: no other words are accepted.
unsafe impl FromAny<'_> for bool {}

impl Typed for () {
    type Type = Unit;
}
impl ToOCaml for () {
    #[inline]
    fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Unit>, ConvertError> {
        Ok(Value::UNIT)
    }
}
impl<'a> FromOCaml<'a> for () {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Unit>) -> Result<Self, ConvertError> {
        match v.raw() {
            1 => Ok(()),
            _ => Err(ShapeError::Not("()").into()),
        }
    }
}
// SAFETY: no other word is accepted.
unsafe impl FromAny<'_> for () {}

impl Typed for char {
    type Type = Uchar;
}
impl ToOCaml for char {
    #[inline]
    fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Uchar>, ConvertError> {
        // SAFETY: a Uchar.t is the immediate of a scalar value.
        Ok(unsafe { int(*self as i32).cast() })
    }
}
impl<'a> FromOCaml<'a> for char {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Uchar>) -> Result<Self, ConvertError> {
        let number = immediate(v, "a Uchar.t")?;
        u32::try_from(number).ok().and_then(char::from_u32).ok_or(ConvertError::Range { target: "char" })
    }
}
// SAFETY: immediates only.
unsafe impl FromAny<'_> for char {}

impl ToOCaml for Char {
    #[inline]
    fn to_ocaml<'n>(&self, _: &'n Nursery) -> Result<Value<'n, Char>, ConvertError> {
        // SAFETY: a char is the immediate of a byte.
        Ok(unsafe { int(self.0.into()).cast() })
    }
}
impl<'a> FromOCaml<'a> for Char {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Char>) -> Result<Self, ConvertError> {
        let number = immediate(v, "a char")?;
        number.try_into().map(Char).map_err(|_| ConvertError::Range { target: "char" })
    }
}
// SAFETY: immediates only.
unsafe impl FromAny<'_> for Char {}

/// The number in a boxed float.
#[inline]
pub(crate) fn boxed_float<T>(v: Value<'_, T>) -> Result<f64, ConvertError> {
    match v.header() {
        // SAFETY: LIVE: a boxed float.
        Some((DOUBLE, _)) => Ok(unsafe { *(v.raw() as *const f64) }),
        _ => Err(ShapeError::Not("a float").into()),
    }
}

impl Typed for f64 {
    type Type = Float;
}
impl Element for f64 {}
impl ToOCaml for f64 {
    #[inline]
    fn words(&self) -> usize {
        2
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Float>, ConvertError> {
        Ok(n.try_float(*self)?)
    }
    #[inline]
    fn to_float(&self) -> Option<Flat<Float>> {
        // SAFETY: TYPED: any float is one.
        Some(unsafe { Flat::new(*self) })
    }
}
impl<'a> FromOCaml<'a> for f64 {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Float>) -> Result<Self, ConvertError> {
        boxed_float(v)
    }
    #[inline]
    fn from_float(_: &'a Runtime, x: Flat<Float>) -> Result<Self, ConvertError> {
        Ok(x.number())
    }
}
// SAFETY: the tag is tested.
unsafe impl FromAny<'_> for f64 {}

impl Typed for f32 {
    type Type = Float;
}
impl Element for f32 {}
impl ToOCaml for f32 {
    #[inline]
    fn words(&self) -> usize {
        2
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Float>, ConvertError> {
        f64::from(*self).to_ocaml(n)
    }
    #[inline]
    fn to_float(&self) -> Option<Flat<Float>> {
        f64::from(*self).to_float()
    }
}
/// The number must be one of an `f32`, or not a number: rounding is up to the caller, with `f64` and `as`.
impl<'a> FromOCaml<'a> for f32 {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Float>) -> Result<Self, ConvertError> {
        narrow(boxed_float(v)?)
    }
    #[inline]
    fn from_float(_: &'a Runtime, x: Flat<Float>) -> Result<Self, ConvertError> {
        narrow(x.number())
    }
}

fn narrow(x: f64) -> Result<f32, ConvertError> {
    let narrow = x as f32;
    if f64::from(narrow) == x || x.is_nan() {
        Ok(narrow)
    } else {
        Err(ConvertError::Range { target: "f32" })
    }
}
// SAFETY: the tag is tested.
unsafe impl FromAny<'_> for f32 {}

macro_rules! boxed_ints {
    ($($t:ident $int:ident $operations:ident $name:literal $to:ident;)*) => {$(
        impl Value<'_, $t> {
            /// The number.
            #[inline]
            pub fn $to(self) -> $int {
                // SAFETY: TYPED: a custom block with the number behind the operations; LIVE.
                unsafe { *(self.raw() as *const isize).add(1).cast() }
            }
        }
        impl ToOCaml for $t {
            #[inline]
            fn words(&self) -> usize {
                3
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, $t>, ConvertError> {
                // SAFETY: the runtime's operations for such numbers, which have no finaliser.
                Ok(unsafe { n.custom(&raw const glue::$operations, self.0 as isize) }?)
            }
        }
        impl<'a> FromOCaml<'a> for $t {
            #[inline]
            fn from_ocaml(_: &'a Runtime, v: Value<'a, $t>) -> Result<Self, ConvertError> {
                match v.header() {
                    // SAFETY: LIVE: the first word of a custom block is its operations.
                    Some((CUSTOM, _)) if unsafe { *(v.raw() as *const *const c_void) } ==
                        &raw const glue::$operations => Ok($t(v.$to())),
                    _ => Err(ShapeError::Not($name).into()),
                }
            }
        }
        // SAFETY: tag and operations are tested.
        unsafe impl FromAny<'_> for $t {}
    )*}
}
boxed_ints! {
    Int32 i32 caml_int32_ops "an int32" to_i32;
    Int64 i64 caml_int64_ops "an int64" to_i64;
    Nativeint isize caml_nativeint_ops "a nativeint" to_isize;
}

// SPDX-License-Identifier: MIT
//! Numbers, truth values and characters. All integers of Rust are `int` in OCaml; those that may not fit are tested.
use crate::{
    int, Bool, Char, ConvertError, Element, FromAny, FromOCaml, Int, Nursery, Runtime, ShapeError, ToOCaml, Typed,
    Uchar, Unit, Value,
};

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

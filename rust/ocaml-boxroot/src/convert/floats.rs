// SPDX-License-Identifier: MIT
//! Floats, and OCaml's boxed integers.
use crate::convert::Flat;
use crate::kind::{CUSTOM, DOUBLE, DOUBLE_ARRAY};
use crate::{
    glue, ConvertError, Element, Float, FloatArray, FromAny, FromOCaml, Int32, Int64, Nativeint, Nursery, Runtime,
    ShapeError, ToOCaml, Typed, Value,
};
use core::ffi::c_void;

/// The number in a boxed float.
#[inline]
pub(crate) fn boxed<T>(v: Value<'_, T>) -> Result<f64, ConvertError> {
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
        boxed(v)
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
        narrow(boxed(v)?)
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

impl Value<'_, FloatArray> {
    /// The number of floats.
    #[inline]
    pub fn len(self) -> usize {
        self.header().map_or(0, |(_, size)| size)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Float `i`, if it exists. Another domain may write it meanwhile: a relaxed load.
    #[inline]
    pub fn get(self, i: usize) -> Option<f64> {
        // SAFETY: TYPED: so many floats; LIVE.
        (i < self.len()).then(|| unsafe { self.float_at(i) })
    }
}
impl ToOCaml for FloatArray {
    fn words(&self) -> usize {
        self.0.len() + 1
    }
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, FloatArray>, ConvertError> {
        // SAFETY: a flat array of floats.
        Ok(unsafe { n.floats(&self.0)?.cast() })
    }
}
impl<'a> FromOCaml<'a> for FloatArray {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, FloatArray>) -> Result<Self, ConvertError> {
        match v.header() {
            // SAFETY: LIVE: a flat array has so many floats.
            Some((DOUBLE_ARRAY, len)) => Ok(FloatArray((0..len).map(|i| unsafe { v.float_at(i) }).collect())),
            Some((0, 0)) => Ok(FloatArray::default()),
            _ => Err(ShapeError::Not("a floatarray").into()),
        }
    }
}
// SAFETY: the tag is tested.
unsafe impl FromAny<'_> for FloatArray {}

// SPDX-License-Identifier: MIT
//! Strings of characters and of bytes.
use crate::kind::STRING;
use crate::{
    string_words, Bytes, ConvertError, Element, FromAny, FromOCaml, Nursery, Runtime, ShapeError, Str, ToOCaml, Typed,
    Value,
};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

fn check<'a, T>(v: Value<'a, T>) -> Result<Value<'a, T>, ConvertError> {
    match v.header() {
        Some((STRING, _)) => Ok(v),
        _ => Err(ShapeError::Not("a string").into()),
    }
}

macro_rules! as_bytes {
    ($($t:ty, $type:ident, $this:ident => $bytes:expr;)*) => {$(
        impl ToOCaml for $t {
            #[inline]
            fn words(&self) -> usize {
                let $this = self;
                string_words($bytes.len())
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, $type>, ConvertError> {
                let $this = self;
                let bytes: &[u8] = $bytes;
                // SAFETY: `string` and `bytes` have the same representation.
                Ok(unsafe { n.try_string(bytes)?.cast() })
            }
        }
    )*}
}
as_bytes! {
    str, Str, s => s.as_bytes();
    String, Str, s => s.as_bytes();
    [u8], Str, s => s;
    Vec<u8>, Str, s => &s[..];
    Bytes, Bytes, s => &s.0[..];
}

macro_rules! strings {
    ($($t:ty)*) => {$(
        impl Typed for $t {
            type Type = Str;
        }
    )*}
}
strings! { str String [u8] Vec<u8> }
impl Element for str {}
impl Element for String {}

impl<const N: usize> Typed for [u8; N] {
    type Type = Str;
}
impl<const N: usize> ToOCaml for [u8; N] {
    fn words(&self) -> usize {
        string_words(N)
    }
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Str>, ConvertError> {
        Ok(n.try_string(self)?)
    }
}
impl<'a, const N: usize> FromOCaml<'a> for [u8; N] {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        let bytes = check(v)?.as_bytes();
        bytes.try_into().map_err(|_| ShapeError::Length { expected: N, found: bytes.len() }.into())
    }
}

/// In place: no copy.
impl<'a> FromOCaml<'a> for &'a [u8] {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        Ok(check(v)?.as_bytes())
    }
}
/// In place: no copy.
impl<'a> FromOCaml<'a> for &'a str {
    #[inline]
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        Ok(check(v)?.to_str()?)
    }
}
impl<'a> FromOCaml<'a> for Vec<u8> {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        Ok(check(v)?.erase().copy_bytes())
    }
}
impl<'a> FromOCaml<'a> for String {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        String::from_utf8(check(v)?.erase().copy_bytes()).map_err(|error| error.utf8_error().into())
    }
}
impl<'a> FromOCaml<'a> for Bytes {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Bytes>) -> Result<Self, ConvertError> {
        Ok(Bytes(check(v)?.to_vec()))
    }
}
// SAFETY: for the three: the tag is tested. Bytes, which look alike, may be written meanwhile: all are copied by
// relaxed loads.
unsafe impl FromAny<'_> for Vec<u8> {}
// SAFETY: as above.
unsafe impl FromAny<'_> for String {}
// SAFETY: as above.
unsafe impl FromAny<'_> for Bytes {}

/// Borrowed: no copy.
impl<'a> FromOCaml<'a> for Cow<'a, str> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        <&str>::from_ocaml(rt, v).map(Cow::Borrowed)
    }
}
/// Borrowed: no copy.
impl<'a> FromOCaml<'a> for Cow<'a, [u8]> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        <&[u8]>::from_ocaml(rt, v).map(Cow::Borrowed)
    }
}

macro_rules! shared {
    ($($p:ident)*) => {$(
        impl<'a> FromOCaml<'a> for $p<str> {
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
                <&str>::from_ocaml(rt, v).map(Into::into)
            }
        }
        impl<'a> FromOCaml<'a> for $p<[u8]> {
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
                <&[u8]>::from_ocaml(rt, v).map(Into::into)
            }
        }
    )*}
}
shared! { Box Rc Arc }

// SPDX-License-Identifier: MIT
//! Strings of characters and of bytes.
use crate::value::STRING;
use crate::{
    glue, string_words, AllocError, Bytes, ConvertError, Element, FromAny, FromOCaml, Nursery, Runtime, ShapeError,
    Str, ToOCaml, Typed, Value, ValueGuard, ValueKind,
};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

impl<'a> Value<'a, Str> {
    /// The bytes of the string, in place, for as long as nothing needs `&mut Runtime`.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        let (_, words) = self.header().unwrap_or((0, 0));
        let size = words * 8;
        let start = self.raw() as *const u8;
        // SAFETY: TYPED: a string, whose last byte says how many of the last word do not count. Strings never change,
        // and LIVE.
        unsafe { core::slice::from_raw_parts(start, size - 1 - usize::from(*start.add(size - 1))) }
    }

    /// The string, if it is UTF-8.
    pub fn to_str(self) -> Result<&'a str, core::str::Utf8Error> {
        core::str::from_utf8(self.as_bytes())
    }
}

impl Value<'_, Bytes> {
    /// The number of bytes.
    pub fn len(self) -> usize {
        match self.into_any().kind() {
            ValueKind::String { len } => len,
            _ => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Byte `i`, if it exists. A relaxed load: another domain may write it meanwhile, so there is no slice of them.
    pub fn get(self, i: usize) -> Option<u8> {
        Some(self.cell(i)?.load(Relaxed))
    }

    /// Sets byte `i`, by a relaxed store; false if there is none.
    pub fn set(self, rt: &Runtime, i: usize, byte: u8) -> bool {
        let _ = rt;
        self.cell(i).map(|cell| cell.store(byte, Relaxed)).is_some()
    }

    /// A copy.
    pub fn to_vec(self) -> Vec<u8> {
        self.into_any().copy_bytes()
    }

    fn cell(&self, i: usize) -> Option<&AtomicU8> {
        // SAFETY: TYPED: so many bytes; LIVE. Others access them meanwhile, by atomic accesses or in OCaml.
        (i < self.len()).then(|| unsafe { &*(self.raw() as *const AtomicU8).add(i) })
    }
}

impl Nursery {
    /// A string. Panics when memory is short.
    pub fn string(&self, s: impl AsRef<[u8]>) -> Value<'_, Str> {
        self.try_string(s).unwrap_or_else(|e| e.panic())
    }

    /// A string, or an error when memory is short.
    pub fn try_string(&self, s: impl AsRef<[u8]>) -> Result<Value<'_, Str>, AllocError> {
        let bytes = s.as_ref();
        let words = bytes.len() / 8 + 1;
        let block = self.alloc(words, STRING)?;
        // SAFETY: a new block of so many words; complete afterwards: the last byte says how many of the last word do
        // not count.
        unsafe {
            block.fields.add(words - 1).write(0);
            let start = block.fields.cast::<u8>();
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            start.add(words * 8 - 1).write((words * 8 - 1 - bytes.len()) as u8);
            Ok(Value::from_raw(block.fields as isize))
        }
    }
}

impl Runtime {
    /// A string. Panics when memory is short.
    pub fn string(&mut self, s: impl AsRef<[u8]>) -> ValueGuard<'_, Str> {
        match self.try_string(s) {
            Ok(v) => v,
            Err(error) => error.panic(),
        }
    }

    /// A string, or an error when the heap has no room for it.
    pub fn try_string(&mut self, s: impl AsRef<[u8]>) -> Result<ValueGuard<'_, Str>, AllocError> {
        let bytes = s.as_ref();
        // SAFETY: LOCK; the value is new, and has room for as many bytes.
        unsafe {
            let raw = glue::obx_alloc_string(bytes.len());
            if raw == 0 {
                return Err(AllocError { words: bytes.len() / 8 + 1 });
            }
            (raw as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Ok(ValueGuard::from_raw(self, raw))
        }
    }
}

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
        Ok(check(v)?.into_any().copy_bytes())
    }
}
impl<'a> FromOCaml<'a> for String {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> {
        String::from_utf8(check(v)?.into_any().copy_bytes()).map_err(|error| error.utf8_error().into())
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

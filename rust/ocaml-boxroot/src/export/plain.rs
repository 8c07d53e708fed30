// SPDX-License-Identifier: MIT
//! Numbers and truth values, which pass as machine words and floats, without the runtime.
use super::Raise;
use crate::{Bool, ConvertError, Float, Int, OCamlType, Unit};

/// A number that `#[export]` recognises by its name.
///
/// # Safety
/// The C function gets for a value of the type that `Type` describes, with the attribute, what `Native` is.
pub unsafe trait Plain: Sized {
    /// How C passes it.
    type Native: Copy;
    /// The type in OCaml.
    type Type: OCamlType;
    /// The attribute in OCaml.
    const ATTRIBUTE: &'static str;
    /// From the argument of the native function.
    fn from_native(native: Self::Native) -> Result<Self, ConvertError>;
    /// What the native function gets for this value.
    ///
    /// # Safety
    /// WORDS.
    unsafe fn unbox(word: isize) -> Self::Native;
}

/// A result of that kind.
///
/// # Safety
/// As for `Plain`, of what the C function returns.
pub unsafe trait PlainResult: Sized {
    /// How C returns it.
    type Native: Copy;
    /// The type in OCaml.
    type Type: OCamlType;
    /// The attribute in OCaml.
    const ATTRIBUTE: &'static str;
    /// The result of the native function.
    fn into_native(self) -> Result<Self::Native, ConvertError>;
    /// The value for it.
    ///
    /// # Safety
    /// The lock is held; nothing needs to stay where it is.
    unsafe fn boxed(native: Self::Native) -> isize;
}

// SAFETY: as OCaml passes unboxed floats.
unsafe impl Plain for f64 {
    type Native = f64;
    type Type = Float;
    const ATTRIBUTE: &'static str = "[@unboxed]";
    #[inline(always)]
    fn from_native(native: f64) -> Result<f64, ConvertError> {
        Ok(native)
    }
    #[inline(always)]
    unsafe fn unbox(word: isize) -> f64 {
        // SAFETY: WORDS: a boxed float.
        unsafe { *(word as *const f64) }
    }
}

// SAFETY: as for arguments.
unsafe impl PlainResult for f64 {
    type Native = f64;
    type Type = Float;
    const ATTRIBUTE: &'static str = "[@unboxed]";
    #[inline(always)]
    fn into_native(self) -> Result<f64, ConvertError> {
        Ok(self)
    }
    #[inline(always)]
    unsafe fn boxed(native: f64) -> isize {
        // SAFETY: by the caller.
        unsafe { crate::glue::obx_alloc_float(native) }
    }
}

macro_rules! integers {
    ($($t:ident $attribute:literal $shift:literal)*) => {$(
        // SAFETY: as OCaml passes untagged integers.
        unsafe impl Plain for $t {
            type Native = isize;
            type Type = Int;
            const ATTRIBUTE: &'static str = "[@untagged]";
            #[inline(always)]
            fn from_native(native: isize) -> Result<$t, ConvertError> {
                $t::try_from(native).map_err(|_| ConvertError::Range { target: stringify!($t) })
            }
            #[inline(always)]
            unsafe fn unbox(word: isize) -> isize {
                word >> 1
            }
        }
        // SAFETY: as for arguments; without the attribute, a tagged integer.
        unsafe impl PlainResult for $t {
            type Native = isize;
            type Type = Int;
            const ATTRIBUTE: &'static str = $attribute;
            #[inline(always)]
            #[allow(irrefutable_let_patterns, clippy::useless_conversion)]
            fn into_native(self) -> Result<isize, ConvertError> {
                // The numbers that do not fit in 63 bits leave as values, since they can be refused then.
                match isize::try_from(self) {
                    Ok(n) if (n << 1) >> 1 == n => Ok(if $shift { (n << 1) | 1 } else { n }),
                    _ => Err(ConvertError::Range { target: "int" }),
                }
            }
            #[inline(always)]
            unsafe fn boxed(native: isize) -> isize {
                if $shift { native } else { (native << 1) | 1 }
            }
        }
    )*}
}
integers! {
    i8 "[@untagged]" false
    i16 "[@untagged]" false
    i32 "[@untagged]" false
    u8 "[@untagged]" false
    u16 "[@untagged]" false
    u32 "[@untagged]" false
    i64 "" true
    isize "" true
    u64 "" true
    usize "" true
}

// SAFETY: a value.
unsafe impl Plain for bool {
    type Native = isize;
    type Type = Bool;
    const ATTRIBUTE: &'static str = "";
    #[inline(always)]
    fn from_native(native: isize) -> Result<bool, ConvertError> {
        Ok(native != 1)
    }
    #[inline(always)]
    unsafe fn unbox(word: isize) -> isize {
        word
    }
}

// SAFETY: a value.
unsafe impl PlainResult for bool {
    type Native = isize;
    type Type = Bool;
    const ATTRIBUTE: &'static str = "";
    #[inline(always)]
    fn into_native(self) -> Result<isize, ConvertError> {
        Ok(1 | (isize::from(self) << 1))
    }
    #[inline(always)]
    unsafe fn boxed(native: isize) -> isize {
        native
    }
}

// SAFETY: a value.
unsafe impl Plain for () {
    type Native = isize;
    type Type = Unit;
    const ATTRIBUTE: &'static str = "";
    #[inline(always)]
    fn from_native(_: isize) -> Result<(), ConvertError> {
        Ok(())
    }
    #[inline(always)]
    unsafe fn unbox(word: isize) -> isize {
        word
    }
}

// SAFETY: a value.
unsafe impl PlainResult for () {
    type Native = isize;
    type Type = Unit;
    const ATTRIBUTE: &'static str = "";
    #[inline(always)]
    fn into_native(self) -> Result<isize, ConvertError> {
        Ok(1)
    }
    #[inline(always)]
    unsafe fn boxed(native: isize) -> isize {
        native
    }
}

/// The argument number `n`.
#[inline(always)]
pub fn plain_arg<P: Plain>(native: P::Native, n: usize) -> Result<P, Raise> {
    P::from_native(native).map_err(|error| Raise::argument(error).at(n))
}

/// The result of the native function.
#[inline(always)]
pub fn plain_result<P: PlainResult>(result: P) -> Result<P::Native, Raise> {
    result.into_native().map_err(Raise::result)
}

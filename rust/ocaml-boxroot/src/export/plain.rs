// SPDX-License-Identifier: MIT
//! Numbers and truth values, which pass as machine words and floats, without the runtime; and functions that OCaml
//! calls without preparing for a collection or an exception (`[@@noalloc]`).
use super::wrapper::{Lock, Place, Places, Raise, Words};
use crate::runtime::with_lock_held;
use crate::{glue, Bool, ConvertError, Float, Int, OCamlType, Runtime, Unit, Value};
use core::marker::PhantomData;

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

/// A result that passes as [`Plain`] arguments do.
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
        unsafe { glue::obx_alloc_float(native) }
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

// --- functions that neither allocate nor raise

/// An argument that any word of its type is good for.
///
/// # Safety
/// It is a number, a truth value or a [`Value`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a function with `noalloc`, which cannot raise",
    note = "take `isize`, `i64`, `f64`, `bool` or a `Value`, or drop `noalloc`"
)]
pub unsafe trait Total {}
// SAFETY: a number or a truth value.
unsafe impl Total for isize {}
// SAFETY: a number or a truth value.
unsafe impl Total for i64 {}
// SAFETY: a number or a truth value.
unsafe impl Total for f64 {}
// SAFETY: a number or a truth value.
unsafe impl Total for bool {}
// SAFETY: a number or a truth value.
unsafe impl Total for () {}
// SAFETY: a value.
unsafe impl<T> Total for Value<'_, T> {}

/// A result that allocates nothing.
///
/// # Safety
/// The word is a value of the type that the result is described with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a function with `noalloc`: it may have to be allocated",
    note = "return a number, `bool`, `()` or a `Value`, or drop `noalloc`"
)]
pub unsafe trait TotalResult {
    /// How C returns it.
    type Native: Copy;
    /// The word or number.
    fn total(self) -> Self::Native;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: as `PlainResult`.
        unsafe impl TotalResult for $t {
            type Native = <$t as PlainResult>::Native;
            #[inline(always)]
            fn total(self) -> Self::Native {
                self.into_native().unwrap_or_else(|error| panic!("{error}"))
            }
        }
    )*}
}
plain! { f64, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, bool, () }

// SAFETY: TYPED.
unsafe impl<T> TotalResult for Value<'_, T> {
    type Native = isize;
    #[inline(always)]
    fn total(self) -> isize {
        self.raw()
    }
}

/// Ends the process when it is dropped, which a panic does.
struct AbortOnDrop(&'static str);
impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        {
            eprintln!("ocaml-boxroot: panic in the function `{}`, which is noalloc and cannot raise", self.0);
            std::process::abort()
        }
        #[cfg(not(feature = "std"))]
        panic!("panic in the function `{}`, which is noalloc and cannot raise", self.0)
    }
}

/// Runs the body of a function that neither raises nor allocates. A panic ends the process with a message.
///
/// # Safety
/// As for [`run`](super::wrapper::run).
#[inline(always)]
pub unsafe fn noalloc<R>(name: &'static str, f: impl FnOnce(&mut Lock) -> R) -> R {
    let abort = AbortOnDrop(name);
    let result = f(&mut Lock { _local: PhantomData });
    core::mem::forget(abort);
    result
}

/// The argument.
#[inline(always)]
pub fn total_plain<P: Plain + Total>(native: P::Native) -> P {
    P::from_native(native).unwrap_or_else(|error| panic!("{error}"))
}

/// The body of such a function with read access.
#[inline(always)]
pub fn read_total<const N: usize, R>(lock: &mut Lock, words: Words<N>, f: impl FnOnce(&Runtime, &Places<N>) -> R) -> R {
    let _ = lock;
    // SAFETY: WORDS: nothing is collected in `f`.
    let places = unsafe { Places::new(words.0) };
    // SAFETY: LOCK by the token.
    unsafe { with_lock_held(|rt| f(rt, &places)) }.expect("no memory for OCaml roots")
}

/// The argument, of a function with read access.
#[inline(always)]
pub fn total_value<'a, T>(rt: &'a Runtime, place: &'a Place) -> Value<'a, T> {
    // SAFETY: WORDS.
    unsafe { place.0.get(rt).cast() }
}

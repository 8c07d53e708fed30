// SPDX-License-Identifier: MIT
//! Functions that OCaml calls without preparing for a collection or an exception (`[@@noalloc]`).
use super::{Lock, Plain, PlainResult, Words};
use crate::{entry, Runtime, Value};
use core::marker::PhantomData;

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

/// Ends the process when it is dropped.
struct Bomb(&'static str);
impl Drop for Bomb {
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
/// As for [`run`](super::run).
#[inline(always)]
pub unsafe fn noalloc<R>(name: &'static str, f: impl FnOnce(&mut Lock) -> R) -> R {
    let bomb = Bomb(name);
    let result = f(&mut Lock { _local: PhantomData });
    core::mem::forget(bomb);
    result
}

/// The argument.
#[inline(always)]
pub fn total_plain<P: Plain + Total>(native: P::Native) -> P {
    P::from_native(native).unwrap_or_else(|error| panic!("{error}"))
}

/// The body of such a function with read access.
#[inline(always)]
pub fn read_total<const N: usize, R>(
    lock: &mut Lock,
    words: Words<N>,
    f: impl FnOnce(&Runtime, &super::Places<N>) -> R,
) -> R {
    let _ = lock;
    // SAFETY: WORDS: nothing is collected in `f`.
    let places = unsafe { super::Places::new(words.0) };
    // SAFETY: LOCK by the token.
    unsafe { entry::with_lock_held(|rt| f(rt, &places)) }.expect("no memory for OCaml roots")
}

/// The argument, of a function with read access.
#[inline(always)]
pub fn total_value<'a, T>(rt: &'a Runtime, place: &'a super::Place) -> Value<'a, T> {
    // SAFETY: WORDS.
    unsafe { place.0.get(rt).cast() }
}

// SPDX-License-Identifier: MIT
//! How values pass: arguments of exported functions, and their results.
//!
//! First what a result borrows from OCaml's heap is made a word, or kept as a Rust value that borrows nothing; then the
//! runtime is free again, and blocks can be made.
use super::wrapper::{Lock, Place, Places, Raise, RaiseError, Word};
use crate::runtime::with_lock_held;
use crate::{
    Boxed, FromOCaml, Nursery, OCamlAbstract, OCamlErasable, Root, Runtime, ToOCaml, Typed, Value, ValueCell,
    ValueGuard,
};
use core::sync::atomic::Ordering::Relaxed;

/// An argument of an exported function that takes `&Runtime`, or no runtime.
///
/// # Safety
/// WORDS: `read` takes the value in the place for one of the type that `Type` describes, and nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an exported function",
    note = "take a `Value`, a `ValueRef`, a `Root`, or a Rust type that implements `FromOCaml`"
)]
pub unsafe trait ReadArg<'a>: Sized {
    /// The type in OCaml.
    type Type;
    /// The argument.
    fn read(rt: &'a Runtime, place: &'a Place) -> Result<Self, Raise>;
}

/// An argument of an exported function that takes `&mut Runtime`.
///
/// # Safety
/// As for `ReadArg`; without `SLOT`, `write` does not keep the place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an exported function that takes `&mut Runtime`",
    note = "such a function may run the collector: take a `ValueRef<'_, T>` (kept alive during the call) or a \
            `Root<T>`, or a Rust type that owns its data and implements `FromOCaml`, such as `String`"
)]
pub unsafe trait WriteArg<'a>: Sized {
    /// The type in OCaml.
    type Type;
    /// Whether the place must be a local root.
    const SLOT: bool;
    /// The argument.
    fn write(rt: &Runtime, place: &'a Place) -> Result<Self, Raise>;
}

// SAFETY: the type of the place.
unsafe impl<'a, T> ReadArg<'a> for &'a ValueCell<T> {
    type Type = T;
    #[inline(always)]
    fn read(_: &'a Runtime, place: &'a Place) -> Result<Self, Raise> {
        // SAFETY: WORDS; nothing is collected during 'a, a borrow of the runtime.
        Ok(unsafe { place.0.cast() })
    }
}

// SAFETY: the type that it is converted from.
unsafe impl<'a, R: FromOCaml<'a>> ReadArg<'a> for R {
    type Type = R::Type;
    #[inline(always)]
    fn read(rt: &'a Runtime, place: &'a Place) -> Result<Self, Raise> {
        // SAFETY: WORDS: of the type that the OCaml text says.
        R::from_ocaml(rt, unsafe { place.0.get(rt).cast() }).map_err(Raise::argument)
    }
}

// SAFETY: the type of the place, which is a local root.
unsafe impl<'a, T> WriteArg<'a> for &'a ValueCell<T> {
    type Type = T;
    const SLOT: bool = true;
    #[inline(always)]
    fn write(_: &Runtime, place: &'a Place) -> Result<Self, Raise> {
        // SAFETY: WORDS; the place is a local root for all of 'a (SLOT).
        Ok(unsafe { place.0.cast() })
    }
}

// SAFETY: the type that it is converted from.
unsafe impl<'a, R: for<'x> FromOCaml<'x>> WriteArg<'a> for R {
    type Type = <R as Typed>::Type;
    const SLOT: bool = false;
    #[inline(always)]
    fn write(rt: &Runtime, place: &'a Place) -> Result<Self, Raise> {
        // SAFETY: WORDS. The result borrows nothing: it is the same type for every lifetime.
        R::from_ocaml(rt, unsafe { place.0.get(rt).cast() }).map_err(Raise::argument)
    }
}

/// The argument number `n`, of a function without a runtime: as it is.
#[inline(always)]
pub fn pure_arg<T>(lock: &Lock, word: Word) -> Value<'_, T> {
    let _ = lock;
    // SAFETY: WORDS: nothing is collected as long as the token is borrowed.
    unsafe { Value::from_raw(word.0) }
}

/// The argument number `n`.
#[inline(always)]
pub fn read_arg<'a, A: ReadArg<'a>>(rt: &'a Runtime, place: &'a Place, n: usize) -> Result<A, Raise> {
    A::read(rt, place).map_err(|raise| raise.at(n))
}

/// The argument number `n`.
#[inline(always)]
pub fn write_arg<'a, A: WriteArg<'a>>(rt: &Runtime, place: &'a Place, n: usize) -> Result<A, Raise> {
    A::write(rt, place).map_err(|raise| raise.at(n))
}

/// The argument number `n`, a Rust value that OCaml owns, for as long as the place lasts.
#[inline(always)]
pub fn payload_arg<'a, T: OCamlAbstract + 'static>(rt: &Runtime, place: &'a Place, n: usize) -> Result<&'a T, Raise> {
    // SAFETY: WORDS.
    let place: &'a ValueCell<Boxed<T>> = unsafe { place.0.cast() };
    place.try_payload(rt).map_err(|error| Raise::argument(error.into()).at(n))
}

/// As [`payload_arg`], for a function that is generic for OCaml.
#[inline(always)]
pub fn payload_arg_erased<'a, T: OCamlErasable>(rt: &Runtime, place: &'a Place, n: usize) -> Result<&'a T, Raise> {
    // SAFETY: WORDS.
    let place: &'a ValueCell<Boxed<T>> = unsafe { place.0.cast() };
    place.try_payload_erased(rt).map_err(|error| Raise::argument(error.into()).at(n))
}

/// As [`payload_arg`], for a function that promises to keep values of its type parameters apart: it takes payloads that
/// were made in either way.
#[inline(always)]
pub fn payload_arg_static<'a, T>(rt: &Runtime, place: &'a Place, n: usize) -> Result<&'a T, Raise>
where
    T: OCamlErasable + 'static,
{
    payload_arg(rt, place, n).or_else(|error| payload_arg_erased(rt, place, n).map_err(|_| error))
}

// --- results

/// What a function returned. The methods are found in this order: for the types that are named here, else for all types
/// (the traits).
#[derive(Debug)]
pub struct Returned<R>(pub R);

/// A result for which there may be something to do.
pub trait Split {
    /// The result.
    type Result;
    /// The result, or what is to be raised.
    fn split(self) -> Result<Self::Result, Raise>;
}

/// A result that is converted.
pub trait Convert {
    /// The result.
    type Result;
    /// The result, borrowing nothing of the runtime.
    fn pending(self) -> Later<Self::Result>
    where
        Self::Result: ToOCaml;
}

impl<R> Split for Returned<R> {
    type Result = R;
    #[inline(always)]
    fn split(self) -> Result<R, Raise> {
        Ok(self.0)
    }
}

impl<R, E> Returned<Result<R, E>> {
    /// Errors are raised.
    #[inline(always)]
    pub fn split(self) -> Result<R, Raise>
    where
        E: RaiseError,
    {
        self.0.map_err(Raise::error)
    }
}

impl<R> Convert for Returned<R> {
    type Result = R;
    #[inline(always)]
    fn pending(self) -> Later<R>
    where
        R: ToOCaml,
    {
        Later(self.0)
    }
}

macro_rules! values {
    ($($r:ty),*) => {$(
        impl<T> Returned<$r> {
            /// The word.
            #[inline(always)]
            pub fn pending(self) -> Done {
                // A ValueGuard, a Value or a place: the lock is held, so all can be read.
                Done(self.0.raw_now())
            }
        }
        impl<T> Returned<Option<$r>> {
            /// The word in the option.
            #[inline(always)]
            pub fn pending(self) -> Maybe {
                Maybe(self.0.map(|v| v.raw_now()))
            }
        }
    )*}
}
values! { ValueGuard<'_, T>, Value<'_, T>, &ValueCell<T>, Root<T> }

/// What holds a word that can be read now.
trait RawNow {
    fn raw_now(self) -> isize;
}
impl<T> RawNow for ValueGuard<'_, T> {
    #[inline(always)]
    fn raw_now(self) -> isize {
        self.value().raw()
    }
}
impl<T> RawNow for Value<'_, T> {
    #[inline(always)]
    fn raw_now(self) -> isize {
        self.raw()
    }
}
impl<T> RawNow for &ValueCell<T> {
    #[inline(always)]
    fn raw_now(self) -> isize {
        self.word().load(Relaxed)
    }
}
impl<T> RawNow for Root<T> {
    #[inline(always)]
    fn raw_now(self) -> isize {
        self.word().load(Relaxed)
    }
}

/// The proof that nothing was collected since the function returned.
#[derive(Debug)]
pub struct Quiet(());

/// A result for which blocks may have to be made.
pub trait Pending {
    /// The word, if there is nothing to do.
    fn ready(&self) -> Option<isize>;
    /// Makes the value.
    fn finish(self, rt: &mut Runtime, quiet: Quiet) -> Result<isize, Raise>;
}

/// A valid value, until the next thing that may run the collector.
#[derive(Debug)]
pub struct Done(isize);

impl Pending for Done {
    #[inline(always)]
    fn ready(&self) -> Option<isize> {
        Some(self.0)
    }
    #[inline(always)]
    fn finish(self, _: &mut Runtime, _: Quiet) -> Result<isize, Raise> {
        Ok(self.0)
    }
}

/// `None`, or a valid value as above.
#[derive(Debug)]
pub struct Maybe(Option<isize>);

impl Pending for Maybe {
    #[inline(always)]
    fn ready(&self) -> Option<isize> {
        match self.0 {
            Some(_) => None,
            None => Some(1),
        }
    }
    #[inline]
    fn finish(self, rt: &mut Runtime, _: Quiet) -> Result<isize, Raise> {
        let Some(word) = self.0 else { return Ok(1) };
        // SAFETY: valid now, and nothing is collected before it is in the slot.
        let v = unsafe { Value::<crate::Any>::from_raw(word) };
        let raw = v.raw();
        Ok(rt.with_places([raw], |rt, [place]| rt.build(2, |n| n.some(place.get(n))).value().raw()))
    }
}

/// A Rust value to be converted.
#[derive(Debug)]
pub struct Later<R>(R);

impl<R: ToOCaml> Pending for Later<R> {
    #[inline(always)]
    fn ready(&self) -> Option<isize> {
        None
    }
    #[inline(always)]
    fn finish(self, rt: &mut Runtime, _: Quiet) -> Result<isize, Raise> {
        let nursery = Nursery::new(rt, self.0.words());
        match self.0.to_ocaml(&nursery) {
            Ok(v) => Ok(v.raw()),
            Err(error) => Err(Raise::result(error)),
        }
    }
}

/// The value, at the end of a function that OCaml has called with these arguments.
#[inline(always)]
pub fn finish<const N: usize, P: Pending>(rt: &mut Runtime, _: &Places<N>, pending: P) -> Result<isize, Raise> {
    pending.finish(rt, Quiet(()))
}

/// The value; the runtime is looked for when it is needed.
#[inline(always)]
pub fn finish_pure<P: Pending>(lock: &mut Lock, pending: P) -> Result<isize, Raise> {
    let _ = lock;
    match pending.ready() {
        Some(word) => Ok(word),
        None => {
            // SAFETY: LOCK by the token.
            let done = unsafe { with_lock_held(|rt| pending.finish(rt, Quiet(()))) };
            done.unwrap_or_else(|| Err(Raise::memory()))
        }
    }
}

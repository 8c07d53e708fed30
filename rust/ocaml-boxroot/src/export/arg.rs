// SPDX-License-Identifier: MIT
//! Arguments of exported functions.
use super::{Lock, Place, Raise, Word};
use crate::{Boxed, FromOCaml, OCamlAbstract, OCamlGeneric, Runtime, Typed, Value, ValueCell};

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

/// The same, of a function that is generic for OCaml.
#[inline(always)]
pub fn payload_arg_generic<'a, T: OCamlGeneric>(rt: &Runtime, place: &'a Place, n: usize) -> Result<&'a T, Raise> {
    // SAFETY: WORDS.
    let place: &'a ValueCell<Boxed<T>> = unsafe { place.0.cast() };
    place.try_payload_generic(rt).map_err(|error| Raise::argument(error.into()).at(n))
}

/// The same, of one that promises to keep values of its parameters apart: whichever way the payload was made.
#[inline(always)]
pub fn payload_arg_static<'a, T>(rt: &Runtime, place: &'a Place, n: usize) -> Result<&'a T, Raise>
where
    T: OCamlGeneric + 'static,
{
    payload_arg(rt, place, n).or_else(|error| payload_arg_generic(rt, place, n).map_err(|_| error))
}

// SPDX-License-Identifier: MIT
//! Results of exported functions. First what may borrow from OCaml's heap is made a word, or kept as a Rust value that
//! borrows nothing; then the runtime is free again, and blocks can be made.
use super::{Lock, Places, Raise, RaiseError};
use crate::{entry, Fresh, Nursery, Root, Runtime, ToOCaml, Value, ValueCell};
use core::sync::atomic::Ordering::Relaxed;

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
                // A Fresh, a Value or a place: the lock is held, so all can be read.
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
values! { Fresh<'_, T>, Value<'_, T>, &ValueCell<T>, Root<T> }

/// The word in it now.
trait RawNow {
    fn raw_now(self) -> isize;
}
impl<T> RawNow for Fresh<'_, T> {
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

/// That nothing was collected since the function returned.
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
            let done = unsafe { entry::with_lock_held(|rt| pending.finish(rt, Quiet(()))) };
            done.unwrap_or_else(|| Err(Raise::memory()))
        }
    }
}

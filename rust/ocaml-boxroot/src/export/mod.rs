// SPDX-License-Identifier: MIT
//! What the code written by `#[export]` and `library!` calls. Not an interface for anything else.
//!
//! A wrapper is a C function whose frame has nothing to drop. It calls [`run`], which catches panics; all that needs
//! dropping is dropped inside. What comes out is the result, or an exception that the wrapper raises as its last act.
mod arg;
mod exception;
mod import;
mod library;
mod noalloc;
mod panic;
mod plain;
mod raise;
mod result;
mod signature;

pub use crate::type_var::Erased;
pub use alloc::string::String;
pub use alloc::vec::Vec;
pub use arg::{payload_arg, payload_arg_generic, payload_arg_static, pure_arg, read_arg, write_arg, ReadArg, WriteArg};
pub use exception::ExceptionType;
pub use import::{describe_type, imported, Import, ImportCell, ImportTypes};
pub use library::{check, text, Library, Table};
pub use noalloc::{noalloc, read_total, total_plain, total_value, Total, TotalResult};
pub use plain::{plain_arg, plain_result, Plain, PlainResult};
pub use raise::{Raise, RaiseError, Raised};
pub use result::{finish, finish_pure, Convert, Pending, Returned, Split};
pub use signature::{describe_payload, describe_plain, describe_plain_result, describe_read, describe_write};
pub use signature::{describe_result, signature, Export, ResultType, Signature, SplitType, Types};

#[allow(unused_imports)]
pub(crate) use panic::hook;
pub(crate) use raise::failure;

use crate::{defer, entry, Any, Runtime, ValueCell};
use core::marker::PhantomData;

/// A place that holds an argument, of the type that the OCaml text gives it. Only functions that OCaml has called have
/// one.
// WORDS, of the value in it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Place(ValueCell<Any>);

/// The places of a function's arguments.
#[derive(Debug)]
#[repr(transparent)]
pub struct Places<const N: usize>([Place; N]);

impl<const N: usize> Places<N> {
    /// # Safety
    /// WORDS, for as long as the result is used.
    #[inline(always)]
    unsafe fn new(words: [isize; N]) -> Self {
        // SAFETY: by the caller.
        Places(words.map(|word| Place(unsafe { ValueCell::new(word) })))
    }

    /// # Safety
    /// The cells hold the arguments.
    #[inline(always)]
    unsafe fn of(cells: &[ValueCell<Any>; N]) -> &Self {
        // SAFETY: the same representation.
        unsafe { &*core::ptr::from_ref(cells).cast() }
    }
}

impl<const N: usize> core::ops::Index<usize> for Places<N> {
    type Output = Place;
    #[inline(always)]
    fn index(&self, i: usize) -> &Place {
        &self.0[i]
    }
}

/// The proof that OCaml has just called a function of this thread, and that no `Runtime` is usable on it.
#[derive(Debug)]
pub struct Lock {
    _local: PhantomData<*mut ()>,
}

/// Arguments as OCaml passed them.
// WORDS: they are valid values, of the types that the OCaml text gives to the arguments, until the next thing that may
// run the collector.
#[derive(Debug)]
pub struct Words<const N: usize>([isize; N]);

/// One of them.
#[derive(Debug)]
pub struct Word(isize);

impl<const N: usize> Words<N> {
    /// Each by itself.
    #[inline(always)]
    pub fn each(self) -> [Word; N] {
        self.0.map(Word)
    }

    /// # Safety
    /// WORDS.
    #[inline(always)]
    pub unsafe fn new(words: [isize; N]) -> Self {
        Words(words)
    }

    /// # Safety
    /// As for [`new`](Words::new), of an array that the bytecode interpreter passes.
    #[inline(always)]
    pub unsafe fn of_bytecode(arguments: *const isize) -> [isize; N] {
        // SAFETY: by the caller: so many words.
        unsafe { arguments.cast::<[isize; N]>().read() }
    }
}

/// Runs the body of an exported function. Panics and errors become an exception, for the wrapper to raise.
///
/// # Safety
/// OCaml has just called the function that calls this one. That function raises what is in `Err` at once, when it has
/// nothing left to drop.
#[inline(always)]
pub unsafe fn run<R>(f: impl FnOnce(&mut Lock) -> Result<R, Raise>) -> Result<R, Raised> {
    let mut lock = Lock { _local: PhantomData };
    match panic::catch(|| f(&mut lock)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(raise)) => Err(raise.encode(&mut lock)),
        Err(panic) => Err(panic.encode(&mut lock)),
    }
}

/// All that a wrapper does: runs the body, and raises what it fails with.
///
/// # Safety
/// OCaml has just called the function that does nothing but call this one, with these words and numbers, of the types
/// that the OCaml text says.
#[inline(always)]
pub unsafe fn call<const N: usize, P: Copy, R: Copy>(
    words: [isize; N],
    plain: P,
    body: impl FnOnce(&mut Lock, Words<N>, P) -> Result<R, Raise> + Copy,
) -> R {
    // SAFETY: WORDS by the caller.
    match unsafe { run(move |lock| body(lock, Words(words), plain)) } {
        Ok(result) => result,
        // SAFETY: RAISED: nothing in this frame, a part of the wrapper's, is to be dropped: all is `Copy`.
        Err(raised) => unsafe { raised.raise() },
    }
}

/// As [`call`], with read access.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call_read<const N: usize, P: Copy, R: Copy>(
    words: [isize; N],
    plain: P,
    body: impl FnOnce(&mut Runtime, &Places<N>, P) -> Result<R, Raise> + Copy,
) -> R {
    // SAFETY: by the caller.
    unsafe { call(words, plain, move |lock, words, plain| read(lock, words, |rt, places| body(rt, places, plain))) }
}

/// As [`call`], with write access. With `slots`, the places are local roots.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call_write<const N: usize, P: Copy, R: Copy>(
    words: [isize; N],
    plain: P,
    slots: bool,
    body: impl FnOnce(&mut Runtime, &Places<N>, P) -> Result<R, Raise> + Copy,
) -> R {
    let body =
        move |lock: &mut Lock, words: Words<N>, plain| write(lock, words, slots, |rt, places| body(rt, places, plain));
    // SAFETY: by the caller.
    unsafe { call(words, plain, body) }
}

/// The body of a function with read access.
#[inline(always)]
pub fn read<const N: usize, R>(
    lock: &mut Lock,
    words: Words<N>,
    f: impl FnOnce(&mut Runtime, &Places<N>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let _ = lock;
    // SAFETY: WORDS: nothing is collected before `f` uses `rt` for writing, which is when it finishes its result.
    let places = unsafe { Places::new(words.0) };
    // SAFETY: LOCK by the token.
    unsafe { entry::with_lock_held(|rt| f(rt, &places)) }.unwrap_or_else(|| Err(Raise::memory()))
}

/// The body of a function with write access. With `slots`, the places are local roots.
#[inline(always)]
pub fn write<const N: usize, R>(
    lock: &mut Lock,
    words: Words<N>,
    slots: bool,
    f: impl FnOnce(&mut Runtime, &Places<N>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let _ = lock;
    let enter = |rt: &mut Runtime| {
        let words = if defer::is_waiting() { run_deferred(rt, words.0) } else { words.0 };
        if slots {
            // SAFETY: WORDS: the cells are local roots, which were made with the words.
            rt.with_places(words, |rt, places| f(rt, unsafe { Places::of(places) }))
        } else {
            // SAFETY: WORDS: arguments that need no slot are read before anything is collected.
            let places = unsafe { Places::new(words) };
            f(rt, &places)
        }
    };
    // SAFETY: LOCK by the token.
    unsafe { entry::with_lock_held(enter) }.unwrap_or_else(|| Err(Raise::memory()))
}

/// Runs the deferred closures; the arguments as they are afterwards.
#[cold]
#[inline(never)]
fn run_deferred<const N: usize>(rt: &mut Runtime, words: [isize; N]) -> [isize; N] {
    rt.with_places(words, |rt, places| {
        defer::run(rt);
        places.each_ref().map(|place| place.get(rt).raw())
    })
}

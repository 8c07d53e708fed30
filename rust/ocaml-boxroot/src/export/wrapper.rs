// SPDX-License-Identifier: MIT
//! The frame of an exported function: the places of its arguments, the lock, and how errors and panics leave it as
//! exceptions.
//!
//! A wrapper is a C function whose frame has nothing to drop. It calls [`run`], which catches panics; all that needs
//! dropping is dropped inside. What comes out is the result, or an exception that the wrapper raises as its last act.
use crate::exception::{self, types::raw_of_known};
use crate::panics::{catch_panic, Panic, PanicPayload};
use crate::runtime::{is_deferred, run_deferred, with_lock_held};
use crate::{
    block_words, glue, int, string_words, AllocError, Any, ConvertError, List, Nursery, Runtime, Str, Value, ValueCell,
};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::ffi::c_int;
use core::marker::PhantomData;

/// A place that holds an argument, of the type that the OCaml text gives it. Only functions that OCaml has called have
/// one.
// WORDS, for the value in it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Place(pub(super) ValueCell<Any>);

/// The places of a function's arguments.
#[derive(Debug)]
#[repr(transparent)]
pub struct Places<const N: usize>(pub(super) [Place; N]);

impl<const N: usize> Places<N> {
    /// # Safety
    /// WORDS, for as long as the result is used.
    #[inline(always)]
    pub(super) unsafe fn new(words: [isize; N]) -> Self {
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
    pub(super) _local: PhantomData<*mut ()>,
}

/// Arguments as OCaml passed them.
// WORDS: they are valid values, of the types that the OCaml text gives to the arguments, until the next thing that may
// run the collector.
#[derive(Debug)]
pub struct Words<const N: usize>(pub(super) [isize; N]);

/// One argument as OCaml passed it.
#[derive(Debug)]
pub struct Word(pub(super) isize);

impl<const N: usize> Words<N> {
    /// The arguments one by one.
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
    match catch_panic(|| f(&mut lock)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(raise)) => Err(raise.encode(&mut lock)),
        Err(panic) => Err(encode_panic(panic, &mut lock)),
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
    unsafe { with_lock_held(|rt| f(rt, &places)) }.unwrap_or_else(|| Err(Raise::memory()))
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
        let words = if is_deferred() { run_deferred_with(rt, words.0) } else { words.0 };
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
    unsafe { with_lock_held(enter) }.unwrap_or_else(|| Err(Raise::memory()))
}

/// Runs the deferred closures. Returns the arguments as they are afterwards, since the collector may move them.
#[cold]
#[inline(never)]
fn run_deferred_with<const N: usize>(rt: &mut Runtime, words: [isize; N]) -> [isize; N] {
    rt.with_places(words, |rt, places| {
        run_deferred(rt);
        places.each_ref().map(|place| place.get(rt).raw())
    })
}

// --- what leaves it as an exception

/// What an exported function fails with. One word.
#[derive(Debug)]
pub struct Raise(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Error(Box<dyn Error + Send + Sync>),
    Argument(usize, ConvertError),
    Result(ConvertError),
    Failure(String),
    Memory,
}

/// An error that an exported function may return. An [`Exception`](crate::Exception) is raised again, the physically
/// same value; one of a type that is an exception of OCaml ([`OCamlException`](crate::OCamlException)) is raised as
/// that, also in a box; the same if it is a source of the error. Others become `Rust_error`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be raised as an OCaml exception",
    note = "the error of an exported function is an `Exception`, or converts to `Box<dyn Error + Send + Sync>`: any \
            error that is `Send + Sync + 'static`, a `String`, a `&'static str`"
)]
pub trait RaiseError {
    /// The error in a box.
    fn boxed(self) -> Box<dyn Error + Send + Sync>;
}

impl<E: Into<Box<dyn Error + Send + Sync>>> RaiseError for E {
    fn boxed(self) -> Box<dyn Error + Send + Sync> {
        self.into()
    }
}

impl Raise {
    #[cold]
    #[inline(never)]
    pub(super) fn error(error: impl RaiseError) -> Raise {
        Raise(Box::new(Kind::Error(error.boxed())))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn argument(error: ConvertError) -> Raise {
        Raise(Box::new(Kind::Argument(0, error)))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn result(error: ConvertError) -> Raise {
        Raise(Box::new(Kind::Result(error)))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn memory() -> Raise {
        Raise(Box::new(Kind::Memory))
    }

    /// A `Failure` with this text, for the generated OCaml text.
    #[cold]
    pub(super) fn failure(text: String) -> Raise {
        Raise(Box::new(Kind::Failure(text)))
    }

    /// The same, for the argument number `n`.
    #[cold]
    #[inline(never)]
    pub(super) fn at(mut self, n: usize) -> Raise {
        if let Kind::Argument(index, _) = &mut *self.0 {
            *index = n;
        }
        self
    }

    #[cold]
    #[inline(never)]
    pub(super) fn encode(self, lock: &mut Lock) -> Raised {
        // The error's own code runs here: it may panic.
        match catch_panic(|| enter(lock, |rt| self.value(rt))) {
            Ok(raised) => raised,
            Err(panic) => encode_panic(panic, lock),
        }
    }

    fn value(self, rt: &mut Runtime) -> Raised {
        match *self.0 {
            Kind::Error(error) => {
                let mut next: Option<&(dyn Error + 'static)> = Some(&*error);
                while let Some(cause) = next {
                    if let Some(exception) = cause.downcast_ref::<exception::Source>() {
                        return exception.kept(rt).map_or_else(out_of_memory, |kept| Raised(kept.raw()));
                    }
                    match raw_of_known(rt, cause) {
                        Some(Ok(raw)) => return Raised(raw),
                        Some(Err(ConvertError::Alloc(_) | ConvertError::Root(_))) => return out_of_memory(),
                        Some(Err(why)) => {
                            let text = alloc::format!("the exception for `{cause}`: {why}");
                            return builtin_with(rt, glue::INVALID_ARGUMENT, &text);
                        }
                        None => next = cause.source(),
                    }
                }
                rust_error(rt, &*error)
            }
            Kind::Argument(_, ConvertError::Alloc(_)) | Kind::Result(ConvertError::Alloc(_)) | Kind::Memory => {
                out_of_memory()
            }
            Kind::Failure(text) => builtin_with(rt, glue::FAILURE, &text),
            Kind::Argument(n, error) => {
                let text = alloc::format!("argument {}: {error}", n + 1);
                builtin_with(rt, glue::INVALID_ARGUMENT, &text)
            }
            Kind::Result(error) => builtin_with(rt, glue::INVALID_ARGUMENT, &alloc::format!("result: {error}")),
        }
    }
}

/// An exception, perhaps with its backtrace, to be raised at once.
// RAISED: a valid value (or TRACED) until the next thing that may run the collector.
#[derive(Debug)]
#[must_use = "an exception that is not raised is lost"]
pub struct Raised(isize);

impl Raised {
    /// Raises it. The frames from here to OCaml's are left by a jump.
    ///
    /// # Safety
    /// OCaml called the function that calls this, which has nothing left to drop.
    #[cold]
    pub unsafe fn raise(self) -> ! {
        // SAFETY: by the caller; RAISED.
        unsafe { glue::obx_raise(self.0) }
    }
}

fn enter(lock: &mut Lock, f: impl FnOnce(&mut Runtime) -> Raised) -> Raised {
    let _ = lock;
    // SAFETY: LOCK by the token.
    unsafe { with_lock_held(f) }.unwrap_or_else(out_of_memory)
}

fn out_of_memory() -> Raised {
    Raised(exception::out_of_memory())
}

fn builtin_with(rt: &mut Runtime, which: c_int, text: &str) -> Raised {
    Raised(exception::builtin_with(rt, which, text))
}

/// Where a panic becomes an exception.
#[cold]
#[inline(never)]
fn encode_panic(payload: PanicPayload, lock: &mut Lock) -> Raised {
    panicked(lock, &payload.describe())
}

fn build(rt: &mut Runtime, words: usize, f: impl FnOnce(&Nursery) -> Result<Value<'_, Any>, AllocError>) -> Raised {
    match rt.try_build(words, f) {
        Ok(exn) => Raised(exn.value().raw()),
        Err(_) => out_of_memory(),
    }
}

/// One of the constructors of `Ocaml_boxroot`.
fn constructor(rt: &Runtime, which: glue::Part) -> Option<Value<'_, Any>> {
    // SAFETY: any type will do.
    unsafe { rt.sealed(which) }
}

fn rust_error(rt: &mut Runtime, error: &(dyn Error + Send + Sync)) -> Raised {
    let message = error.to_string();
    let mut causes: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    if constructor(rt, glue::ERROR).is_none() {
        let mut text = message;
        for cause in causes {
            text = alloc::format!("{text}: {cause}");
        }
        return builtin_with(rt, glue::FAILURE, &text);
    }
    let words = block_words(3) + string_words(message.len());
    let words = causes.iter().fold(words, |words, cause| words + block_words(2) + string_words(cause.len()));
    build(rt, words, |n| {
        let mut list: Value<'_, List<Str>> = n.nil();
        for cause in causes.iter().rev() {
            list = n.cons(n.try_string(cause)?, list);
        }
        let message = n.try_string(&message)?;
        let mut block = n.block_builder(0, 3).map_err(|_| AllocError { words: 3 })?;
        block.set(0, constructor(n, glue::ERROR).unwrap_or(Value::UNIT.into_any()));
        block.set(1, message);
        block.set(2, list);
        Ok(block.finish())
    })
}

/// The exception for a panic: `Rust_panic`, or `Failure` in a program without the module that declares it.
fn panicked(lock: &mut Lock, panic: &Panic) -> Raised {
    let made = catch_panic(|| {
        enter(lock, |rt| {
            if constructor(rt, glue::PANIC).is_none() {
                let text = if panic.file.is_empty() {
                    alloc::format!("Rust panic: {}", panic.message)
                } else {
                    alloc::format!("Rust panic at {}:{}: {}", panic.file, panic.line, panic.message)
                };
                return builtin_with(rt, glue::FAILURE, &text);
            }
            let words = block_words(5)
                + [&panic.message, &panic.file, &panic.backtrace].map(|s| string_words(s.len())).iter().sum::<usize>();
            build(rt, words, |n| {
                let (message, file) = (n.try_string(&panic.message)?, n.try_string(&panic.file)?);
                let backtrace = n.try_string(&panic.backtrace)?;
                let mut block = n.block_builder(0, 5).map_err(|_| AllocError { words: 5 })?;
                block.set(0, constructor(n, glue::PANIC).unwrap_or(Value::UNIT.into_any()));
                block.set(1, message);
                block.set(2, file);
                block.set(3, int(panic.line as i32));
                block.set(4, backtrace);
                Ok(block.finish())
            })
        })
    });
    made.unwrap_or_else(|panic| {
        panic.describe();
        out_of_memory()
    })
}

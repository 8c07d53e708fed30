// SPDX-License-Identifier: MIT
//! Exceptions that leave exported functions.
use super::panic::{self, Panic};
use super::Lock;
use crate::{block_words, entry, glue, string_words, AllocError, ConvertError, Exception, List, Nursery, Runtime, Str};
use crate::{Any, Value};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;

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

/// An error that an exported function may return. An [`Exception`] is raised again, the physically same value; one of a
/// type that is an exception of OCaml ([`OCamlException`](crate::OCamlException)) is raised as that, also in a box;
/// others become `Rust_error`.
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

    /// Without a name of its own, for the generated text.
    #[cold]
    pub(super) fn failure(text: String) -> Raise {
        Raise(Box::new(Kind::Failure(text)))
    }

    /// For the argument number `n`.
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
        match panic::catch(|| enter(lock, |rt| self.value(rt))) {
            Ok(raised) => raised,
            Err(panic) => panic.encode(lock),
        }
    }

    fn value(self, rt: &mut Runtime) -> Raised {
        match *self.0 {
            Kind::Error(error) => match error.downcast::<Exception>() {
                Ok(exception) => match exception.kept(rt) {
                    Some(kept) => Raised(kept.raw()),
                    None => out_of_memory(),
                },
                Err(error) => match super::exception::raise(rt, &*error) {
                    Some(Ok(raw)) => Raised(raw),
                    Some(Err(ConvertError::Alloc(_) | ConvertError::Root(_))) => out_of_memory(),
                    Some(Err(why)) => {
                        builtin_with(rt, glue::INVALID_ARGUMENT, &alloc::format!("the exception for `{error}`: {why}"))
                    }
                    None => rust_error(rt, &*error),
                },
            },
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
    fn exception(self, rt: &Runtime) -> Exception {
        // SAFETY: RAISED.
        Exception::new(rt, unsafe { Value::from_raw(self.0) })
    }

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
    unsafe { entry::with_lock_held(f) }.unwrap_or_else(out_of_memory)
}

fn out_of_memory() -> Raised {
    // SAFETY: the lock is held; the exception is static.
    Raised(unsafe { glue::obx_builtin(glue::OUT_OF_MEMORY) })
}

/// An exception of the runtime with a string.
fn builtin_with(rt: &mut Runtime, which: core::ffi::c_int, text: &str) -> Raised {
    build(rt, block_words(2) + string_words(text.len()), |n| {
        let text = n.try_string(text)?;
        let mut block = n.unshared(0, 2).map_err(|_| AllocError { words: 2 })?;
        // SAFETY: constructors of the runtime's exceptions are static.
        block.set(0, unsafe { Value::<Any>::from_raw(glue::obx_builtin(which)) });
        block.set(1, text);
        Ok(block.share())
    })
}

/// `Failure text`, for Rust.
pub fn failure(rt: &mut Runtime, text: &str) -> Exception {
    builtin_with(rt, glue::FAILURE, text).exception(rt)
}

/// `Invalid_argument text`, for Rust.
pub fn invalid_argument(rt: &mut Runtime, text: &str) -> Exception {
    builtin_with(rt, glue::INVALID_ARGUMENT, text).exception(rt)
}

fn build(rt: &mut Runtime, words: usize, f: impl FnOnce(&Nursery) -> Result<Value<'_, Any>, AllocError>) -> Raised {
    match rt.try_build(words, f) {
        Ok(exn) => Raised(exn.value().raw()),
        Err(_) => out_of_memory(),
    }
}

fn rust_error(rt: &mut Runtime, error: &(dyn Error + Send + Sync)) -> Raised {
    let message = error.to_string();
    let mut causes: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    if rt.named("ocaml_boxroot.error").is_none() {
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
        let mut block = n.unshared(0, 3).map_err(|_| AllocError { words: 3 })?;
        block.set(0, n.named("ocaml_boxroot.error").unwrap_or(Value::UNIT.erase()));
        block.set(1, message);
        block.set(2, list);
        Ok(block.share())
    })
}

/// The exception for a panic.
pub fn panicked(lock: &mut Lock, panic: &Panic) -> Raised {
    let made = panic::catch(|| {
        enter(lock, |rt| {
            if rt.named("ocaml_boxroot.panic").is_none() {
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
                let mut block = n.unshared(0, 5).map_err(|_| AllocError { words: 5 })?;
                block.set(0, n.named("ocaml_boxroot.panic").unwrap_or(Value::UNIT.erase()));
                block.set(1, message);
                block.set(2, file);
                block.set(3, crate::int(panic.line as i32));
                block.set(4, backtrace);
                Ok(block.share())
            })
        })
    });
    made.unwrap_or_else(|panic| {
        panic.describe();
        out_of_memory()
    })
}

// SPDX-License-Identifier: MIT
//! A Rust program that starts OCaml.
use crate::runtime::with_lock_held;
use crate::{attach, exception, glue, AttachError, Exception, Fun, Unit};
use core::ffi::c_char;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

extern "C" {
    fn caml_startup_exn(argv: *const *const c_char) -> isize;
}

/// How OCaml is started.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// What OCaml's `Sys.argv` holds; the program's own arguments when empty.
    pub arguments: Vec<OsString>,
}

/// Why OCaml could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// OCaml runs already, or was started before: once per process.
    AlreadyStarted,
    /// An argument contains a zero byte.
    Argument,
    /// The initialisation of an OCaml module raised this exception.
    Exception(String),
    /// No memory for roots.
    OutOfMemory,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::AlreadyStarted => f.write_str("OCaml was started already"),
            StartError::Argument => f.write_str("an argument for OCaml contains a zero byte"),
            StartError::Exception(text) => write!(f, "an OCaml module could not be initialised: {text}"),
            StartError::OutOfMemory => f.write_str("no memory for OCaml roots"),
        }
    }
}
impl std::error::Error for StartError {}

/// Why the functions registered with `at_exit` did not complete.
#[derive(Debug)]
#[non_exhaustive]
pub enum ShutdownError {
    /// The lock could not be had.
    Attach(AttachError),
    /// One of them raised this exception.
    Exception(Exception),
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShutdownError::Attach(error) => error.fmt(f),
            ShutdownError::Exception(error) => write!(f, "an at_exit function raised {error}"),
        }
    }
}
impl std::error::Error for ShutdownError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ShutdownError::Attach(error) => Some(error),
            ShutdownError::Exception(error) => Some(error),
        }
    }
}

/// The started OCaml. Dropping it does nothing.
#[derive(Debug)]
pub struct Ocaml {
    _local: PhantomData<*mut ()>,
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts OCaml in a Rust program: initialises the OCaml modules that it contains, in the order in which they were
/// linked. The lock is not held afterwards: see [`attach`]. Once for each process. An
/// exception that a module raises is an error, and OCaml cannot be used then.
///
/// ```no_run
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let ocaml = ocaml::start(&ocaml::StartOptions::default())?;
///     let size = attach(|rt| rt.string("hello").value().as_bytes().len())?;
///     println!("{size}");
///     Ok(ocaml.shutdown()?)
/// }
/// ```
pub fn start(options: &StartOptions) -> Result<Ocaml, StartError> {
    let arguments: Vec<OsString> =
        if options.arguments.is_empty() { std::env::args_os().collect() } else { options.arguments.clone() };
    let arguments: Result<Vec<_>, _> = arguments.into_iter().map(|a| CString::new(a.into_vec())).collect();
    let arguments = arguments.map_err(|_| StartError::Argument)?;
    // SAFETY: the functions need nothing.
    if unsafe { glue::obx_running() } || STARTED.swap(true, SeqCst) {
        return Err(StartError::AlreadyStarted);
    }
    // OCaml keeps the arguments for ever.
    let mut pointers: Vec<*const c_char> = arguments.into_iter().map(|a| a.into_raw().cast_const()).collect();
    pointers.push(core::ptr::null());
    // SAFETY: for the first time; the arguments are leaked. An exception is returned, not raised.
    let result = unsafe {
        glue::obx_stack_starting();
        caml_startup_exn(pointers.leak().as_ptr())
    };
    // SAFETY: this thread holds the lock since, and there is no Runtime.
    let outcome = unsafe {
        let outcome = glue::obx_started()
            .then(|| with_lock_held(|rt| exception::check(rt, result).map(drop).map_err(|e| e.printed(rt))));
        glue::obx_release();
        outcome
    };
    match outcome {
        Some(Some(Ok(()))) => Ok(Ocaml { _local: PhantomData }),
        Some(Some(Err(text))) => {
            // SAFETY: the function needs nothing.
            unsafe { glue::obx_close() };
            Err(StartError::Exception(text))
        }
        _ => Err(StartError::OutOfMemory),
    }
}

impl Ocaml {
    /// Closes the door ([`attach`] fails from now on) and runs the functions registered with `at_exit`. An error if the
    /// lock could not be had, or one of the functions raised; the door is closed in the second case too.
    ///
    /// Nothing is freed: roots may be dropped later, and what borrows from a value that a root keeps stays valid.
    /// (OCaml's own `caml_shutdown` finalises the heap.)
    pub fn shutdown(self) -> Result<(), ShutdownError> {
        attach(|rt| {
            // SAFETY: the function needs nothing.
            unsafe { glue::obx_close() };
            let Some(at_exit) = rt.named_value("Pervasives.do_at_exit") else { return Ok(()) };
            // SAFETY: the standard library registers it with this type. (OCaml's own runtime calls what has this name.)
            let at_exit = unsafe { at_exit.cast::<Fun<(Unit,), Unit>>() }.root(rt);
            at_exit.call(rt, ((),)).map(drop).map_err(ShutdownError::Exception)
        })
        .map_err(ShutdownError::Attach)?
    }
}

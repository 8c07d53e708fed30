// SPDX-License-Identifier: MIT
//! OCaml code that Rust runs: functions, what is due, the collector, and what `Printexc` tells.
use crate::convert::good;
use crate::runtime::run_deferred;
use crate::{
    exception, glue, Any, ConvertError, Exception, FromOCaml, Fun, List, Nursery, Root, Runtime, ToOCaml, Typed, Value,
    ValueCell, ValueGuard,
};
use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::marker::PhantomData;

/// What can be passed to an OCaml function for an argument of type `T`: a place (`&root`, `&immediate`, a slot), a
/// constant, or a Rust value, which is converted inside the call: all that is [`ToOCaml`] with that type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to an OCaml function for an argument of type `{T}`",
    note = "pass a reference to a root, a slot or an immediate of that type, or a Rust value that is converted to it"
)]
pub trait Arg<T>: ToOCaml + Typed<Type = T> {}
impl<T, R: ToOCaml + Typed<Type = T>> Arg<T> for R {}

/// The arguments of a call: a tuple of [`Arg`]s for the function's tuple of types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the arguments of an OCaml function that takes `{A}`",
    note = "arguments are passed as a tuple, one by one: references to roots, slots or immediates, or Rust values"
)]
pub trait Args<A>: sealed::Args<A> {}

pub(crate) mod sealed {
    pub trait Args<A> {
        fn words(&self) -> usize;
        /// Calls `closure`, whose value is read when the arguments are there, after the nursery has ended.
        ///
        /// # Safety
        /// This thread holds the lock, and has no other nursery; the place holds a function that takes such arguments.
        unsafe fn call<R>(
            &self,
            closure: &crate::ValueCell<crate::Fun<A, R>>,
            nursery: crate::Nursery,
        ) -> Result<isize, crate::ConvertError>;
    }
}

macro_rules! args {
    ($(($($t:ident $x:ident $i:tt),+) $call:ident)*) => {$(
        impl<$($t, $x: Arg<$t>),+> Args<($($t,)+)> for ($($x,)+) {}
        impl<$($t, $x: Arg<$t>),+> sealed::Args<($($t,)+)> for ($($x,)+) {
            #[inline]
            fn words(&self) -> usize {
                0 $(+ self.$i.words())+
            }
            #[inline]
            unsafe fn call<R>(
                &self,
                closure: &ValueCell<Fun<($($t,)+), R>>,
                nursery: Nursery,
            ) -> Result<isize, ConvertError> {
                let words = [$(good!(self.$i.to_ocaml(&nursery)).raw()),+];
                let closure = closure.get(&nursery).raw();
                drop(nursery);
                // SAFETY: by the caller. All were read after the last collection, and the runtime keeps them from here
                // on.
                Ok(unsafe { glue::$call(closure, words) })
            }
        }
    )*}
}
args! {
    (A0 X0 0) call1
    (A0 X0 0, A1 X1 1) call2
    (A0 X0 0, A1 X1 1, A2 X2 2) call3
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9, A10 X10 10) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9, A10 X10 10,
     A11 X11 11) call_more
}

impl<A, R> ValueCell<Fun<A, R>> {
    /// Calls the function. Arguments that are Rust values are converted here, so that calls need not be nested. One
    /// that cannot be converted is an `Invalid_argument`, as if the function had raised it, or `Out_of_memory`.
    ///
    /// ```
    /// # use ocaml_boxroot::{self as ocaml, prelude::*};
    /// fn greet<'a>(
    ///     rt: &'a mut Runtime,
    ///     f: &Root<Fun<(Str, Int), Str>>,
    /// ) -> Result<ValueGuard<'a, Str>, ocaml::Exception> {
    ///     f.call(rt, ("world", 3))
    /// }
    /// ```
    #[inline]
    pub fn call<'a, X: Args<A>>(&self, rt: &'a mut Runtime, args: X) -> Result<ValueGuard<'a, R>, Exception> {
        let nursery = Nursery::new(rt, args.words());
        // SAFETY: LOCK, TYPED.
        let result = match unsafe { args.call(self, nursery) } {
            Ok(result) => exception::check(rt, result)?,
            Err(error) => return Err(error.into()),
        };
        // SAFETY: the result of the call just now; TYPED.
        Ok(unsafe { ValueGuard::from_raw(rt, result) })
    }
}

// --- calls to be made later

/// A call of an OCaml function, with its arguments, to be made later, any number of times, on any thread. The types of
/// the arguments are forgotten: so an exported function that is generic for OCaml can give one to a thread, a task or a
/// [`defer`](crate::defer), which cannot have values of its type parameters.
///
/// ```
/// # use ocaml_boxroot::prelude::*;
/// /// Calls `f` on a thread of its own.
/// #[export]
/// fn elsewhere<A>(rt: &mut Runtime, f: Root<Fun<(A,), Unit>>, x: Root<A>) {
///     let call = f.delay(rt, x);
///     std::thread::spawn(move || attach(|rt| call.call(rt).map(drop)));
/// }
/// # library! { name = "elsewhere", exports = [elsewhere] }
/// ```
// TYPED: the function takes these arguments, at most four, and returns what R describes.
pub struct Delayed<R> {
    function: Root<Any>,
    arguments: Vec<Root<Any>>,
    _result: PhantomData<fn() -> R>,
}

macro_rules! delays {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<$($t,)+ R> Root<Fun<($($t,)+), R>> {
            /// The call with these arguments, to be made later. Panics when memory is short.
            pub fn delay(&self, rt: &Runtime, $($x: Root<$t>),+) -> Delayed<R> {
                let arguments = alloc::vec![$($x.into_any()),+];
                Delayed { function: self.clone_ref(rt).into_any(), arguments, _result: PhantomData }
            }
        }
    )*}
}
delays! { (A a) (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) }

impl<R> Delayed<R> {
    /// Makes the call.
    pub fn call<'a>(&self, rt: &'a mut Runtime) -> Result<ValueGuard<'a, R>, Exception> {
        // SAFETY: TYPED, for each: as many arguments, of types that the function takes.
        unsafe {
            match &self.arguments[..] {
                [a] => self.function.cast::<Fun<(Any,), R>>().call(rt, (a,)),
                [a, b] => self.function.cast::<Fun<(Any, Any), R>>().call(rt, (a, b)),
                [a, b, c] => self.function.cast::<Fun<(Any, Any, Any), R>>().call(rt, (a, b, c)),
                [a, b, c, d] => self.function.cast::<Fun<(Any, Any, Any, Any), R>>().call(rt, (a, b, c, d)),
                _ => unreachable!("a call of one to four arguments"),
            }
        }
    }
}

impl<R> core::fmt::Debug for Delayed<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Delayed")
    }
}

impl Runtime {
    /// The value that the program registered under this name (`Callback.register`) last. `None` if there is none. OCaml
    /// looks it up in a table under a mutex; what is called often is kept in a root, or declared by
    /// [`import!`](crate::import).
    pub fn named_value(&self, name: &str) -> Option<Value<'_, Any>> {
        let name = CString::new(name).ok()?;
        // SAFETY: LOCK.
        let raw = unsafe { glue::obx_named(name.as_ptr()) };
        // SAFETY: registered values are roots; it is copied, so that registering another one later does no harm.
        (raw != 0).then(|| unsafe { Value::from_raw(raw) })
    }

    /// A part of what an OCaml module of this crate handed over; `None` in a program without the module. Whatever the
    /// program registers under names, this is what the module has (SEALED).
    ///
    /// # Safety
    /// The module has a value of that type there.
    pub(crate) unsafe fn sealed<T>(&self, (kind, i): glue::Part) -> Option<Value<'_, T>> {
        // SAFETY: LOCK.
        let contents = unsafe { glue::obx_sealed(kind) };
        // SAFETY: SEALED; by the caller.
        (contents != 0).then(|| unsafe { Value::<Any>::from_raw(contents).part(i) })
    }
}

/// What OCaml modules of this crate call to hand something over: a block that nothing else makes.
///
/// # Safety
/// The caller is such a module, and passes what `glue::Part` says.
#[no_mangle]
unsafe extern "C" fn ocaml_boxroot_seal(kind: isize, contents: isize) -> isize {
    // SAFETY: by the caller. It may raise: there is nothing to drop.
    unsafe { glue::obx_seal((kind >> 1) as c_int, contents) }
}

/// Called by the new domain of `spawn_domain`. Another value than a job, or a job that was run already, does nothing.
///
/// # Safety
/// This thread holds the domain lock and has no usable Runtime; a valid value.
#[no_mangle]
unsafe extern "C" fn ocaml_boxroot_run_job(job: isize) -> isize {
    // SAFETY: by the caller.
    unsafe { glue::obx_run_job(job) };
    1
}

impl Runtime {
    /// Runs what is due: signal handlers, finalisers, other threads' turns, closures of [`defer`](crate::defer). An
    /// error is the exception that one of them raised; what is due after it stays so.
    pub fn poll(&mut self) -> Result<(), Exception> {
        run_deferred(self);
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_poll() };
        exception::check(self, result).map(drop)
    }

    /// Empties the minor heap: what is alive in it moves. Runs no OCaml code, but may drop Rust values that OCaml owns.
    /// With OCaml 5 all domains take part, so it waits for them.
    pub fn minor_gc(&mut self) {
        // SAFETY: LOCK.
        unsafe { glue::obx_minor() }
    }

    /// Completes major cycles until what is unreachable now is freed; finalisers and signal handlers run. An error is
    /// the exception that one of them raised. Takes as long as marking the whole heap three times; with OCaml 5 all
    /// domains take part.
    pub fn full_major(&mut self) -> Result<(), Exception> {
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_full_major() };
        exception::check(self, result).map(drop)
    }

    /// As [`full_major`](Runtime::full_major), and compacts the heap where the runtime can (not OCaml 5.0 and 5.1):
    /// blocks of the major heap move too.
    pub fn compact(&mut self) -> Result<(), Exception> {
        // SAFETY: LOCK.
        let result = unsafe { glue::obx_compact() };
        exception::check(self, result).map(drop)
    }
}

// --- what Printexc tells

/// A place in OCaml code that an exception passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacktraceSlot {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The first character in the line, from 0.
    pub start: usize,
    /// Behind the last character; counted from the same line's beginning.
    pub end: usize,
    /// The function, where the compiler recorded it.
    pub function: Option<String>,
    /// Whether the exception was raised here; else the place is a call.
    pub is_raise: bool,
    /// Whether the call was inlined.
    pub is_inlined: bool,
}

impl Exception {
    /// What `Printexc.to_string` says, with the printers that the program registered. This runs OCaml code. In a
    /// program without the module `Ocaml_boxroot`, and when memory is short, it is [`text`](Exception::text).
    pub fn printed(&self, rt: &mut Runtime) -> String {
        let exn = |rt: &Runtime| Some(self.value(rt)?.raw());
        // SAFETY: Printexc.to_string, of type `exn -> string`.
        let text: Option<Vec<u8>> = exn(rt).and_then(|exn| unsafe { ask(rt, glue::PRINT, exn) });
        match text {
            Some(text) => String::from_utf8_lossy(&text).into_owned(),
            None => self.text(rt),
        }
    }

    /// The backtrace as `Printexc` prints it. `None` if there is none: OCaml did not record it, or the exception was
    /// not raised but made; and in a program without the module `Ocaml_boxroot`.
    pub fn backtrace(&self, rt: &mut Runtime) -> Option<String> {
        let trace = self.parts(rt)?.1?.raw();
        // SAFETY: Printexc.raw_backtrace_to_string; TRACED.
        let text: Vec<u8> = unsafe { ask(rt, glue::BACKTRACE, trace) }?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The places in the backtrace, where it was raised first. None as for [`backtrace`](Exception::backtrace), or if
    /// the OCaml code was compiled without `-g`.
    pub fn backtrace_slots(&self, rt: &mut Runtime) -> Vec<BacktraceSlot> {
        let trace = self.parts(rt).and_then(|(_, trace)| Some(trace?.raw()));
        type Slot = (Vec<u8>, usize, usize, usize, Option<Vec<u8>>, bool, bool);
        let slots: Option<List<Slot>> =
            // SAFETY: a function of that type, which takes what OCaml calls a raw backtrace; TRACED.
            trace.and_then(|trace| unsafe { ask(rt, glue::BACKTRACE_SLOTS, trace) });
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let slots = slots.map_or_else(Vec::new, |list| list.0).into_iter();
        slots
            .map(|(file, line, start, end, function, is_raise, is_inlined)| BacktraceSlot {
                file: text(file),
                line,
                start,
                end,
                function: function.map(text),
                is_raise,
                is_inlined,
            })
            .collect()
    }
}

/// The result of a function of `Ocaml_boxroot`. `None` in a program without that module, or if it raises.
///
/// # Safety
/// The function takes an argument of the type of `argument`, a valid value, and returns one of the type of `R`.
unsafe fn ask<R: for<'x> FromOCaml<'x>>(rt: &mut Runtime, function: glue::Part, argument: isize) -> Option<R> {
    // SAFETY: by the caller.
    let function = unsafe { rt.sealed::<Any>(function) }?.raw();
    rt.with_places([function, argument], |rt, [function, argument]| {
        // SAFETY: by the caller.
        let function = unsafe { function.cast::<Fun<(Any,), Any>>() };
        let result = function.call(rt, (argument,)).ok()?;
        // SAFETY: by the caller.
        R::from_ocaml(result.rt(), unsafe { result.value().cast() }).ok()
    })
}

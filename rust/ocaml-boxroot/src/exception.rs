// SPDX-License-Identifier: MIT
use crate::{glue, string_words, AllocError, Any, ConvertError, Exn, Fresh, Kind, Root, Runtime, Value};
use alloc::string::String;
use core::fmt;

/// An OCaml exception, with its backtrace if OCaml records them (`OCAMLRUNPARAM=b`, `Printexc.record_backtrace`).
///
/// It owns a root, so that `?` borrows nothing: a borrowed one would not pass the borrow checker in front of another
/// call. Returned as the error of an exported function it is raised again, physically the same value.
///
/// *Which exception*: [`to_rust`](Exception::to_rust) and [`matches`](Exception::matches), with a type that derives
/// [`OCamlException`](macro@crate::OCamlException), or one of [`exceptions`](crate::exceptions); by name,
/// [`is`](Exception::is).
///
/// *Its text*: [`printed`](Exception::printed), by `Printexc`, with its printers; `Display` and
/// [`text`](Exception::text), which run no OCaml code.
///
/// *Where it was raised*: [`backtrace`](Exception::backtrace), [`backtrace_slots`](Exception::backtrace_slots). Raised
/// again by Rust, an exception goes on with its backtrace in native code (with OCaml 5: on x86-64 Linux only). In
/// bytecode, and with OCaml 5 elsewhere, OCaml begins a new one, with the call of the Rust function.
// `None` when memory was too short for the root. TRACED: the root holds an exception, or a block with that tag, which
// no exception has: the exception, and what OCaml calls a raw backtrace.
pub struct Exception {
    root: Option<Root<Any>>,
}

/// As in glue/exception.c.
const TRACED: u8 = 1;

/// A result of the runtime that may be an encoded exception.
#[inline]
pub(crate) fn check(rt: &mut Runtime, result: isize) -> Result<isize, Exception> {
    if result & 3 == 2 {
        Err(caught(rt, result & !3))
    } else {
        Ok(result)
    }
}

#[cold]
#[inline(never)]
fn caught(rt: &mut Runtime, exn: isize) -> Exception {
    // SAFETY: LOCK; the exception was raised just now, and is valid until the next thing that needs &mut Runtime.
    let kept = unsafe { Value::<Any>::from_raw(glue::obx_traced(exn)) };
    Exception { root: Root::try_new(rt, kept).ok() }
}

impl Exception {
    /// The exception as a Rust error. It has no backtrace.
    #[cold]
    pub fn new(rt: &Runtime, exn: Value<'_, Exn>) -> Exception {
        Exception { root: Root::try_new(rt, exn.erase()).ok() }
    }

    /// The exception with its backtrace, to be raised.
    pub(crate) fn kept<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Any>> {
        self.root.as_ref().map(|root| root.get(rt))
    }

    /// The exception and its backtrace.
    pub(crate) fn parts<'r>(&self, rt: &'r Runtime) -> Option<(Value<'r, Exn>, Option<Value<'r, Any>>)> {
        let kept = self.kept(rt)?;
        // SAFETY: TRACED.
        Some(unsafe {
            match kept.kind() {
                Kind::Block { tag: TRACED, .. } => (kept.part(0), Some(kept.part(1))),
                _ => (kept.cast(), None),
            }
        })
    }

    /// What a function of OCaml would raise for an argument like the one that could not be converted:
    /// `Invalid_argument`, or `Out_of_memory`.
    #[cold]
    pub fn of_conversion(rt: &mut Runtime, error: ConvertError) -> Exception {
        if matches!(error, ConvertError::Alloc(_) | ConvertError::Root(_)) {
            return Exception { root: None };
        }
        let text = alloc::format!("{error}");
        let exn = rt.try_build::<Exn, AllocError>(string_words(text.len()) + 3, |n| {
            let text = n.try_string(text)?;
            // SAFETY: an exception with one argument is a block of its constructor, which is static, and that.
            n.filled(0, [unsafe { glue::obx_builtin(glue::INVALID_ARGUMENT) }, text.raw()])
        });
        match exn {
            Ok(exn) => Exception { root: exn.erase().try_root().ok() },
            Err(_) => Exception { root: None },
        }
    }

    /// The exception as a value, the same that was raised. `None` when memory was too short to keep it.
    pub fn value<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Exn>> {
        self.parts(rt).map(|(exn, _)| exn)
    }

    /// The root that keeps the exception, which leaves its backtrace behind.
    pub fn into_root(self, rt: &Runtime) -> Option<Root<Exn>> {
        let (exn, trace) = self.parts(rt)?;
        match trace {
            Some(_) => Root::try_new(rt, exn).ok(),
            // SAFETY: TRACED: the root holds the exception itself.
            None => self.root.map(|root| unsafe { root.into_typed() }),
        }
    }

    /// The exception with the capability, to be returned as a value.
    pub fn fresh<'a>(&self, rt: &'a mut Runtime) -> Option<Fresh<'a, Exn>> {
        let raw = self.value(rt)?.raw();
        // SAFETY: it was read from the root just now.
        Some(unsafe { Fresh::new(rt, raw) })
    }

    /// The name of its constructor, such as `Not_found` or `Module.Name`, as OCaml prints it.
    pub fn name<'r>(&self, rt: &'r Runtime) -> Option<&'r [u8]> {
        let name = constructor(self.value(rt)?)?.field(0).ok()?;
        // SAFETY: the first field of a constructor is its name.
        Some(unsafe { name.cast::<crate::Str>() }.as_bytes())
    }

    /// Whether its constructor has this name. Exceptions of one name may be different ones:
    /// [`matches`](Exception::matches) tells them apart.
    pub fn is(&self, rt: &Runtime, name: &str) -> bool {
        self.name(rt) == Some(name.as_bytes())
    }

    /// What OCaml prints for an uncaught exception without a printer of its own: the constructor, and arguments that
    /// are integers or strings.
    pub fn text(&self, rt: &Runtime) -> String {
        let (Some(exn), Some(name)) = (self.value(rt), self.name(rt)) else { return "Out_of_memory".into() };
        let mut text = String::from_utf8_lossy(name).into_owned();
        let Kind::Block { tag: 0, len } = exn.erase().kind() else { return text };
        // These have one argument, a tuple, and are printed as if they had several.
        let spread = matches!(name, b"Match_failure" | b"Assert_failure" | b"Undefined_recursive_module");
        let whole = (exn.erase(), 1, len);
        let (block, first, len) = match exn.erase().field(1).map(|argument| (argument, argument.kind())) {
            Ok((argument, Kind::Block { tag: 0, len })) if spread => (argument, 0, len),
            _ => whole,
        };
        for i in first..len {
            text.push_str(if i == first { "(" } else { ", " });
            match block.field(i).map(|argument| (argument, argument.kind())) {
                Ok((_, Kind::Int(n))) => text.push_str(&alloc::format!("{n}")),
                Ok((argument, Kind::String { .. })) => {
                    text.push_str(&alloc::format!("{:?}", String::from_utf8_lossy(&argument.copy_bytes())))
                }
                _ => text.push('_'),
            }
        }
        text.push(')');
        text
    }
}

/// The constructor of an exception.
pub(crate) fn constructor(exn: Value<'_, Exn>) -> Option<Value<'_, Any>> {
    // A constant exception is its constructor; another one is a block that starts with it.
    match exn.erase().kind() {
        Kind::Object { .. } => Some(exn.erase()),
        _ => exn.erase().field(0).ok(),
    }
}

/// As [`text`](Exception::text). It runs no OCaml code, since it may be called where somebody reads the heap; without
/// the lock it takes it.
impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function needs nothing.
        let text = if unsafe { glue::obx_lock_held() } {
            // SAFETY: the lock is held. Whoever has the Runtime is not here, and is not disturbed by reading the heap:
            // nothing is collected, and nothing that borrows from this Runtime survives the call (LOCK, for reading).
            unsafe { crate::entry::with_lock_held(|rt| self.text(rt)) }
        } else {
            crate::attach::with_lock(|rt| self.text(rt)).ok()
        };
        let text = text.unwrap_or_else(|| "OCaml exception".into());
        f.write_str(&text)
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exception({self})")
    }
}

impl core::error::Error for Exception {}

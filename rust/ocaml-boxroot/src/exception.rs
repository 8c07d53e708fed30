// SPDX-License-Identifier: MIT
use crate::{glue, string_words, AllocError, Any, ConvertError, Exn, Fresh, Kind, Root, Runtime, Value};
use alloc::boxed::Box;
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
/// *Its text*: [`printed`](Exception::printed), by `Printexc`, with its printers; [`text`](Exception::text) and
/// `Display`, which run no OCaml code. `Display` needs no lock.
///
/// *Where it was raised*: [`backtrace`](Exception::backtrace), [`backtrace_slots`](Exception::backtrace_slots). Raised
/// again by Rust, an exception goes on with its backtrace in native code (with OCaml 5: on x86-64 Linux only). In
/// bytecode, and with OCaml 5 elsewhere, OCaml begins a new one, with the call of the Rust function.
// `None` when memory was too short. A box, so that results of calls stay small.
pub struct Exception {
    kept: Option<Box<Kept>>,
}

// TRACED: the root holds an exception, or a block with that tag, which no exception has: the exception, and what OCaml
// calls a raw backtrace.
struct Kept {
    root: Root<Any>,
    /// For who has no lock.
    shown: String,
}

/// How many bytes of its text an exception carries with it, about. Who makes one pays for it, so there is a limit.
const SHOWN: usize = 4000;

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
    Exception::keep(rt, kept)
}

impl Exception {
    /// TRACED.
    fn keep(rt: &Runtime, kept: Value<'_, Any>) -> Exception {
        let Ok(root) = Root::try_new(rt, kept) else { return Exception { kept: None } };
        let mut exception = Exception { kept: Some(Box::new(Kept { root, shown: String::new() })) };
        let shown = exception.describe(rt, SHOWN);
        if let Some(kept) = &mut exception.kept {
            kept.shown = shown;
        }
        exception
    }

    /// The exception as a Rust error. It has no backtrace.
    #[cold]
    pub fn new(rt: &Runtime, exn: Value<'_, Exn>) -> Exception {
        Exception::keep(rt, exn.erase())
    }

    /// The exception with its backtrace, to be raised.
    pub(crate) fn kept<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Any>> {
        self.kept.as_ref().map(|kept| kept.root.get(rt))
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
            return Exception { kept: None };
        }
        let text = alloc::format!("{error}");
        let exn = rt.try_build::<Exn, AllocError>(string_words(text.len()) + 3, |n| {
            let text = n.try_string(text)?;
            // SAFETY: an exception with one argument is a block of its constructor, which is static, and that.
            n.filled(0, [unsafe { glue::obx_builtin(glue::INVALID_ARGUMENT) }, text.raw()])
        });
        match exn {
            Ok(exn) => Exception::new(exn.rt(), exn.value()),
            Err(_) => Exception { kept: None },
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
            None => self.kept.map(|kept| unsafe { kept.root.into_typed() }),
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
        self.describe(rt, usize::MAX)
    }

    /// With so many bytes of each string, and of all, about.
    fn describe(&self, rt: &Runtime, most: usize) -> String {
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
            if text.len() > most {
                text.push('…');
                break;
            }
            text.push_str(if i == first { "(" } else { ", " });
            match block.field(i).map(|argument| (argument, argument.kind())) {
                Ok((_, Kind::Int(n))) => text.push_str(&alloc::format!("{n}")),
                Ok((argument, Kind::String { len })) => {
                    let mut bytes = argument.copy_bytes_up_to(most);
                    let cut = len > most;
                    if cut {
                        // Not in the middle of a character.
                        let whole = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(most);
                        bytes.truncate(whole);
                    }
                    text.push_str(&alloc::format!("{:?}", String::from_utf8_lossy(&bytes)));
                    if cut {
                        text.push('…');
                    }
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

/// As [`text`](Exception::text), of the moment when Rust got the exception, and cut after some 4000 bytes. It runs no
/// OCaml code, reads nothing of the heap, and waits for nobody, so it may be called anywhere: with the lock or without
/// it, while another lock is held (as `println!` holds one), in a finaliser, after OCaml's end.
impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kept.as_ref().map_or("Out_of_memory", |kept| &kept.shown))
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exception({self})")
    }
}

impl core::error::Error for Exception {}

// SPDX-License-Identifier: MIT
use crate::{glue, string_words, AllocError, ConvertError, Exn, Fresh, Kind, Root, Runtime, Value};
use alloc::string::String;
use core::fmt;

/// An OCaml exception. It owns a root, so that `?` borrows nothing: a borrowed one would not pass the borrow checker in
/// front of another call. `None` inside when memory was too short for the root.
pub struct Exception {
    root: Option<Root<Exn>>,
}

/// A result of the runtime that may be an encoded exception.
#[inline]
pub(crate) fn check(rt: &Runtime, result: isize) -> Result<isize, Exception> {
    if result & 3 == 2 {
        // SAFETY: the exception was raised just now, and is valid until the next thing that needs &mut Runtime.
        Err(Exception::new(rt, unsafe { Value::from_raw(result & !3) }))
    } else {
        Ok(result)
    }
}

impl Exception {
    /// The exception as a Rust error.
    #[cold]
    pub fn new(rt: &Runtime, exn: Value<'_, Exn>) -> Exception {
        Exception { root: Root::try_new(rt, exn).ok() }
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
            Ok(exn) => Exception { root: exn.try_root().ok() },
            Err(_) => Exception { root: None },
        }
    }

    /// The exception as a value, the same that was raised. `None` when memory was too short to keep it.
    pub fn value<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Exn>> {
        self.root.as_ref().map(|root| root.get(rt))
    }

    /// The root that keeps the exception.
    pub fn into_root(self) -> Option<Root<Exn>> {
        self.root
    }

    /// The exception with the capability, to be returned as a value.
    pub fn fresh<'a>(&self, rt: &'a mut Runtime) -> Option<Fresh<'a, Exn>> {
        let raw = self.value(rt)?.raw();
        // SAFETY: it was read from the root just now.
        Some(unsafe { Fresh::new(rt, raw) })
    }

    /// The name of its constructor, such as `Not_found` or `Module.Name`, as OCaml prints it.
    pub fn name<'r>(&self, rt: &'r Runtime) -> Option<&'r [u8]> {
        let exn = self.value(rt)?.erase();
        // A constant exception is its constructor; another one is a block that starts with it.
        let constructor = match exn.kind() {
            Kind::Object { .. } => exn,
            _ => exn.field(0).ok()?,
        };
        // SAFETY: the first field of a constructor is its name.
        constructor.field(0).ok().map(|name| unsafe { name.cast::<crate::Str>() }.as_bytes())
    }

    /// Whether its constructor has this name.
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

// SPDX-License-Identifier: MIT
//! What OCaml's `Printexc` tells of an exception: the module `Ocaml_boxroot` registers its functions.
use crate::{Any, Exception, FromOCaml, Fun, Runtime};
use alloc::string::String;
use alloc::vec::Vec;

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
    /// The function, where the compiler noted it.
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
        // SAFETY: Ocaml_boxroot registers Printexc.to_string, of type `exn -> string`.
        let text: Option<Vec<u8>> = exn(rt).and_then(|exn| unsafe { ask(rt, "ocaml_boxroot.print", exn) });
        match text {
            Some(text) => String::from_utf8_lossy(&text).into_owned(),
            None => self.text(rt),
        }
    }

    /// The backtrace as `Printexc` prints it. `None` if there is none: OCaml did not record it, or the exception was
    /// not raised but made; and in a program without the module `Ocaml_boxroot`.
    pub fn backtrace(&self, rt: &mut Runtime) -> Option<String> {
        let trace = self.parts(rt)?.1?.raw();
        // SAFETY: Ocaml_boxroot registers Printexc.raw_backtrace_to_string; TRACED.
        let text: Vec<u8> = unsafe { ask(rt, "ocaml_boxroot.backtrace", trace) }?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The places in the backtrace, where it was raised first. None as for [`backtrace`](Exception::backtrace), or if
    /// the OCaml code was compiled without `-g`.
    pub fn backtrace_slots(&self, rt: &mut Runtime) -> Vec<BacktraceSlot> {
        let trace = self.parts(rt).and_then(|(_, trace)| Some(trace?.raw()));
        type Slot = (Vec<u8>, usize, usize, usize, Option<Vec<u8>>, bool, bool);
        let slots: Option<crate::List<Slot>> =
            // SAFETY: Ocaml_boxroot registers a function of that type, which takes what OCaml calls a raw backtrace;
            // TRACED.
            trace.and_then(|trace| unsafe { ask(rt, "ocaml_boxroot.backtrace_slots", trace) });
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

/// The result of the function with this name. `None` if there is none, or it raises.
///
/// # Safety
/// The function takes an argument of the type of `argument`, a valid value, and returns one of the type of `R`.
unsafe fn ask<R: for<'x> FromOCaml<'x>>(rt: &mut Runtime, function: &str, argument: isize) -> Option<R> {
    let function = rt.named(function)?.raw();
    rt.with_places([function, argument], |rt, [function, argument]| {
        // SAFETY: by the caller.
        let function = unsafe { function.cast::<Fun<(Any,), Any>>() };
        let result = function.call(rt, (argument,)).ok()?;
        // SAFETY: by the caller.
        R::from_ocaml(result.rt(), unsafe { result.value().cast() }).ok()
    })
}

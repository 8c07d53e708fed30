// SPDX-License-Identifier: MIT
//! OCaml exceptions as Rust errors: their value, their text.
pub(crate) mod types;

use crate::{
    block_words, glue, string_words, AllocError, Any, ConvertError, Element, Exn, FromOCaml, Nursery, Root, Runtime,
    ShapeError, Str, ToOCaml, Typed, Value, ValueGuard, ValueKind,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_int;
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
pub struct Exception {
    kept: Source,
}

/// The exception as its own source. Boxes of other crates, and errors that stand for others (`anyhow`, `transparent`),
/// hide the error in them, and show its source: there the exception is found again.
// `None` when memory was too short. A box, so that results of calls stay small.
pub(crate) struct Source(Option<Box<Kept>>);

// TRACED: the root holds an exception, or a block with that tag, which no exception has: the exception, and what OCaml
// calls a raw backtrace.
enum Kept {
    Raised {
        root: Root<Any>,
        /// What `Display` prints, which reads nothing of the heap.
        summary: Summary,
    },
    /// `Invalid_argument`, which is made when it is asked for: until then nobody needs the lock.
    Refused(ConvertError),
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
    Exception::keep(rt, kept)
}

impl Exception {
    /// Makes a root for `kept`, which TRACED describes.
    fn keep(rt: &Runtime, kept: Value<'_, Any>) -> Exception {
        let Ok(root) = Root::try_new(rt, kept) else { return Exception { kept: Source(None) } };
        let mut kept = Box::new(Kept::Raised { root, summary: Summary::new() });
        if let Kept::Raised { root, summary } = &mut *kept {
            visit_parts(parts_of(root.get(rt)).0, summary);
        }
        Exception { kept: Source(Some(kept)) }
    }

    /// The exception as a Rust error. It has no backtrace.
    #[cold]
    pub fn new(rt: &Runtime, exn: Value<'_, Exn>) -> Exception {
        Exception::keep(rt, exn.into_any())
    }

    /// The exception with its backtrace, to be raised.
    pub(crate) fn kept<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Any>> {
        self.kept.kept(rt)
    }

    /// The exception and its backtrace.
    pub(crate) fn parts<'r>(&self, rt: &'r Runtime) -> Option<(Value<'r, Exn>, Option<Value<'r, Any>>)> {
        self.kept(rt).map(parts_of)
    }

    /// The exception as a value, the same that was raised; one that stands for a [`ConvertError`] is made anew each
    /// time. `None` when memory was too short to keep it.
    pub fn value<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Exn>> {
        self.parts(rt).map(|(exn, _)| exn)
    }

    /// The root that keeps the exception, which leaves its backtrace behind.
    pub fn into_root(self, rt: &Runtime) -> Option<Root<Exn>> {
        let (exn, trace) = self.parts(rt)?;
        match (trace, *self.kept.0?) {
            // SAFETY: TRACED: the root holds the exception itself.
            (None, Kept::Raised { root, .. }) => Some(unsafe { root.into_typed() }),
            _ => Root::try_new(rt, exn).ok(),
        }
    }

    /// The exception with the capability, to be returned as a value.
    pub fn to_guard<'a>(&self, rt: &'a mut Runtime) -> Option<ValueGuard<'a, Exn>> {
        let raw = self.value(rt)?.raw();
        // SAFETY: it was read from the root just now.
        Some(unsafe { ValueGuard::from_raw(rt, raw) })
    }

    /// The name of its constructor, such as `Not_found` or `Module.Name`, as OCaml prints it.
    pub fn name<'r>(&self, rt: &'r Runtime) -> Option<&'r [u8]> {
        let name = constructor(self.value(rt)?)?.field(0).ok()?;
        // SAFETY: the first field of a constructor is its name.
        Some(unsafe { name.cast::<Str>() }.as_bytes())
    }

    /// Whether its constructor has this name. Exceptions of one name may be different ones:
    /// [`matches`](Exception::matches) tells them apart.
    pub fn is(&self, rt: &Runtime, name: &str) -> bool {
        self.name(rt) == Some(name.as_bytes())
    }

    /// What OCaml prints for an uncaught exception without a printer of its own: the constructor, and arguments that
    /// are integers or strings.
    pub fn text(&self, rt: &Runtime) -> String {
        let mut text = Text(String::new(), false);
        match self.value(rt) {
            Some(exn) => visit_parts(exn, &mut text),
            None => text.name(b"Out_of_memory"),
        }
        text.end();
        text.0
    }
}

// --- its text

/// The exception, and its backtrace, of what a root holds.
fn parts_of(kept: Value<'_, Any>) -> (Value<'_, Exn>, Option<Value<'_, Any>>) {
    // SAFETY: TRACED.
    unsafe {
        match kept.kind() {
            ValueKind::Block { tag: TRACED, .. } => (kept.part(0), Some(kept.part(1))),
            _ => (kept.cast(), None),
        }
    }
}

/// Passes the parts of an exception's text, as OCaml prints it, to `to`.
fn visit_parts(exn: Value<'_, Exn>, to: &mut impl Parts) {
    let Some(name) = constructor(exn).and_then(|constructor| constructor.field(0).ok()) else { return };
    // SAFETY: the first field of a constructor is its name.
    let name = unsafe { name.cast::<Str>() }.as_bytes();
    to.name(name);
    let ValueKind::Block { tag: 0, len } = exn.into_any().kind() else { return };
    // These have one argument, a tuple, and are printed as if they had several.
    let spread = matches!(name, b"Match_failure" | b"Assert_failure" | b"Undefined_recursive_module");
    let whole = (exn.into_any(), 1, len);
    let (block, first, len) = match exn.into_any().field(1).map(|argument| (argument, argument.kind())) {
        Ok((argument, ValueKind::Block { tag: 0, len })) if spread => (argument, 0, len),
        _ => whole,
    };
    for i in first..len {
        match block.field(i).map(|argument| (argument, argument.kind())) {
            Ok((_, ValueKind::Int(n))) => to.int(n),
            Ok((argument, ValueKind::String { len })) => to.string(argument, len),
            _ => to.other(),
        }
        if i + 1 < len && to.is_full() {
            return;
        }
    }
}

/// Takes the parts of an exception's text, from the first to the last.
trait Parts {
    fn name(&mut self, name: &[u8]);
    fn int(&mut self, n: isize);
    /// A string, or bytes, of so many bytes.
    fn string(&mut self, v: Value<'_, Any>, len: usize);
    fn other(&mut self);
    /// Whether there is no room for more parts. It is called only where more follow.
    fn is_full(&mut self) -> bool {
        false
    }
}

/// A text, and whether an argument has been written.
struct Text(String, bool);

impl Text {
    fn next(&mut self) -> &mut String {
        self.0.push_str(if self.1 { ", " } else { "(" });
        self.1 = true;
        &mut self.0
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let text = alloc::format!("{:?}", String::from_utf8_lossy(bytes));
        self.next().push_str(&text);
    }

    fn end(&mut self) {
        if self.1 {
            self.0.push(')');
        }
    }
}

impl Parts for Text {
    fn name(&mut self, name: &[u8]) {
        self.0.push_str(&String::from_utf8_lossy(name));
    }

    fn int(&mut self, n: isize) {
        let text = alloc::format!("{n}");
        self.next().push_str(&text);
    }

    fn string(&mut self, v: Value<'_, Any>, _: usize) {
        self.bytes(&v.copy_bytes());
    }

    fn other(&mut self) {
        self.next().push('_');
    }
}

/// About how many bytes of text an exception carries with it. Making an exception costs time and memory for them, so
/// there is a limit.
const SUMMARY_LIMIT: usize = 4000;
/// As many bytes lie beside the root; more take an allocation of their own.
const SUMMARY_INSIDE: usize = 72;

/// The parts of an exception's text as bytes, so that making them costs little more than the copying. A part is one of
/// the letters below; then, for `NAME`, `STRING` and `CUT`, the number of bytes and these, for `INT` the number.
struct Summary {
    len: usize,
    inside: [u8; SUMMARY_INSIDE],
    /// All bytes, where they do not fit inside.
    more: Vec<u8>,
}
const NAME: u8 = b'n';
const INT: u8 = b'i';
const STRING: u8 = b's';
/// The beginning of a longer string.
const CUT: u8 = b'c';
const OTHER: u8 = b'_';
/// Arguments that are left out.
const REST: u8 = b'.';

impl Summary {
    fn new() -> Summary {
        Summary { len: 0, inside: [0; SUMMARY_INSIDE], more: Vec::new() }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end <= SUMMARY_INSIDE {
            self.inside[self.len..end].copy_from_slice(bytes);
        } else {
            if self.more.is_empty() {
                self.more.extend_from_slice(&self.inside[..self.len]);
            }
            self.more.extend_from_slice(bytes);
        }
        self.len = end;
    }

    fn part(&mut self, letter: u8, number: usize) {
        self.push(&[letter]);
        self.push(&number.to_ne_bytes());
    }

    fn text(&self) -> String {
        let mut rest = if self.len <= SUMMARY_INSIDE { &self.inside[..self.len] } else { &self.more[..] };
        let mut text = Text(String::new(), false);
        while let Some((letter, behind)) = rest.split_first() {
            rest = behind;
            match *letter {
                OTHER => {
                    text.other();
                    continue;
                }
                REST => {
                    text.0.push('…');
                    continue;
                }
                _ => {}
            }
            let Some((number, behind)) = rest.split_first_chunk() else { break };
            let number = usize::from_ne_bytes(*number);
            if *letter == INT {
                text.int(number as isize);
                rest = behind;
                continue;
            }
            let (bytes, behind) = behind.split_at(number.min(behind.len()));
            rest = behind;
            match *letter {
                NAME => text.name(bytes),
                STRING => text.bytes(bytes),
                _ => {
                    // Not in the middle of a character.
                    let whole = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
                    text.bytes(&bytes[..whole]);
                    text.0.push('…');
                }
            }
        }
        text.end();
        text.0
    }
}

impl Parts for Summary {
    fn name(&mut self, name: &[u8]) {
        self.part(NAME, name.len().min(SUMMARY_LIMIT));
        self.push(&name[..name.len().min(SUMMARY_LIMIT)]);
    }

    fn int(&mut self, n: isize) {
        self.part(INT, n as usize);
    }

    fn string(&mut self, v: Value<'_, Any>, len: usize) {
        let most = len.min(SUMMARY_LIMIT);
        self.part(if len > most { CUT } else { STRING }, most);
        v.each_word_of_bytes(most, |bytes| self.push(bytes));
    }

    fn other(&mut self) {
        self.push(&[OTHER]);
    }

    fn is_full(&mut self) -> bool {
        let full = self.len > SUMMARY_LIMIT;
        if full {
            self.push(&[REST]);
        }
        full
    }
}

/// The constructor of an exception.
pub(crate) fn constructor(exn: Value<'_, Exn>) -> Option<Value<'_, Any>> {
    // A constant exception is its constructor; another one is a block that starts with it.
    match exn.into_any().kind() {
        ValueKind::Object { .. } => Some(exn.into_any()),
        _ => exn.into_any().field(0).ok(),
    }
}

/// As [`text`](Exception::text), of the moment when Rust got the exception, and cut after some 4000 bytes. It runs no
/// OCaml code, reads nothing of the heap, and waits for nobody, so it may be called anywhere: with the lock or without
/// it, while another lock is held (as `println!` holds one), in a finaliser, after OCaml's end.
impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kept.0.as_deref() {
            Some(Kept::Raised { summary, .. }) => f.write_str(&summary.text()),
            Some(Kept::Refused(error)) => write!(f, "Invalid_argument({:?})", alloc::format!("{error}")),
            None => f.write_str("Out_of_memory"),
        }
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exception({self})")
    }
}

impl core::error::Error for Exception {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.kept)
    }
}

impl Source {
    /// The exception with its backtrace, to be raised.
    pub(crate) fn kept<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Any>> {
        match self.0.as_deref()? {
            Kept::Raised { root, .. } => Some(root.get(rt)),
            Kept::Refused(error) => refused(rt, error),
        }
    }
}

/// `Invalid_argument`, with the error's text. Nothing is collected. `None` when memory is short.
fn refused<'r>(rt: &'r Runtime, error: &ConvertError) -> Option<Value<'r, Any>> {
    let nursery = Nursery::in_major_heap(rt);
    let text = nursery.try_string(alloc::format!("{error}")).ok()?;
    // SAFETY: LOCK. An exception with one argument is a block of its constructor, which is static, and that.
    let constructor = unsafe { glue::obx_builtin(glue::INVALID_ARGUMENT) };
    let exn: Value<'_, Any> = nursery.filled(0, [constructor, text.raw()]).ok()?;
    // SAFETY: LIVE: nothing is collected while `rt` is borrowed.
    Some(unsafe { Value::from_raw(exn.raw()) })
}

/// What a function of OCaml raises for an argument like the one that could not be converted: `Invalid_argument`, or
/// `Out_of_memory`.
impl From<ConvertError> for Exception {
    #[cold]
    fn from(error: ConvertError) -> Exception {
        use ConvertError::{Alloc, Root, Shape};
        let short = matches!(error, Alloc(_) | Root(_) | Shape(ShapeError::Alloc(_)));
        Exception { kept: Source((!short).then(|| Box::new(Kept::Refused(error)))) }
    }
}
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exception of OCaml")
    }
}
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl core::error::Error for Source {}

// --- exceptions of the runtime

/// An exception of the runtime with a string: its word, valid until the next thing that may run the collector. When
/// memory is short, it is that of `Out_of_memory`.
pub(crate) fn builtin_with(rt: &mut Runtime, which: c_int, text: &str) -> isize {
    let exn = rt.try_build::<Any, AllocError>(block_words(2) + string_words(text.len()), |n| {
        let text = n.try_string(text)?;
        let mut block = n.block_builder(0, 2).map_err(|_| AllocError { words: 2 })?;
        // SAFETY: constructors of the runtime's exceptions are static.
        block.set(0, unsafe { Value::<Any>::from_raw(glue::obx_builtin(which)) });
        block.set(1, text);
        Ok(block.finish())
    });
    exn.map_or_else(|_| out_of_memory(), |exn| exn.value().raw())
}

/// The exception `Out_of_memory`, which is static.
pub(crate) fn out_of_memory() -> isize {
    // SAFETY: the function needs nothing but the lock, which whoever makes an exception holds.
    unsafe { glue::obx_builtin(glue::OUT_OF_MEMORY) }
}

/// `Failure text`, for Rust.
pub(crate) fn failure(rt: &mut Runtime, text: &str) -> Exception {
    let raw = builtin_with(rt, glue::FAILURE, text);
    // SAFETY: valid: nothing was collected since it was made.
    Exception::new(rt, unsafe { Value::from_raw(raw) })
}

/// `Invalid_argument text`, for Rust.
pub(crate) fn invalid_argument(rt: &mut Runtime, text: &str) -> Exception {
    let raw = builtin_with(rt, glue::INVALID_ARGUMENT, text);
    // SAFETY: valid: nothing was collected since it was made.
    Exception::new(rt, unsafe { Value::from_raw(raw) })
}

// --- conversions

impl Typed for Exception {
    type Type = Exn;
}
impl Element for Exception {}
/// An error if memory was too short to keep the value.
impl ToOCaml for Exception {
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Exn>, ConvertError> {
        self.value(n).ok_or(AllocError { words: 1 }.into())
    }
}
impl<'a> FromOCaml<'a> for Exception {
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Exn>) -> Result<Self, ConvertError> {
        Ok(Exception::new(rt, v))
    }
}

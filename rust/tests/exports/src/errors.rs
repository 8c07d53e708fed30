// SPDX-License-Identifier: MIT
//! Errors of Rust that are exceptions of OCaml, and exceptions of OCaml that Rust knows.
use ocaml_boxroot::exceptions::{self, Failure, NotFound};
use ocaml_boxroot::*;
use std::error::Error;
use std::fmt;

/// The text could not be read.
#[derive(Debug, Clone, PartialEq, OCamlException)]
#[ocaml(rename = "Parse_error")]
pub struct ParseError(pub String, pub i64);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.1, self.0)
    }
}
impl Error for ParseError {}

/// Each variant is an exception.
#[derive(Debug, Clone, PartialEq, OCamlException)]
pub enum Io {
    /// No such file.
    Missing {
        /// Its path.
        path: String,
        /// Boxed, also in a record of floats.
        r#type: f64,
    },
    Full,
    One((isize, bool)),
    Speed(f64),
    #[ocaml(rename = "Closed_by")]
    ClosedBy(Option<String>, Unused),
    Rough(Vec<f64>, i64),
}

/// A type that only an exception needs.
#[derive(Debug, Clone, Copy, PartialEq, OCamlType, ToOCaml, FromOCaml)]
pub enum Unused {
    Somebody,
}

/// Declared by host.ml.
#[derive(Debug, Clone, PartialEq, OCamlException)]
#[ocaml(module = "Host")]
pub enum HostError {
    Closed,
    Refused(String, f64),
    Pair((isize, bool)),
    Located { file: String, line: isize },
}

/// `Sys.Break` and others of the standard library.
#[derive(Debug, Clone, PartialEq, OCamlException)]
#[ocaml(module = "Sys")]
pub struct Break;

macro_rules! displayed {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self:?}")
            }
        }
        impl Error for $name {}
    )*};
}
displayed! { Io, HostError, Break }

#[export]
pub fn parse_line(n: i64) -> Result<i64, ParseError> {
    match n {
        0 => Err(ParseError("empty".into(), 3)),
        n => Ok(n),
    }
}

/// Every exception, by its number.
#[export]
pub fn fail_with(how: isize) -> Result<(), Box<dyn Error + Send + Sync>> {
    Err(match how {
        0 => Box::new(ParseError("boxed".into(), 1)),
        1 => Box::new(Io::Missing { path: "/tmp".into(), r#type: 0.5 }),
        2 => Box::new(Io::Full),
        3 => Box::new(Io::One((3, true))),
        4 => Box::new(Io::Speed(1.5)),
        5 => Box::new(Io::ClosedBy(Some("me".into()), Unused::Somebody)),
        6 => Box::new(HostError::Closed),
        7 => Box::new(HostError::Refused("no".into(), 2.5)),
        8 => Box::new(HostError::Pair((1, false))),
        9 => Box::new(HostError::Located { file: "f".into(), line: 7 }),
        10 => Box::new(Break),
        11 => Box::new(NotFound),
        12 => Box::new(Failure("built in".into())),
        13 => Box::new(ParseError("too large".into(), i64::MAX)),
        _ => return Ok(()),
    })
}

/// What `f` raises, as Rust sees it.
#[export]
pub fn classify(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Unit>>) -> String {
    let Err(error) = f.call(rt, ((),)).map(drop) else { return "nothing".into() };
    fn shown<E: OCamlException>(rt: &Runtime, error: &Exception) -> Option<String> {
        let known = error.to_rust::<E>(rt)?;
        assert!(error.matches::<E>(rt) && !error.matches::<exceptions::OutOfMemory>(rt));
        Some(known.map_or_else(|error| format!("an argument: {error}"), |known| format!("{known:?}")))
    }
    let known = shown::<ParseError>(rt, &error)
        .or_else(|| shown::<Io>(rt, &error))
        .or_else(|| shown::<HostError>(rt, &error))
        .or_else(|| shown::<Break>(rt, &error));
    known.unwrap_or_else(|| format!("unknown {}", error.printed(rt)))
}

/// The exception that `how` is, as a value.
#[export]
pub fn exception_of(rt: &mut Runtime, how: isize) -> Result<ValueGuard<'_, Exn>, Exception> {
    let exception = match how {
        0 => Exception::from_error(rt, &ParseError("made".into(), 2)),
        1 => Exception::from_error(rt, &Io::Full),
        _ => Exception::from_error(rt, &HostError::Located { file: "g".into(), line: 8 }),
    };
    exception.to_guard(rt).ok_or_else(|| unreachable!("memory is there"))
}

/// Calls `f`, does much else when it raises, and raises the same.
#[export]
pub fn pass_through<A>(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), A>>) -> Result<Root<A>, Exception> {
    match f.call(rt, ((),)) {
        Ok(value) => Ok(value.root()),
        Err(error) => {
            crate::host::fail(rt, "another").unwrap_err();
            rt.full_major().unwrap();
            Err(error)
        }
    }
}

/// An error with another inside: as its source, or (`hidden`) standing for it, so that its source is that of the other.
#[derive(Debug)]
struct Around {
    inner: Box<dyn Error + Send + Sync>,
    hidden: bool,
}
impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("around")
    }
}
impl Error for Around {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if self.hidden {
            self.inner.source()
        } else {
            Some(&*self.inner)
        }
    }
}

/// What `f` raises, or else an error that is an exception, inside `depth` other errors.
#[export]
pub fn wrapped(
    rt: &mut Runtime,
    f: ValueRef<'_, Fun<(Unit,), Unit>>,
    depth: usize,
    hidden: bool,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut error: Box<dyn Error + Send + Sync> = match f.call(rt, ((),)).map(drop) {
        Ok(()) => Box::new(ParseError("inside".into(), 4)),
        Err(error) => Box::new(error),
    };
    for _ in 0..depth {
        error = Box::new(Around { inner: error, hidden });
    }
    Err(error)
}

/// The backtrace of what `f` raises.
#[export]
pub fn backtrace(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Unit>>) -> (Option<String>, Vec<usize>) {
    match f.call(rt, ((),)).map(drop) {
        Ok(()) => (None, Vec::new()),
        Err(error) => (error.backtrace(rt), error.backtrace_slots(rt).iter().map(|slot| slot.line).collect()),
    }
}

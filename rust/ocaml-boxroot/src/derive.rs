// SPDX-License-Identifier: MIT
//! What derived implementations call.
use crate::convert::floats;
use crate::kind::DOUBLE_ARRAY;
use crate::{int, Any, ConvertError, FromOCaml, Nursery, Runtime, ShapeError, ToOCaml, Value};
pub use alloc::boxed::Box;
pub use alloc::string::String;

/// A block of these fields.
///
/// # Safety
/// The fields are values of this nursery; together they have the type that `T` describes.
#[inline]
pub unsafe fn block<'n, T, const N: usize>(
    n: &'n Nursery,
    tag: u8,
    fields: [isize; N],
) -> Result<Value<'n, T>, ConvertError> {
    Ok(n.filled(tag, fields)?)
}

/// A constant constructor.
///
/// # Safety
/// `T` has that constructor.
#[inline]
pub unsafe fn constant<T>(number: i32) -> Value<'static, T> {
    // SAFETY: an immediate, of that type by the caller.
    unsafe { int(number).cast() }
}

/// A flat record.
///
/// # Safety
/// `T` describes a flat record of so many floats.
#[inline]
pub unsafe fn floats<'n, T, const N: usize>(n: &'n Nursery, floats: [f64; N]) -> Result<Value<'n, T>, ConvertError> {
    // SAFETY: by the caller.
    Ok(unsafe { n.floats(&floats)?.cast() })
}

/// The number that `r` is in OCaml, for a flat record.
#[inline]
pub fn float<R: ToOCaml>(r: &R, n: &Nursery) -> Result<f64, ConvertError> {
    match r.to_float() {
        Some(x) => Ok(x.0),
        None => floats::boxed(r.to_ocaml(n)?),
    }
}

/// Tag and size; none for an immediate.
#[inline]
pub fn block_of<T>(v: Value<'_, T>) -> Option<(u8, usize)> {
    v.header()
}

/// The number of an immediate; of a block, any number.
#[inline]
pub fn number<T>(v: Value<'_, T>) -> isize {
    v.raw() >> 1
}

/// Whether it is a flat block of so many floats.
#[inline]
pub fn is_flat<T>(v: Value<'_, T>, size: usize) -> bool {
    v.header() == Some((DOUBLE_ARRAY, size))
}

/// A field in Rust.
///
/// # Safety
/// The block has that field, of the type that belongs to `R`.
#[inline]
pub unsafe fn field<'a, T, R: FromOCaml<'a>>(rt: &'a Runtime, v: Value<'a, T>, i: usize) -> Result<R, ConvertError> {
    // SAFETY: by the caller.
    R::from_ocaml(rt, unsafe { v.part(i) })
}

/// A field.
///
/// # Safety
/// The block has that field, and it is scanned.
#[inline]
pub unsafe fn part<T>(v: Value<'_, T>, i: usize) -> Value<'_, Any> {
    // SAFETY: by the caller.
    unsafe { v.part(i) }
}

/// A float of a flat record.
///
/// # Safety
/// `is_flat`, with more floats than `i`.
#[inline]
pub unsafe fn float_field<T>(v: Value<'_, T>, i: usize) -> f64 {
    // SAFETY: by the caller.
    unsafe { v.float_at(i) }
}

/// The error for a value of another shape.
#[cold]
pub fn not(name: &'static str) -> ConvertError {
    ShapeError::Not(name).into()
}

/// A type applied to arguments.
pub fn apply(arguments: &[String], name: &str) -> String {
    match arguments {
        [] => name.into(),
        [one] => alloc::format!("{one} {name}"),
        several => alloc::format!("({}) {name}", several.join(", ")),
    }
}

/// A documentation comment behind a field or a constructor.
fn behind(doc: &str) -> String {
    match doc {
        "" => String::new(),
        doc => alloc::format!("  {}", comment(doc)),
    }
}

/// A documentation comment.
pub(crate) fn comment(doc: &str) -> String {
    // OCaml reads comments and strings inside comments.
    let text = doc.replace("(*", "( *").replace("*)", "* )").replace('"', "''");
    let mut parts = text.split('{');
    let mut text = String::from("(** ");
    text += parts.next().unwrap_or("");
    for part in parts {
        let quoted = part.trim_start_matches(|c: char| c.is_lowercase() || c == '_').starts_with('|');
        text += if quoted { "{ " } else { "{" };
        text += part;
    }
    text = text.replace('\n', "\n    ").replace("\n    \n", "\n\n");
    text + " *)"
}

/// The text of a record: mutable, name, type, comment of each field.
pub fn record(fields: &[(bool, &str, String, &str)]) -> String {
    let mut text = String::from("{\n");
    for (mutable, name, ty, doc) in fields {
        let mutable = if *mutable { "mutable " } else { "" };
        text += &alloc::format!("  {mutable}{name} : {ty};{}\n", behind(doc));
    }
    text + "}"
}

/// The text of an inline record.
pub fn inline(fields: &[(bool, &str, String, &str)]) -> String {
    record(fields).replace('\n', "\n    ")
}

/// The arguments of a constructor.
pub fn arguments(types: &[String]) -> String {
    types.join(" * ")
}

fn rows(rows: &[(&str, String, &str)]) -> String {
    let mut text = String::new();
    for (name, arguments, doc) in rows {
        let of = if arguments.is_empty() { "" } else { " of " };
        text += &alloc::format!("\n  | {name}{of}{arguments}{}", behind(doc));
    }
    text
}

/// The text of a type of constructors: name, arguments, comment of each.
pub fn constructors(constructors: &[(&str, String, &str)]) -> String {
    match constructors {
        [] => " = |".into(),
        several => alloc::format!(" ={}", rows(several)),
    }
}

/// The text of a type of polymorphic variants.
pub fn polymorphic(variants: &[(&str, String, &str)]) -> String {
    alloc::format!(" = [{}\n]", rows(variants))
}

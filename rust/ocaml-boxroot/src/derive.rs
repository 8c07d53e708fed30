// SPDX-License-Identifier: MIT
//! What derived implementations call.
use crate::convert::Flat;
use crate::data::number::boxed_float;
use crate::describe::comment;
pub use crate::describe::{apply, Describe};
use crate::value::{DOUBLE_ARRAY, FIRST_SPECIAL_TAG};
use crate::{
    block_words, int, Any, ConvertError, DefinitionSite, Definitions, FromOCaml, Nursery, Runtime, ShapeError, ToOCaml,
    Value,
};
pub use alloc::boxed::Box;
pub use alloc::string::String;
use alloc::vec::Vec;

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

/// The words of a block whose fields are values of so many words.
#[inline]
pub fn words(fields: &[usize]) -> usize {
    fields.iter().sum::<usize>() + block_words(fields.len())
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
        Some(x) => Ok(x.number()),
        None => boxed_float(r.to_ocaml(n)?),
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
/// `is_flat`, with more floats than `i`, of the type that `U` describes.
#[inline]
pub unsafe fn float_field<T, U>(v: Value<'_, T>, i: usize) -> Flat<U> {
    // SAFETY: by the caller.
    unsafe { Flat::new(v.float_at(i)) }
}

/// The error for a value of another shape.
#[cold]
pub fn not(name: &'static str) -> ConvertError {
    ShapeError::Not(name).into()
}

/// A documentation comment behind a field or a constructor.
fn behind(doc: &str) -> String {
    match doc {
        "" => String::new(),
        doc => alloc::format!("  {}", comment(doc)),
    }
}

/// The type variable number `n`.
pub fn variable(n: u8) -> String {
    crate::describe::variable(n.into())
}

/// How many constructors with arguments a type may have: other tags have a meaning of their own.
pub const CONSTRUCTORS: usize = FIRST_SPECIAL_TAG as usize;

/// A field: mutable, name, type, comment.
pub type Field = (bool, &'static str, Describe, &'static str);

/// A constructor: name, arguments, comment.
pub type Row = (&'static str, Arguments, &'static str);

/// The arguments of a constructor.
#[derive(Debug, Clone, Copy)]
pub enum Arguments {
    /// Without names.
    Tuple(&'static [Describe]),
    /// An inline record.
    Record(&'static [Field]),
}

/// What stands behind the name of a type.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// A record.
    Record(&'static [Field]),
    /// Constructors.
    Variants(&'static [Row]),
    /// Constructors of a polymorphic variant.
    Polymorphic(&'static [Row]),
}

/// Defines a type, with its comment and attributes, unless it is defined; the type applied to its parameters.
// A table, since code that makes strings takes the Rust compiler several times as long.
pub fn define(
    to: &mut Definitions,
    site: &'static DefinitionSite,
    name: &str,
    [doc, attributes]: [&str; 2],
    parameters: &[Describe],
    body: Body,
) -> String {
    to.define(site, name, parameters.len(), |definition, to| {
        definition.doc = doc.into();
        definition.attributes = match one_word(&body) {
            // OCaml wants to be told, where the type is one of a function of Rust's.
            true if attributes.is_empty() => "[@@boxed]".into(),
            _ => attributes.into(),
        };
        definition.body = match body {
            Body::Record(fields) => String::from(" = ") + &record(to, fields),
            Body::Variants([]) => " = |".into(),
            Body::Variants(list) => alloc::format!(" ={}", rows(to, list)),
            Body::Polymorphic(list) => alloc::format!(" = [{}\n]", rows(to, list)),
        };
    });
    let arguments: Vec<String> = parameters.iter().map(|describe| describe(to)).collect();
    apply(&arguments, name)
}

/// Whether the type could be unboxed: one constructor with one argument, or one field, which is not mutable.
fn one_word(body: &Body) -> bool {
    let one = |fields: &[Field]| matches!(fields, [(false, ..)]);
    match body {
        Body::Record(fields) => one(fields),
        Body::Variants([(_, Arguments::Record(fields), _)]) => one(fields),
        Body::Variants([(_, Arguments::Tuple(types), _)]) => types.len() == 1,
        _ => false,
    }
}

fn record(to: &mut Definitions, fields: &[Field]) -> String {
    let mut text = String::from("{\n");
    for (mutable, name, describe, doc) in fields {
        let mutable = if *mutable { "mutable " } else { "" };
        text += &alloc::format!("  {mutable}{name} : {};{}\n", describe(to), behind(doc));
    }
    text + "}"
}

fn rows(to: &mut Definitions, rows: &[Row]) -> String {
    let mut text = String::new();
    for (name, arguments, doc) in rows {
        let arguments = match arguments {
            Arguments::Record(fields) => record(to, fields).replace('\n', "\n    "),
            Arguments::Tuple(types) => types.iter().map(|describe| describe(to)).collect::<Vec<_>>().join(" * "),
        };
        let of = if arguments.is_empty() { "" } else { " of " };
        text += &alloc::format!("\n  | {name}{of}{arguments}{}", behind(doc));
    }
    text
}

/// Defines a type that is the type variable number `$n` in OCaml, for the block in which it stands: what is described
/// with it cannot name it, so no implementation is for it alone.
#[doc(hidden)]
#[macro_export]
macro_rules! __type_variables {
    ($($(#[$derive:meta])? $name:ident $n:literal)*) => {$(
        $(#[$derive])?
        #[allow(dead_code, non_camel_case_types)]
        enum $name {}
        // SAFETY: a variable is never known to be `float`. It has no values.
        unsafe impl $crate::OCamlType for $name {
            fn describe(_: &mut $crate::Definitions) -> $crate::TypeText {
                $crate::derive::variable($n)
            }
        }
        impl $crate::Typed for $name {
            type Type = Self;
        }
        impl $crate::Element for $name {}
    )*};
}

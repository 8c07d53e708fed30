// SPDX-License-Identifier: MIT
//! What the OCaml text says of an exported function.
use super::{Plain, PlainResult, ReadArg, WriteArg};
use crate::derive::Describe;
use crate::{Boxed, Definitions, OCamlAbstract, OCamlType, Typed};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// An exported function.
// EXPORTED: the C functions with these names take and return what the declaration says.
#[derive(Debug, Clone, Copy)]
pub struct Export {
    pub(super) name: &'static str,
    symbol: &'static str,
    bytecode: Option<&'static str>,
    noalloc: bool,
    pub(super) doc: &'static str,
    types: Types,
}

/// What tells the types of an exported function.
#[derive(Debug, Clone, Copy)]
pub enum Types {
    /// Those of the arguments and of the result, where no function is needed to find out whether that is a `Result`.
    Table(&'static [Describe], Describe),
    /// All.
    Function(fn(&mut Definitions) -> Signature),
}

/// The types of an exported function, with their attributes.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its result.
    pub result: String,
}

impl Export {
    /// `symbol` is the C function, `bytecode` that for bytecode if it is another one.
    ///
    /// # Safety
    /// EXPORTED.
    pub const unsafe fn new(
        name: &'static str,
        (symbol, bytecode): (&'static str, Option<&'static str>),
        noalloc: bool,
        doc: &'static str,
        types: Types,
    ) -> Export {
        Export { name, symbol, bytecode, noalloc, doc, types }
    }

    /// The declaration in OCaml: `external …`.
    pub fn declaration(&self, to: &mut Definitions) -> String {
        let signature = match self.types {
            Types::Table(arguments, result) => signature(to, arguments, result),
            Types::Function(describe) => describe(to),
        };
        let mut text = alloc::format!("external {} : ", self.name);
        if signature.arguments.is_empty() {
            text += "unit -> ";
        }
        for argument in &signature.arguments {
            text += argument;
            text += " -> ";
        }
        text += &signature.result;
        text += " =";
        if let Some(bytecode) = self.bytecode {
            text += &alloc::format!(" \"{bytecode}\"");
        }
        text += &alloc::format!(" \"{}\"", self.symbol);
        if self.noalloc {
            text += " [@@noalloc]";
        }
        text
    }
}

fn attributed(text: String, attribute: &str) -> String {
    if attribute.is_empty() {
        text
    } else {
        alloc::format!("({text} {attribute})")
    }
}

/// The type of an argument.
pub fn describe_plain<A: Plain>(to: &mut Definitions) -> String {
    attributed(A::Type::describe(to), A::ATTRIBUTE)
}

/// The type of a result.
pub fn describe_plain_result<R: PlainResult>(to: &mut Definitions) -> String {
    attributed(R::Type::describe(to), R::ATTRIBUTE)
}

/// The type of an argument.
pub fn describe_read<'a, A: ReadArg<'a>>(to: &mut Definitions) -> String
where
    A::Type: OCamlType,
{
    A::Type::describe(to)
}

/// The type of an argument.
pub fn describe_write<'a, A: WriteArg<'a>>(to: &mut Definitions) -> String
where
    A::Type: OCamlType,
{
    A::Type::describe(to)
}

/// The type of an argument.
pub fn describe_payload<T: OCamlAbstract>(to: &mut Definitions) -> String {
    Boxed::<T>::describe(to)
}

/// The type of a result: as [`Returned`](super::Returned), without a value.
#[derive(Debug)]
pub struct ResultType<R>(pub PhantomData<fn() -> R>);

/// What is not a `Result`.
pub trait SplitType {
    /// The result.
    type Result;
    /// The type of what is returned when there is no error.
    fn split(self) -> ResultType<Self::Result>;
}
impl<R> SplitType for ResultType<R> {
    type Result = R;
    fn split(self) -> ResultType<R> {
        ResultType(PhantomData)
    }
}
impl<R, E> ResultType<Result<R, E>> {
    /// Errors are raised.
    pub fn split(self) -> ResultType<R> {
        ResultType(PhantomData)
    }
}

/// What tells the type of a result.
pub fn describe_result<R: Described>(_: ResultType<R>) -> Describe {
    R::describe_type
}

/// All types of a function.
pub fn signature(to: &mut Definitions, arguments: &[Describe], result: Describe) -> Signature {
    Signature { arguments: arguments.iter().map(|describe| describe(to)).collect(), result: result(to) }
}

/// What has a type in OCaml.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of an exported function",
    note = "return a `Fresh`, a `Value`, a `ValueRef`, a `Root`, a type that implements `ToOCaml`, or a `Result` of \
            one of these"
)]
pub trait Described {
    /// The type in OCaml.
    fn describe_type(to: &mut Definitions) -> String;
}
impl<R: Typed> Described for R
where
    R::Type: OCamlType,
{
    fn describe_type(to: &mut Definitions) -> String {
        R::Type::describe(to)
    }
}

// SPDX-License-Identifier: MIT
//! The exceptions of OCaml itself as Rust errors: an [`Exception`](crate::Exception) can be asked for them, and an
//! exported function that fails with one raises it. Others of the standard library are declared by a type that derives
//! [`OCamlException`](macro@crate::OCamlException) with `#[ocaml(module = "…")]`.
use crate::ocaml_exception::Constructor;
use crate::{glue, Any, ConvertError, Exn, Nursery, OCamlException, Runtime, ToOCaml, Value};
use alloc::string::String;
use core::fmt;

macro_rules! exceptions {
    ($($(#[$doc:meta])* $name:ident $(($payload:ident))? = $number:ident, $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name $((
            /// Its argument.
            pub $payload,
        ))?;

        exceptions!(@display $name $($payload)?, $text);
        impl core::error::Error for $name {}

        // SAFETY: the runtime's exceptions of that name.
        unsafe impl OCamlException for $name {
            fn constructors() -> &'static [Constructor] {
                static LIST: [Constructor; 1] =
                    [Constructor::builtin(glue::$number, 0 $(+ exceptions!(@one $payload))?)];
                &LIST
            }
            fn which(&self) -> usize {
                0
            }
            exceptions!(@convert $name $($payload)?);
        }
    )*

        /// All of them.
        pub(crate) static LIST: &[crate::export::ExceptionType] = &[$(crate::export::ExceptionType::of::<$name>()),*];
    };
    (@one $payload:ident) => { 1 };
    (@display $name:ident, $text:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }
    };
    (@display $name:ident $payload:ident, $text:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($text, "{}"), self.0)
            }
        }
    };
    (@convert $name:ident) => {
        fn words(&self) -> usize {
            0
        }
        unsafe fn make<'n>(&self, _: &'n Nursery, constructor: Value<'n, Any>) -> Result<Value<'n, Exn>, ConvertError> {
            // SAFETY: a constant exception is its constructor.
            Ok(unsafe { constructor.cast() })
        }
        unsafe fn read(_: &Runtime, _: usize, _: Value<'_, Exn>) -> Result<Self, ConvertError> {
            Ok($name)
        }
    };
    (@convert $name:ident $payload:ident) => {
        fn words(&self) -> usize {
            3 + self.0.words()
        }
        unsafe fn make<'n>(&self, n: &'n Nursery, constructor: Value<'n, Any>) -> Result<Value<'n, Exn>, ConvertError> {
            Ok(n.filled(0, [constructor.raw(), self.0.to_ocaml(n)?.raw()])?)
        }
        unsafe fn read(rt: &Runtime, _: usize, exn: Value<'_, Exn>) -> Result<Self, ConvertError> {
            // SAFETY: by the caller: a block of the constructor and a string.
            Ok($name(unsafe { crate::derive::field(rt, exn, 1) }?))
        }
    };
}

exceptions! {
    /// `Failure`
    Failure(String) = FAILURE, "";
    /// `Invalid_argument`
    InvalidArgument(String) = INVALID_ARGUMENT, "invalid argument: ";
    /// `Sys_error`
    SysError(String) = SYS_ERROR, "";
    /// `Not_found`
    NotFound = NOT_FOUND, "not found";
    /// `End_of_file`
    EndOfFile = END_OF_FILE, "end of file";
    /// `Division_by_zero`
    DivisionByZero = DIVISION_BY_ZERO, "division by zero";
    /// `Out_of_memory`
    OutOfMemory = OUT_OF_MEMORY, "out of memory";
    /// `Stack_overflow`
    StackOverflow = STACK_OVERFLOW, "stack overflow";
}

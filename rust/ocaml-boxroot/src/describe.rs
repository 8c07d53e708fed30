// SPDX-License-Identifier: MIT
//! What a Rust type is called in OCaml. The OCaml text of a library is written from these descriptions, which are
//! functions, so aliases, generics and macros are resolved by the Rust compiler.
use crate::{Element, Typed};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A type of OCaml, for the type parameter of values: the descriptors of this crate, and types that derive it. Which one
/// belongs to a type of Rust is said by [`Typed`](crate::Typed).
///
/// # Safety
/// The description is always the same, and that of the values that a `Value<Self>` may hold. If OCaml takes the type for
/// `float` (itself, an abbreviation, or unboxed), `FLOAT` is true: records of such fields are flat.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the description of an OCaml type",
    note = "derive `OCamlType` for it, or use one of the descriptors of `ocaml_boxroot`"
)]
pub unsafe trait OCamlType {
    /// Whether OCaml takes the type for `float`.
    #[doc(hidden)]
    const FLOAT: bool = false;

    /// The type expression, such as `int`, `(string * 'a) list`. It is complete in itself: what needs parentheses as an
    /// argument of another type has them. Definitions that it needs are added to `to`.
    fn describe(to: &mut Definitions) -> String;
}

/// A definition of an OCaml type.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name in OCaml.
    pub name: String,
    /// How many parameters it has: `'a`, `'b`, …
    pub parameters: usize,
    /// What stands after `type 'a name`: ` = …`, or nothing for an abstract type; without attributes.
    pub body: String,
    /// Attributes behind the body, such as `[@@unboxed]`.
    pub attributes: String,
    /// The documentation comment, or nothing.
    pub doc: String,
    /// The Rust type it comes from.
    pub rust: &'static str,
}

/// The definitions that a set of types needs, in an order in which all may be joined by `and`.
#[derive(Debug, Default)]
pub struct Definitions {
    list: Vec<Definition>,
    clashes: Vec<String>,
}

impl Definitions {
    /// No definitions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the definition of the Rust type named `rust` unless it is there. `fill` writes its body, and may add others
    /// or refer to this one.
    pub fn define(
        &mut self,
        rust: &'static str,
        name: &str,
        parameters: usize,
        fill: impl FnOnce(&mut Definition, &mut Definitions),
    ) {
        if self.list.iter().any(|d| d.rust == rust) {
            return;
        }
        if let Some(other) = self.list.iter().find(|d| d.name == name) {
            self.clashes.push(alloc::format!("`{rust}` and `{}` are both named `{name}` in OCaml", other.rust));
        }
        let blank = Definition {
            name: name.to_string(),
            parameters,
            body: String::new(),
            attributes: String::new(),
            doc: String::new(),
            rust,
        };
        let at = self.list.len();
        self.list.push(blank.clone());
        let mut filled = blank;
        fill(&mut filled, self);
        self.list[at] = filled;
    }

    /// The definitions.
    pub fn list(&self) -> &[Definition] {
        &self.list
    }

    /// Different Rust types with the same name in OCaml: messages.
    pub fn clashes(&self) -> &[String] {
        &self.clashes
    }
}

/// The type variable number `N`, `'a` for 0: what stands for a generic parameter where an exported function or a
/// definition is described. It has no values.
#[derive(Debug)]
pub struct Var<const N: u8> {
    _none: core::convert::Infallible,
}

// SAFETY: a variable is never known to be `float`.
unsafe impl<const N: u8> OCamlType for Var<N> {
    fn describe(_: &mut Definitions) -> String {
        let letter = char::from(b'a' + N % 26);
        if N < 26 {
            alloc::format!("'{letter}")
        } else {
            alloc::format!("'{letter}{}", N / 26)
        }
    }
}

impl<const N: u8> Typed for Var<N> {
    type Type = Self;
}
impl<const N: u8> Element for Var<N> {}

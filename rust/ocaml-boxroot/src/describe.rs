// SPDX-License-Identifier: MIT
//! What a Rust type is called in OCaml. The OCaml text of a library is written from these descriptions, which are
//! functions, so aliases, generics and macros are resolved by the Rust compiler.
use crate::{Element, Typed};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A type of OCaml, for the type parameter of values: the descriptors of this crate, and types that derive it. Which
/// one belongs to a type of Rust is said by [`Typed`](crate::Typed).
///
/// # Safety
/// The description is always the same, and that of the values that a `Value<Self>` may hold. If OCaml takes the type
/// for `float` (itself, an abbreviation, or unboxed), `FLOAT` is true: records of such fields are flat.
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

/// The definitions that a set of types needs.
#[derive(Debug, Default)]
pub struct Definitions {
    list: Vec<Definition>,
    /// Which definitions each one refers to.
    uses: Vec<Vec<usize>>,
    /// Those that are being filled.
    open: Vec<usize>,
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
        let known = self.list.iter().position(|d| d.rust == rust);
        let at = known.unwrap_or(self.list.len());
        if let Some(user) = self.open.last() {
            self.uses[*user].push(at);
        }
        if known.is_some() {
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
        self.list.push(blank.clone());
        self.uses.push(Vec::new());
        self.open.push(at);
        let mut filled = blank;
        fill(&mut filled, self);
        self.open.pop();
        self.list[at] = filled;
    }

    /// The definitions in groups, each after those that it refers to. Those of one group refer to each other, and are
    /// joined by `and`; others must not be: in such a group OCaml does not know yet that a type is `float`, and makes a
    /// record of it that is not flat.
    pub fn groups(&self) -> Vec<Vec<&Definition>> {
        // What each one leads to, itself included. There are few.
        let reached: Vec<Vec<bool>> = (0..self.list.len())
            .map(|from| {
                let mut reached = alloc::vec![false; self.list.len()];
                reached[from] = true;
                let mut rest = self.uses[from].clone();
                while let Some(at) = rest.pop() {
                    if !core::mem::replace(&mut reached[at], true) {
                        rest.extend(&self.uses[at]);
                    }
                }
                reached
            })
            .collect();
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        // What leads to fewer comes first; those of one group, and no others, lead to the same.
        order.sort_by_key(|at| (reached[*at].iter().filter(|is| **is).count(), reached[*at].clone()));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in order {
            match groups.last_mut() {
                Some(group) if reached[at] == reached[group[0]] => group.push(at),
                _ => groups.push(alloc::vec![at]),
            }
        }
        groups.into_iter().map(|group| group.into_iter().map(|at| &self.list[at]).collect()).collect()
    }

    /// The text of all definitions, as in an `.ml` or `.mli` file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for group in self.groups() {
            for (i, definition) in group.iter().enumerate() {
                if !definition.doc.is_empty() {
                    text += &alloc::format!("{}\n", crate::derive::comment(&definition.doc));
                }
                text += if i == 0 { "type " } else { "and " };
                let parameters: Vec<String> = (0..definition.parameters).map(variable).collect();
                text += &crate::derive::apply(&parameters, &definition.name);
                text += &definition.body;
                if !definition.attributes.is_empty() {
                    text += &alloc::format!("\n{}", definition.attributes);
                }
                text += "\n\n";
            }
        }
        text
    }

    /// The definitions, in the order in which they were met.
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
        variable(N.into())
    }
}

fn variable(n: usize) -> String {
    let letter = char::from(b'a' + (n % 26) as u8);
    match n / 26 {
        0 => alloc::format!("'{letter}"),
        round => alloc::format!("'{letter}{round}"),
    }
}

impl<const N: u8> Typed for Var<N> {
    type Type = Self;
}
impl<const N: u8> Element for Var<N> {}

// SPDX-License-Identifier: MIT
//! What a Rust type is called in OCaml. The OCaml text of a library is written from these descriptions, which are
//! functions, so aliases, generics and macros are resolved by the Rust compiler.
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::AtomicU8;

/// A type of OCaml, for the type parameter of values: the descriptors of this crate, and types that derive it. Which
/// one belongs to a type of Rust is said by [`Typed`](crate::Typed).
///
/// # Safety
/// The description is always the same, and that of the values that a `Value<Self>` may hold. Definitions that it
/// adds have a [`DefinitionSite`] each. If OCaml takes the type for `float` (itself, an abbreviation, or unboxed),
/// `FLOAT` is true: records of such fields are flat.
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
    site: &'static DefinitionSite,
}

/// What tells a definition from all others: a static beside the Rust type. Names do not: two versions of a crate, and
/// two functions of a module, may each have a type of the same path.
#[derive(Debug)]
pub struct DefinitionSite {
    rust: &'static str,
    // Statics that can be written to have addresses of their own.
    _place: AtomicU8,
}

impl DefinitionSite {
    /// For the Rust type of this name, which is for messages.
    pub const fn new(rust: &'static str) -> Self {
        DefinitionSite { rust, _place: AtomicU8::new(0) }
    }
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

    /// Adds the definition that belongs to `site` unless it is there. `fill` writes its body, and may add others or
    /// refer to this one. Another definition of the same name is a clash.
    pub fn define(
        &mut self,
        site: &'static DefinitionSite,
        name: &str,
        parameters: usize,
        fill: impl FnOnce(&mut Definition, &mut Definitions),
    ) {
        let rust = site.rust;
        let known = self.list.iter().position(|d| core::ptr::eq(d.site, site));
        let at = known.unwrap_or(self.list.len());
        if let Some(user) = self.open.last() {
            self.uses[*user].push(at);
        }
        if known.is_some() {
            return;
        }
        if let Some(other) = self.list.iter().find(|d| d.name == name) {
            let two = if other.rust == rust { "two types of Rust, " } else { "" };
            let text = alloc::format!("{two}`{rust}` and `{}`, are both named `{name}` in OCaml", other.rust);
            self.clashes.push(text);
        }
        let blank = Definition {
            name: name.to_string(),
            parameters,
            body: String::new(),
            attributes: String::new(),
            doc: String::new(),
            rust,
            site,
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
                    text += &alloc::format!("{}\n", comment(&definition.doc));
                }
                text += if i == 0 { "type " } else { "and " };
                let parameters: Vec<String> = (0..definition.parameters).map(variable).collect();
                text += &apply(&parameters, &definition.name);
                text += &definition.body;
                if !definition.attributes.is_empty() {
                    text += &alloc::format!("\n{}", definition.attributes);
                }
                text += "\n\n";
            }
        }
        text
    }

    /// The definitions, in the order in which they were added.
    pub fn list(&self) -> &[Definition] {
        &self.list
    }

    /// Records why the text cannot be written.
    pub(crate) fn refuse(&mut self, why: String) {
        self.clashes.push(why);
    }

    /// Different Rust types with the same name in OCaml, and types that have none: messages.
    pub fn clashes(&self) -> &[String] {
        &self.clashes
    }
}

/// The type variable number `n`: `'a` for 0.
pub(crate) fn variable(n: usize) -> String {
    let letter = char::from(b'a' + (n % 26) as u8);
    match n / 26 {
        0 => alloc::format!("'{letter}"),
        round => alloc::format!("'{letter}{round}"),
    }
}

/// The text of a type expression.
#[doc(hidden)]
pub type TypeText = String;

/// Which OCaml type a type has: a descriptor. A type of Rust has one, whichever way it is converted; a descriptor is
/// its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no counterpart among OCaml's types",
    note = "derive `OCamlType` for it"
)]
pub trait Typed {
    /// The type in OCaml. It implements [`OCamlType`](crate::OCamlType) where its text is needed.
    type Type;
}

/// Types whose arrays are OCaml arrays: all that can be converted, but `u8`, since arrays of bytes are strings.
#[diagnostic::on_unimplemented(
    message = "arrays of `{Self}` have no counterpart in OCaml",
    note = "`Vec<u8>` is a string; for a type with conversions of its own, write `impl Element for {Self} {{}}`"
)]
pub trait Element {}

/// What tells the type of a field: [`OCamlType::describe`](crate::OCamlType::describe).
pub type Describe = fn(&mut Definitions) -> String;

/// A type applied to arguments.
pub fn apply(arguments: &[String], name: &str) -> String {
    match arguments {
        [] => name.into(),
        [one] => alloc::format!("{one} {name}"),
        several => alloc::format!("({}) {name}", several.join(", ")),
    }
}

/// A documentation comment. OCaml reads comments and strings inside comments, so what begins or ends one is taken
/// apart.
pub(crate) fn comment(doc: &str) -> String {
    let text = doc.replace("(*", "( *").replace("*)", "* )").replace('"', "''");
    let mut parts = text.split('{');
    let mut text = String::from("(** ");
    text += parts.next().unwrap_or("");
    for part in parts {
        text += if begins_quotation(part) { "{ " } else { "{" };
        text += part;
    }
    text = text.replace('\n', "\n    ").replace("\n    \n", "\n\n");
    text + " *)"
}

/// Whether OCaml reads a string from here to `|}` or the like, behind a brace: `{id|`, `{%name|`, `{%%name id|`.
fn begins_quotation(text: &str) -> bool {
    let letters = |text: &'_ str| text.trim_start_matches(|c: char| c.is_alphanumeric() || "_'.".contains(c)).len();
    let behind = |text: &'_ str| text.len() - letters(text);
    let rest = text.trim_start_matches('%');
    let rest = match rest.len() == text.len() {
        true => rest,
        false => rest[behind(rest)..].trim_start(),
    };
    rest[behind(rest)..].starts_with('|')
}

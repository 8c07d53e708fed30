// SPDX-License-Identifier: MIT
//! The OCaml text of a library, and the check that a text belongs to the library.
use super::{Export, Import, Lock, Raise, Words};
use crate::{Any, Definition, Definitions, Runtime, Value};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What `library!` says: the functions that a Rust library exports to OCaml and imports from it.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// Its name: that of the OCaml module, and what its own C functions begin with.
    pub name: &'static str,
    /// The documentation of the module.
    pub doc: &'static str,
    /// What OCaml can call.
    pub exports: &'static [Export],
    /// What Rust can call.
    pub imports: &'static [&'static [Import]],
}

/// A line of the OCaml text on which both sides must agree: what it is about, and the line.
type Line = (String, String);

/// All that the OCaml text says.
struct Texts {
    definitions: Definitions,
    exports: Vec<String>,
    imports: Vec<String>,
}

impl Library {
    fn texts(&self) -> Result<Texts, String> {
        let mut definitions = Definitions::new();
        let exports = self.exports.iter().map(|export| export.declaration(&mut definitions)).collect();
        let imports = self.imports().map(|import| (import.describe)(&mut definitions)).collect();
        let mut wrong = definitions.clashes().to_vec();
        for (i, export) in self.exports.iter().enumerate() {
            if self.exports[..i].iter().any(|other| other.name == export.name) {
                wrong.push(alloc::format!("two functions are named `{}` in OCaml", export.name));
            }
        }
        match wrong.is_empty() {
            true => Ok(Texts { definitions, exports, imports }),
            false => Err(alloc::format!("{}: {}", self.name, wrong.join("; "))),
        }
    }

    fn imports(&self) -> impl Iterator<Item = &'static Import> {
        self.imports.iter().copied().flatten()
    }

    /// What the module with types and exported functions is to agree with.
    fn lines(&self) -> Result<Vec<Line>, String> {
        let texts = self.texts()?;
        let mut lines = Vec::new();
        for definition in texts.definitions.list() {
            lines.push((alloc::format!("the type `{}`", definition.name), define(definition)));
        }
        for (export, text) in self.exports.iter().zip(texts.exports) {
            lines.push((alloc::format!("the function `{}`", export.name), text));
        }
        Ok(lines)
    }

    /// The text of a file: `NAME.ml`, `NAME.mli`, or `NAME_imports.ml`, which registers the OCaml functions that Rust
    /// calls. `which` is the name's end: `ml`, `mli`, `imports`.
    pub fn text(&self, which: &str) -> Result<String, String> {
        let texts = self.texts()?;
        let mut out = alloc::format!(
            "(* Written by ocaml-boxroot from the types of the Rust library `{}`. Changes here are lost. *)\n\n",
            self.name
        );
        match which {
            "ml" | "mli" => {
                let interface = which == "mli";
                if interface && !self.doc.is_empty() {
                    out += &alloc::format!("{}\n", comment(self.doc));
                }
                let mut word = "type";
                for definition in texts.definitions.list() {
                    out += &alloc::format!("{word} {}\n", define(definition));
                    if interface && !definition.doc.is_empty() {
                        out += &comment(&definition.doc);
                    }
                    out.push('\n');
                    word = "and";
                }
                for (export, text) in self.exports.iter().zip(&texts.exports) {
                    out += text;
                    out.push('\n');
                    if interface && !export.doc.is_empty() {
                        out += &comment(export.doc);
                    }
                    out.push('\n');
                }
                if !interface {
                    out += &self.table(
                        "check",
                        "(string * string) array -> unit",
                        self.lines()?
                            .into_iter()
                            .map(|line| alloc::format!("{}, {}", quoted(&line.0), quoted(&line.1))),
                    );
                }
            }
            "imports" => {
                let mut rows = Vec::new();
                out += &alloc::format!("open! {} [@@warning \"-66\"]\n\n", capitalised(self.name));
                for (i, (import, ty)) in self.imports().zip(&texts.imports).enumerate() {
                    out += &alloc::format!("let import_{i} : {ty} = {}.{}\n", import.module, import.name);
                    let name = alloc::format!("{}.{}", import.module, import.name);
                    rows.push(alloc::format!("{}, {}, Obj.repr import_{i}", quoted(&name), quoted(ty)));
                }
                out.push('\n');
                out += &self.table("register", "(string * string * Obj.t) array -> unit", rows.into_iter());
            }
            _ => return Err(alloc::format!("no file `{which}`: ask for ml, mli or imports")),
        }
        Ok(out)
    }

    fn table(&self, function: &str, ty: &str, rows: impl Iterator<Item = String>) -> String {
        let mut out = alloc::format!("external {function}_ : {ty} = \"{}_ocaml_{function}\"\n\n", self.name);
        out += &alloc::format!("let () =\n  {function}_ [|\n");
        for row in rows {
            out += &alloc::format!("    ({row});\n");
        }
        out + "  |]\n"
    }

    /// Compares what an OCaml module was written from with this library.
    fn check(&self, rt: &Runtime, table: Value<'_, Any>) -> Result<(), String> {
        super::hook();
        let mut expected = self.lines()?;
        let file = alloc::format!("{}.ml", self.name);
        let advice = alloc::format!("{file} and the Rust library do not belong together: write {file} again");
        for row in rows(table) {
            let (Some(what), Some(text)) = (string(row, 0), string(row, 1)) else {
                return Err(alloc::format!("{}: the table in {file} is not readable; {advice}", self.name));
            };
            let Some(at) = expected.iter().position(|line| line.0 == what) else {
                return Err(alloc::format!("{}: {what} is not in the library: `{text}`; {advice}", self.name));
            };
            let line = expected.swap_remove(at);
            if line.1 != text {
                let theirs = &line.1;
                return Err(alloc::format!(
                    "{}: {what} is `{text}` in {file}, `{theirs}` in the library; {advice}",
                    self.name
                ));
            }
        }
        let _ = rt;
        match expected.first() {
            None => Ok(()),
            Some((what, _)) => Err(alloc::format!("{}: {what} of the library is not in {file}; {advice}", self.name)),
        }
    }

    /// Keeps the OCaml functions that Rust imports.
    fn register(&self, rt: &Runtime, table: Value<'_, Any>) -> Result<(), String> {
        let texts = self.texts()?;
        let file = alloc::format!("{}_imports.ml", self.name);
        let advice = alloc::format!("{file} and the Rust library do not belong together: write {file} again");
        let mut missing: Vec<(&Import, String)> = self.imports().zip(texts.imports).collect();
        for row in rows(table) {
            let (Some(name), Some(ty), Ok(function)) = (string(row, 0), string(row, 1), row.field(2)) else {
                return Err(alloc::format!("{}: the table in {file} is not readable; {advice}", self.name));
            };
            let Some(at) = missing.iter().position(|(i, _)| name == alloc::format!("{}.{}", i.module, i.name)) else {
                return Err(alloc::format!("{}: the library does not import `{name}`; {advice}", self.name));
            };
            let (import, theirs) = missing.swap_remove(at);
            if theirs != ty {
                return Err(alloc::format!(
                    "{}: the function `{name}` is `{ty}` in {file}, `{theirs}` in the library; {advice}",
                    self.name
                ));
            }
            import.cell.set(rt, function).map_err(|error| error.to_string())?;
        }
        match missing.first() {
            None => Ok(()),
            Some((import, _)) => Err(alloc::format!(
                "{}: the function `{}.{}` is not in {file}; {advice}",
                self.name,
                import.module,
                import.name
            )),
        }
    }
}

/// The rows of a table, whatever it is.
fn rows<'a>(table: Value<'a, Any>) -> impl Iterator<Item = Value<'a, Any>> {
    (0..).map_while(move |i| table.field(i).ok())
}

fn string(row: Value<'_, Any>, i: usize) -> Option<String> {
    let field = row.field(i).ok()?;
    match field.kind() {
        crate::Kind::String { .. } => String::from_utf8(field.copy_bytes()).ok(),
        _ => None,
    }
}

/// A definition without `type`.
fn define(definition: &Definition) -> String {
    let parameters: Vec<String> = (0..definition.parameters).map(variable).collect();
    let parameters = match parameters.len() {
        0 => String::new(),
        1 => alloc::format!("{} ", parameters[0]),
        _ => alloc::format!("({}) ", parameters.join(", ")),
    };
    let space = if definition.attributes.is_empty() { "" } else { " " };
    let text = alloc::format!("{parameters}{}{}{space}{}", definition.name, definition.body, definition.attributes);
    text.trim_end().to_string()
}

/// As [`Var`](crate::Var).
pub(super) fn variable(n: usize) -> String {
    let letter = char::from(b'a' + (n % 26) as u8);
    match n / 26 {
        0 => alloc::format!("'{letter}"),
        more => alloc::format!("'{letter}{more}"),
    }
}

/// A documentation comment. What would end the comment, or begin a string in it, is taken apart.
fn comment(doc: &str) -> String {
    let mut safe = doc.replace("*)", "* )").replace("(*", "( *").replace("{|", "{ |");
    if safe.matches('"').count() % 2 == 1 {
        safe = safe.replace('"', "'");
    }
    alloc::format!("(** {} *)\n", safe.trim())
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            _ => out.push(c),
        }
    }
    out + "\""
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The C function `NAME_ocaml_text`.
pub fn text(lock: &mut Lock, library: &Library, words: Words<1>) -> Result<isize, Raise> {
    super::read(lock, words, |rt, [which]| {
        // The caller is written by hand: it may pass anything.
        let which = match which.get(rt).kind() {
            crate::Kind::String { .. } => String::from_utf8_lossy(&which.get(rt).copy_bytes()).into_owned(),
            _ => String::new(),
        };
        let text = library.text(&which).map_err(Raise::error)?;
        match rt.try_string(text) {
            Ok(text) => Ok(text.value().raw()),
            Err(error) => Err(Raise::result(error.into())),
        }
    })
}

/// The C functions `NAME_ocaml_check` and `NAME_ocaml_register`.
pub fn check(lock: &mut Lock, library: &Library, words: Words<1>, imports: bool) -> Result<isize, Raise> {
    super::read(lock, words, |rt, [table]| {
        let table = table.get(rt);
        let outcome = if imports { library.register(rt, table) } else { library.check(rt, table) };
        outcome.map(|()| 1).map_err(Raise::failure)
    })
}

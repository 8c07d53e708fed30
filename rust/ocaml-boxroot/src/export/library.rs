// SPDX-License-Identifier: MIT
//! The OCaml text of a library, and the check that a text belongs to the library.
use super::declare::{ExceptionText, Export, Import, ImportText};
use super::wrapper::{read, Lock, Places, Raise, Words};
use crate::describe::{self, variable};
use crate::exception::types::{add_known, constructors, ExceptionType};
use crate::panics::hook_panics;
use crate::{Any, Definition, Definitions, Runtime, Value, ValueKind};
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
    /// The errors that are exceptions of OCaml.
    pub exceptions: &'static [ExceptionType],
}

/// The OCaml module of this crate, by its files.
const OURS: [(&str, &str); 2] = [
    ("ocaml_boxroot.ml", include_str!("../../ocaml/ocaml_boxroot.ml")),
    ("ocaml_boxroot.mli", include_str!("../../ocaml/ocaml_boxroot.mli")),
];

/// Refers to the module of this crate: of an archive, OCaml links what is referred to.
const LINKED: &str = "\
(* So that a program which uses this module contains the exceptions of Rust. *)
let () = Stdlib.ignore (Stdlib.Sys.opaque_identity [%extension_constructor Ocaml_boxroot.Rust_error])

";

/// Around what is internal. Functions of the user's may have the same names.
const INTERNAL: &str = "include (struct\n\n";
const INTERNAL_END: &str = "\nend : sig end)\n";

/// What the OCaml text says of [`ImportText::probe`].
const PROBES: &str = "
(* OCaml refuses this module if a function's result has any type that one asks for, as with Obj.magic: Rust would
   believe it. Such a function can be imported from a module of your own, with the type that its results have. *)
";

/// A line of the OCaml text on which both sides must agree: what it is about, and the line.
type Line = (String, String);

/// All that the OCaml text says.
struct Texts {
    definitions: Definitions,
    exports: Vec<String>,
    imports: Vec<ImportText>,
    /// Declared by the text.
    exceptions: Vec<ExceptionText>,
    /// Declared by other modules of OCaml.
    foreign: Vec<ExceptionText>,
}

impl Library {
    fn texts(&self) -> Result<Texts, String> {
        let mut definitions = Definitions::new();
        let exports = self.exports.iter().map(|export| export.declaration(&mut definitions)).collect();
        let imports = self.imports().map(|import| import.describe(&mut definitions)).collect();
        let texts = constructors(self.exceptions).map(|c| ExceptionText::new(c, &mut definitions));
        let (exceptions, foreign): (Vec<_>, Vec<_>) = texts.partition(|text| text.constructor.module.is_none());
        let mut wrong = definitions.clashes().to_vec();
        for (i, text) in exceptions.iter().enumerate() {
            if exceptions[..i].iter().any(|other| other.constructor.name == text.constructor.name) {
                wrong.push(alloc::format!("two exceptions are named `{}` in OCaml", text.constructor.name));
            }
        }
        for (i, export) in self.exports.iter().enumerate() {
            if self.exports[..i].iter().any(|other| other.name == export.name) {
                wrong.push(alloc::format!("two functions are named `{}` in OCaml", export.name));
            }
        }
        match wrong.is_empty() {
            true => Ok(Texts { definitions, exports, imports, exceptions, foreign }),
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
        for text in &texts.exceptions {
            lines.push((alloc::format!("the exception `{}`", text.path()), text.declaration()));
        }
        for (export, text) in self.exports.iter().zip(texts.exports) {
            lines.push((alloc::format!("the function `{}`", export.name), text));
        }
        Ok(lines)
    }

    /// The text of a file of the library's OCaml side, by its name: `NAME.ml`, `NAME.mli`, `NAME_imports.ml`, or one of
    /// this crate's modules. `files` is the list of those that are needed, one a line. (`ml`, `mli` and `imports` are
    /// the first three.)
    pub fn file(&self, name: &str) -> Result<String, String> {
        if let Some((_, text)) = OURS.iter().find(|ours| ours.0 == name) {
            return Ok((*text).into());
        }
        match name.strip_prefix(self.name) {
            Some(".ml") => self.text("ml"),
            Some(".mli") => self.text("mli"),
            Some("_imports.ml") => self.text("imports"),
            _ if name == "files" => {
                let imports = self.imports().next().map(|_| alloc::format!("{}_imports.ml\n", self.name));
                let imports = imports.unwrap_or_default();
                Ok(alloc::format!("{1}\n{2}\n{0}.mli\n{0}.ml\n{imports}", self.name, OURS[1].0, OURS[0].0))
            }
            _ => self.text(name),
        }
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
                // Types that refer to each other may have fields and constructors of the same names.
                out += "[@@@warning \"-30\"]\n\n";
                let interface = which == "mli";
                if interface && !self.doc.is_empty() {
                    out += &alloc::format!("{}\n", comment(self.doc));
                }
                for group in texts.definitions.groups() {
                    for (i, definition) in group.into_iter().enumerate() {
                        let word = if i == 0 { "type" } else { "and" };
                        out += &alloc::format!("{word} {}\n", define(definition));
                        if interface && !definition.doc.is_empty() {
                            out += &comment(&definition.doc);
                        }
                        out.push('\n');
                    }
                }
                for text in &texts.exceptions {
                    out += &alloc::format!("{}\n", text.declaration());
                    if interface && !text.constructor.doc.is_empty() {
                        out += &comment(text.constructor.doc);
                    }
                    out.push('\n');
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
                    out += LINKED;
                    out += INTERNAL;
                    out += &self.table(
                        "check",
                        "(string * string) array -> unit",
                        self.lines()?
                            .into_iter()
                            .map(|line| alloc::format!("{}, {}", quoted(&line.0), quoted(&line.1))),
                    );
                    if !texts.exceptions.is_empty() {
                        let row = |text: &ExceptionText| {
                            alloc::format!("{}, Stdlib.Obj.repr ({})", quoted(&text.path()), text.sample())
                        };
                        out.push('\n');
                        let ty = "(string * Stdlib.Obj.t) array -> unit";
                        out += &self.table("exceptions", ty, texts.exceptions.iter().map(row));
                    }
                    out += INTERNAL_END;
                }
            }
            "imports" => {
                let mut rows = Vec::new();
                out += &alloc::format!("open! {} [@@warning \"-66\"]\n\n", capitalised(self.name));
                out += INTERNAL;
                let mut probes = String::new();
                for (i, (import, text)) in self.imports().zip(&texts.imports).enumerate() {
                    let (name, ty) = (alloc::format!("{}.{}", import.module, import.name), &text.ty);
                    out += &alloc::format!("let import_{i} : {ty} = {name}\n");
                    probes += &alloc::format!("  let _{i} = {}\n", text.probe(&name));
                    rows.push(alloc::format!("{}, {}, Stdlib.Obj.repr import_{i}", quoted(&name), quoted(ty)));
                }
                if !probes.is_empty() {
                    out += PROBES;
                    out += &alloc::format!("module type Results = module type of struct\n{probes}end\n");
                }
                for (i, text) in texts.foreign.iter().enumerate() {
                    let (parameters, body) = text.function();
                    out += &alloc::format!("let exception_{i}{parameters} = {body}\n");
                    let (name, ty) = (quoted(&text.path()), quoted(&text.declaration()));
                    rows.push(alloc::format!("{name}, {ty}, Stdlib.Obj.repr (exception_{i}{})", text.numbers()));
                }
                out.push('\n');
                out += &self.table("register", "(string * string * Stdlib.Obj.t) array -> unit", rows.into_iter());
                out += INTERNAL_END;
            }
            _ => return Err(alloc::format!("no file `{which}`: ask for `files`, or for one that it lists")),
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
        hook_panics();
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
        let types = texts.imports.into_iter().map(|text| text.ty);
        let mut missing: Vec<(&Import, String)> = self.imports().zip(types).collect();
        let mut foreign = texts.foreign;
        for row in rows(table) {
            let (Some(name), Some(ty), Ok(function)) = (string(row, 0), string(row, 1), row.field(2)) else {
                return Err(alloc::format!("{}: the table in {file} is not readable; {advice}", self.name));
            };
            if let Some(at) = foreign.iter().position(|text| text.path() == name) {
                let text = foreign.swap_remove(at);
                let theirs = text.declaration();
                if theirs != ty {
                    return Err(alloc::format!(
                        "{}: the exception `{name}` is `{ty}` in {file}, `{theirs}` in the library; {advice}",
                        self.name
                    ));
                }
                text.register(rt, function).map_err(|error| alloc::format!("{}: {error}", self.name))?;
                continue;
            }
            // A function may be imported with several types, which are instances of its own.
            let named = |(i, _): &(&Import, String)| name == alloc::format!("{}.{}", i.module, i.name);
            let exact = missing.iter().position(|row| named(row) && row.1 == ty);
            let Some(at) = exact.or_else(|| missing.iter().position(named)) else {
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
        add_known(self.exceptions);
        if let Some(text) = foreign.first() {
            return Err(alloc::format!("{}: the exception `{}` is not in {file}; {advice}", self.name, text.path()));
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

    /// Keeps the constructors of the exceptions that an OCaml module declares.
    fn declare(&self, rt: &Runtime, table: Value<'_, Any>) -> Result<(), String> {
        let mut missing = self.texts()?.exceptions;
        let file = alloc::format!("{}.ml", self.name);
        for row in rows(table) {
            let at = string(row, 0).and_then(|name| missing.iter().position(|text| text.path() == name));
            let (Some(at), Ok(sample)) = (at, row.field(1)) else {
                return Err(alloc::format!(
                    "{}: the table of exceptions in {file} is not readable: they do not belong together",
                    self.name
                ));
            };
            missing.swap_remove(at).register(rt, sample).map_err(|error| alloc::format!("{}: {error}", self.name))?;
        }
        add_known(self.exceptions);
        Ok(())
    }
}

/// The rows of a table; none, if the value is no table.
fn rows<'a>(table: Value<'a, Any>) -> impl Iterator<Item = Value<'a, Any>> {
    (0..).map_while(move |i| table.field(i).ok())
}

fn string(row: Value<'_, Any>, i: usize) -> Option<String> {
    let field = row.field(i).ok()?;
    match field.kind() {
        ValueKind::String { .. } => String::from_utf8(field.copy_bytes()).ok(),
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

/// A documentation comment on lines of its own.
fn comment(doc: &str) -> String {
    describe::comment(doc.trim()) + "\n"
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
    read(lock, words, |rt, Places([which])| {
        // The caller is written by hand: it may pass anything.
        let which = which.0.get(rt);
        let which = match which.kind() {
            ValueKind::String { .. } => String::from_utf8_lossy(&which.copy_bytes()).into_owned(),
            _ => String::new(),
        };
        let text = library.file(&which).map_err(Raise::error)?;
        match rt.try_string(text) {
            Ok(text) => Ok(text.value().raw()),
            Err(error) => Err(Raise::result(error.into())),
        }
    })
}

/// What a table in the OCaml text is for.
#[derive(Debug, Clone, Copy)]
pub enum Table {
    /// `NAME_ocaml_check`
    Check,
    /// `NAME_ocaml_register`
    Register,
    /// `NAME_ocaml_exceptions`
    Exceptions,
}

/// The C functions that the OCaml text passes its tables to.
pub fn check(lock: &mut Lock, library: &Library, words: Words<1>, which: Table) -> Result<isize, Raise> {
    read(lock, words, |rt, Places([table])| {
        let table = table.0.get(rt);
        let outcome = match which {
            Table::Check => library.check(rt, table),
            Table::Register => library.register(rt, table),
            Table::Exceptions => library.declare(rt, table),
        };
        outcome.map(|()| 1).map_err(Raise::failure)
    })
}

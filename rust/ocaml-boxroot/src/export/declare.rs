// SPDX-License-Identifier: MIT
//! What the OCaml text declares: exported and imported functions, and exceptions.
use super::pass::{ReadArg, WriteArg};
use super::plain::{Plain, PlainResult};
use crate::describe::{variable, Describe};
use crate::exception::{self, types::Constructor};
use crate::{
    Any, Boxed, ConvertError, Definitions, Exception, FromOCaml, Fun, OCamlAbstract, OCamlType, Root, RootError,
    Runtime, Typed, Value, ValueCell, ValueGuard, ValueKind,
};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

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
    /// All types, by one function.
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

/// The type of a result: as [`Returned`](super::pass::Returned), without a value.
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
    note = "return a `ValueGuard`, a `Value`, a `ValueRef`, a `Root`, a type that implements `ToOCaml`, or a \
            `Result` of one of these"
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

// --- imported functions

/// An OCaml function that Rust calls: what `import!` declares and the OCaml text registers.
#[derive(Debug, Clone, Copy)]
pub struct Import {
    pub(super) module: &'static str,
    pub(super) name: &'static str,
    types: ImportTypes,
    pub(super) cell: &'static ImportCell,
}

/// What tells the types of the arguments and of the result, and how many type variables they have.
pub type ImportTypes = (&'static [Describe], Describe, u8);

impl Import {
    /// The function `name` of the OCaml module `module`, of these types.
    ///
    /// # Safety
    /// Both names are valid in OCaml. All imports with this cell have the same types.
    pub const unsafe fn new(
        module: &'static str,
        name: &'static str,
        types: ImportTypes,
        cell: &'static ImportCell,
    ) -> Import {
        Import { module, name, types, cell }
    }

    pub(super) fn describe(&self, to: &mut Definitions) -> ImportText {
        let (arguments, result, variables) = self.types;
        let variables: Vec<String> = (0..variables).map(|n| variable(n.into())).collect();
        let mut text = String::new();
        if arguments.is_empty() {
            text += "unit -> ";
        }
        for describe in arguments {
            text += &describe(to);
            text += " -> ";
        }
        let quantified = if variables.is_empty() { "" } else { ". " };
        let ty = alloc::format!("{}{quantified}{text}{}", variables.join(" "), result(to));
        ImportText { ty, arguments: text, variables }
    }
}

/// What the OCaml text says of an imported function.
#[derive(Debug)]
pub(super) struct ImportText {
    /// Its type, with its variables: `'a. 'a -> 'a`.
    pub ty: String,
    /// The types of its arguments, in front of the result: `'a -> `.
    arguments: String,
    variables: Vec<String>,
}

impl ImportText {
    /// An expression of OCaml. Its type has a free variable if the result of `function` can be of any type, whatever
    /// the arguments. (Those whose type is a variable are units here.)
    pub fn probe(&self, function: &str) -> String {
        let function = alloc::format!("({function} : {}_)", self.arguments);
        if self.variables.is_empty() {
            return alloc::format!("Stdlib.ref {function}");
        }
        let parameters: String = self.variables.iter().map(|name| alloc::format!(" (_ : {name})")).collect();
        alloc::format!("Stdlib.ref (fun{parameters} -> {function} : {}_)", "unit -> ".repeat(self.variables.len()))
    }
}

/// Where an imported function is kept, once OCaml has registered it.
// IMPORTED: null, or a root that lives for ever and holds a function of the type that the import's text says. One
// that is registered again leaves the earlier root alive, since others may be using it.
#[derive(Debug)]
pub struct ImportCell {
    root: AtomicPtr<Root<Any>>,
    name: &'static str,
}

impl ImportCell {
    /// A cell without a function.
    pub const fn new(name: &'static str) -> Self {
        ImportCell { root: AtomicPtr::new(null_mut()), name }
    }

    /// The caller has compared the type's text, which the OCaml compiler has checked.
    pub(super) fn set(&self, rt: &Runtime, function: Value<'_, Any>) -> Result<(), RootError> {
        let root = Box::into_raw(Box::new(Root::try_new(rt, function)?));
        self.root.store(root, Release);
        Ok(())
    }

    /// The function; an exception if OCaml has not registered it.
    ///
    /// # Safety
    /// All imports with this cell describe a function of type `Fun<A, R>`.
    #[inline]
    pub unsafe fn function<'c, A: 'c, R: 'c>(&self, rt: &mut Runtime) -> Result<&'c ValueCell<Fun<A, R>>, Exception> {
        // SAFETY: IMPORTED.
        match unsafe { self.root.load(Acquire).as_ref() } {
            // SAFETY: by the caller.
            Some(root) => Ok(unsafe { root.as_any().cast() }),
            None => Err(self.missing(rt)),
        }
    }

    #[cold]
    #[inline(never)]
    fn missing(&self, rt: &mut Runtime) -> Exception {
        let text = alloc::format!(
            "the OCaml function {} is not registered: the module NAME_imports is not linked. OCaml drops modules of an \
             archive that no other one names: link it with the option -linkall; in a library of dune, write \
             (library_flags -linkall)",
            self.name
        );
        exception::failure(rt, &text)
    }
}

/// What an imported function returns.
#[inline]
pub fn imported<R: for<'x> FromOCaml<'x>>(result: ValueGuard<'_, R::Type>) -> Result<R, Exception> {
    match R::from_ocaml(result.rt(), result.value()) {
        Ok(result) => Ok(result),
        Err(error) => Err(unreadable(result.into_rt(), &error)),
    }
}

#[cold]
#[inline(never)]
fn unreadable(rt: &mut Runtime, error: &ConvertError) -> Exception {
    exception::invalid_argument(rt, &alloc::format!("result: {error}"))
}

/// The type of an argument or a result.
pub fn describe_type<R: Typed>(to: &mut Definitions) -> String
where
    R::Type: OCamlType,
{
    R::Type::describe(to)
}

// --- exceptions

/// What the OCaml text says of a constructor.
#[derive(Debug)]
pub(super) struct ExceptionText {
    pub constructor: &'static Constructor,
    types: Vec<String>,
}

impl ExceptionText {
    pub fn new(constructor: &'static Constructor, to: &mut Definitions) -> ExceptionText {
        ExceptionText { constructor, types: (constructor.describe)(to) }
    }

    /// `Module.Name`, or `Name`.
    pub fn path(&self) -> String {
        match self.constructor.module {
            Some(module) => alloc::format!("{module}.{}", self.constructor.name),
            None => self.constructor.name.to_string(),
        }
    }

    /// The types of its arguments: ` of string * int`, or nothing.
    pub fn arguments(&self) -> String {
        if self.types.is_empty() {
            return String::new();
        }
        let labels = self.constructor.labels;
        if labels.is_empty() {
            return alloc::format!(" of {}", self.types.join(" * "));
        }
        let fields: Vec<String> = labels.iter().zip(&self.types).map(|(l, t)| alloc::format!("{l} : {t}")).collect();
        alloc::format!(" of {{ {} }}", fields.join("; "))
    }

    /// `exception Name of string * int`
    pub fn declaration(&self) -> String {
        alloc::format!("exception {}{}", self.constructor.name, self.arguments())
    }

    /// An exception of OCaml whose arguments are made by `argument`.
    fn applied(&self, argument: fn(usize) -> String) -> String {
        let (path, labels) = (self.path(), self.constructor.labels);
        let arguments: Vec<String> = (0..self.types.len()).map(argument).collect();
        match (&arguments[..], labels) {
            ([], _) => path,
            (_, []) => alloc::format!("{path} ({})", arguments.join(", ")),
            (_, labels) => {
                let fields: Vec<String> =
                    labels.iter().zip(&arguments).map(|(l, a)| alloc::format!("{l} = {a}")).collect();
                alloc::format!("{path} {{ {} }}", fields.join("; "))
            }
        }
    }

    /// An expression of OCaml: an exception whose arguments are 1, 2, …
    pub fn sample(&self) -> String {
        self.applied(|i| alloc::format!("Stdlib.Obj.magic {}", i + 1))
    }

    /// The parameters of a function of OCaml that makes the exception, with their types, and its body.
    pub fn function(&self) -> (String, String) {
        let parameters = self.types.iter().enumerate().map(|(i, ty)| alloc::format!(" (a{i} : {ty})")).collect();
        (parameters, self.applied(|i| alloc::format!("a{i}")))
    }

    /// The arguments of that function for [`sample`](Self::sample).
    pub fn numbers(&self) -> String {
        (1..=self.types.len()).map(|i| alloc::format!(" (Stdlib.Obj.magic {i})")).collect()
    }

    /// Keeps the constructor, of a sample. An error if its arguments are not where Rust looks for them: several where
    /// there is one, a tuple, or in another order.
    pub fn register(&self, rt: &Runtime, sample: Value<'_, Any>) -> Result<(), String> {
        let size = self.constructor.size;
        let right = match sample.kind() {
            ValueKind::Object { .. } => size == 0,
            ValueKind::Block { tag: 0, len } => {
                let field = |i: usize| sample.field(i).map(|field| field.kind());
                let object = matches!(field(0), Ok(ValueKind::Object { .. }));
                object && size > 0 && len == size + 1 && (1..len).all(|i| field(i) == Ok(ValueKind::Int(i as isize)))
            }
            _ => false,
        };
        if !right {
            return Err(alloc::format!(
                "the exception `{}` has other arguments in OCaml than{}, or in another order",
                self.path(),
                self.arguments()
            ));
        }
        // SAFETY: an exception: an object, or a block that begins with one.
        let constructor = exception::constructor(unsafe { sample.cast() });
        let Some(constructor) = constructor else { return Err(alloc::format!("{}: no exception", self.path())) };
        self.constructor.set(rt, constructor).map_err(|error| error.to_string())
    }
}

// SPDX-License-Identifier: MIT
//! Rust types that are exceptions of OCaml: their declarations in the OCaml text, and raising them.
use crate::exception;
use crate::ocaml_exception::{raw, Constructor};
use crate::{Any, ConvertError, Definitions, Kind, OCamlException, Runtime, Value};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::ptr::null;
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

type Raised = Option<Result<isize, ConvertError>>;

/// A type that `library!` lists.
#[derive(Debug, Clone, Copy)]
pub struct ExceptionType {
    constructors: fn() -> &'static [Constructor],
    raise: fn(&mut Runtime, &(dyn Error + Send + Sync + 'static)) -> Raised,
}

impl ExceptionType {
    /// What is known of the type.
    pub const fn of<E: OCamlException>() -> ExceptionType {
        ExceptionType { constructors: E::constructors, raise: |rt, error| raw(rt, error.downcast_ref::<E>()?) }
    }
}

/// The constructors of the types.
pub(super) fn constructors(types: &'static [ExceptionType]) -> impl Iterator<Item = &'static Constructor> {
    // Those of OCaml itself need no declaration.
    types.iter().flat_map(|t| (t.constructors)()).filter(|c| !c.name.is_empty())
}

/// The exception for `error`, if it is of one of the types that are known: those of OCaml, and those of libraries
/// whose OCaml side has registered them. Valid until the next thing that may run the collector.
pub(super) fn raise(rt: &mut Runtime, error: &(dyn Error + Send + Sync + 'static)) -> Raised {
    crate::exceptions::LIST.iter().chain(known()).find_map(|t| (t.raise)(rt, error))
}

/// A library's types.
struct Known {
    types: &'static [ExceptionType],
    next: *const Known,
}

// KNOWN: the nodes reachable from here live for ever, and are never written.
static KNOWN: AtomicPtr<Known> = AtomicPtr::new(core::ptr::null_mut());

fn known() -> impl Iterator<Item = &'static ExceptionType> {
    let mut next: *const Known = KNOWN.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: KNOWN.
        let node: &'static Known = unsafe { next.as_ref() }?;
        next = node.next;
        Some(node.types)
    })
    .flatten()
}

/// From now on [`raise`] finds these types.
pub(super) fn add(types: &'static [ExceptionType]) {
    if types.is_empty() || known().any(|t| core::ptr::eq(t, types.as_ptr())) {
        return;
    }
    let node = Box::into_raw(Box::new(Known { types, next: null() }));
    let mut head = KNOWN.load(Relaxed);
    loop {
        // SAFETY: the node is ours until it is in the list.
        unsafe { (*node).next = head };
        match KNOWN.compare_exchange_weak(head, node, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

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
            Kind::Object { .. } => size == 0,
            Kind::Block { tag: 0, len } => {
                let field = |i: usize| sample.field(i).map(|field| field.kind());
                let object = matches!(field(0), Ok(Kind::Object { .. }));
                object && size > 0 && len == size + 1 && (1..len).all(|i| field(i) == Ok(Kind::Int(i as isize)))
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

// SPDX-License-Identifier: MIT
//! OCaml functions that Rust imports by name.
use crate::derive::Describe;
use crate::{Any, Definitions, Exception, Fresh, FromOCaml, Fun, OCamlType, Root, RootError, Runtime, Typed, Value};
use crate::{ConvertError, ValueCell};
use alloc::boxed::Box;
use alloc::string::String;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

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
    /// The names are names. All imports with this cell have the same types.
    pub const unsafe fn new(
        module: &'static str,
        name: &'static str,
        types: ImportTypes,
        cell: &'static ImportCell,
    ) -> Import {
        Import { module, name, types, cell }
    }

    /// Its type in OCaml, with its variables: `'a. 'a -> 'a`.
    pub(super) fn describe(&self, to: &mut Definitions) -> String {
        let (arguments, result, variables) = self.types;
        let mut text = String::new();
        for n in 0..variables {
            text += &crate::describe::variable(n.into());
            text += if n + 1 == variables { ". " } else { " " };
        }
        if arguments.is_empty() {
            text += "unit -> ";
        }
        for describe in arguments {
            text += &describe(to);
            text += " -> ";
        }
        text + &result(to)
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
    /// Nothing yet.
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
            Some(root) => Ok(unsafe { root.erase().cast() }),
            None => Err(self.missing(rt)),
        }
    }

    #[cold]
    #[inline(never)]
    fn missing(&self, rt: &mut Runtime) -> Exception {
        let text =
            alloc::format!("the OCaml function {} is not registered: link the module that imports it", self.name);
        super::raise::failure(rt, &text)
    }
}

/// What an imported function returns.
#[inline]
pub fn imported<R: for<'x> FromOCaml<'x>>(result: Fresh<'_, R::Type>) -> Result<R, Exception> {
    match R::from_ocaml(result.rt(), result.value()) {
        Ok(result) => Ok(result),
        Err(error) => Err(unreadable(result.discard(), &error)),
    }
}

#[cold]
#[inline(never)]
fn unreadable(rt: &mut Runtime, error: &ConvertError) -> Exception {
    super::raise::invalid_argument(rt, &alloc::format!("result: {error}"))
}

/// The type of an argument or a result.
pub fn describe_type<R: Typed>(to: &mut Definitions) -> String
where
    R::Type: OCamlType,
{
    R::Type::describe(to)
}

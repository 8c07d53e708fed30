// SPDX-License-Identifier: MIT
use crate::{Definitions, Element, OCamlType, Typed};
use alloc::string::String;

/// A type parameter of an exported function, where the function has to know that it is one: it stands for any type of
/// OCaml, another one in each call.
///
/// ```
/// # use ocaml_boxroot::*;
/// struct Cell<A>(Root<A>);
/// ocaml_abstract! { Cell<A> = "cell"; }
/// #[export]
/// fn create<A: TypeVar>(rt: &mut Runtime, v: Root<A>) -> Fresh<'_, Boxed<Cell<A>>> {
///     rt.boxed_generic(Cell(v))
/// }
/// #[export]
/// fn get<A: TypeVar>(rt: &Runtime, cell: &Cell<A>) -> Root<A> {
///     cell.0.dup(rt)
/// }
/// # library! { name = "cells", exports = [create, get] }
/// ```
///
/// An exported function is compiled once, for a type of which its code knows nothing but this trait: so what came in
/// as `A` can go out as `A` in the same call, or as part of a payload whose type says `A`, and in no other way. With a
/// bound `'static` it could also be kept in a static, by its type's identifier, which is the same for each `A`.
// Only `Erased` implements it. That it is `'static` must not be seen.
pub trait TypeVar: OCamlType + Typed<Type = Self> + Element + sealed::TypeVar {}

mod sealed {
    pub trait TypeVar {}
}

/// What exported functions are compiled for, in place of their type parameters. It has no values, and no name in OCaml:
/// a type with it cannot be described, so it is of no use outside of such functions.
#[doc(hidden)]
#[derive(Debug)]
pub enum Erased {}

impl TypeVar for Erased {}
impl sealed::TypeVar for Erased {}

// SAFETY: it is refused.
unsafe impl OCamlType for Erased {
    fn describe(to: &mut Definitions) -> String {
        to.refuse("a type variable stands where no function is generic".into());
        "_".into()
    }
}
impl Typed for Erased {
    type Type = Self;
}
impl Element for Erased {}

// SPDX-License-Identifier: MIT
//! A custom block that owns a root.
use ocaml_interop::*;
use std::borrow::Borrow;

pub struct Any;
pub struct Owned(BoxRoot<Any>);

#[export]
fn owned_create(cr: &mut OCamlRuntime, v: BoxRoot<Any>) -> OCaml<DynBox<Owned>> {
    OCaml::box_value(cr, Owned(v))
}

#[export]
fn owned_get(cr: &mut OCamlRuntime, block: OCaml<DynBox<Owned>>) -> OCaml<Any> {
    let Owned(root) = block.borrow();
    root.get(cr)
}

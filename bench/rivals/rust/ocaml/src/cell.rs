// SPDX-License-Identifier: MIT
//! A custom block that owns a root.
use ocaml::{Pointer, Value};

pub struct Owned(Value);
ocaml::custom!(Owned);

#[ocaml::func]
pub fn owned_create(v: Value) -> Pointer<Owned> {
    Pointer::alloc_custom(Owned(v.root()))
}

#[ocaml::func]
pub fn owned_get(block: &Owned) -> Value {
    block.0.clone()
}

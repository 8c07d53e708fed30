// SPDX-License-Identifier: MIT
//! A custom block that owns a root.
use ocaml_boxroot::*;

pub struct Owned<A>(Root<A>);

ocaml_abstract! {
    Owned<A> = "cell";
}

#[export(unsafe(symbol = "owned_create"))]
pub fn create<A: TypeVar>(rt: &mut Runtime, v: Root<A>) -> ValueGuard<'_, Inline<Owned<A>>> {
    rt.inline_erased(Owned(v))
}

#[export(unsafe(symbol = "owned_get"))]
pub fn get<'a, A: TypeVar>(rt: &'a Runtime, cell: Value<'a, Inline<Owned<A>>>) -> Value<'a, A> {
    cell.payload_erased(rt).0.get(rt)
}

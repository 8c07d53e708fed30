// SPDX-License-Identifier: MIT
//! The externals of programs/client.ml: a table of roots.

use ocaml_interop::{export, BoxRoot, DynBox, OCaml, OCamlInt, OCamlRuntime, ToOCaml};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

/// Any OCaml value.
pub struct Any;

/// `ocaml-interop` does not let its roots cross threads; Boxroot allows it.
struct Kept(BoxRoot<Any>);
unsafe impl Send for Kept {}

fn table() -> std::sync::MutexGuard<'static, HashMap<i64, Kept>> {
    static TABLE: OnceLock<Mutex<HashMap<i64, Kept>>> = OnceLock::new();
    TABLE.get_or_init(Default::default).lock().unwrap()
}

#[export]
fn client_keep(cr: &mut OCamlRuntime, key: OCaml<OCamlInt>, v: OCaml<Any>) -> OCaml<()> {
    assert!(table().insert(key.to_rust(), Kept(v.root())).is_none());
    OCaml::unit()
}

#[export]
fn client_get(cr: &mut OCamlRuntime, key: OCaml<OCamlInt>) -> OCaml<Any> {
    let key: i64 = key.to_rust();
    table()[&key].0.get(cr)
}

#[export]
fn client_update(cr: &mut OCamlRuntime, key: OCaml<OCamlInt>, v: OCaml<Any>) -> OCaml<()> {
    let key: i64 = key.to_rust();
    table().get_mut(&key).unwrap().0.keep(v);
    OCaml::unit()
}

#[export]
fn client_drop(cr: &mut OCamlRuntime, key: OCaml<OCamlInt>) -> OCaml<()> {
    let key: i64 = key.to_rust();
    assert!(table().remove(&key).is_some());
    OCaml::unit()
}

/// Drops the roots of keys first..=last on a thread unknown to OCaml, while this thread holds the lock.
#[export]
fn client_drop_elsewhere(cr: &mut OCamlRuntime, first: OCaml<OCamlInt>, last: OCaml<OCamlInt>) -> OCaml<OCamlInt> {
    let (first, last): (i64, i64) = (first.to_rust(), last.to_rust());
    let taken: Vec<Kept> = (first..=last).filter_map(|key| table().remove(&key)).collect();
    let n = taken.len() as i64;
    std::thread::spawn(move || drop(taken)).join().unwrap();
    n.to_ocaml(cr)
}

#[export]
fn client_count(cr: &mut OCamlRuntime, unit: OCaml<()>) -> OCaml<OCamlInt> {
    let _ = unit;
    let n = table().len() as i64;
    n.to_ocaml(cr)
}

/// A custom block whose finaliser deletes two roots.
pub struct Holder(BoxRoot<Any>, #[allow(dead_code)] BoxRoot<Any>);

#[export]
fn client_holder(cr: &mut OCamlRuntime, a: BoxRoot<Any>, b: BoxRoot<Any>) -> OCaml<DynBox<Holder>> {
    OCaml::box_value(cr, Holder(a, b))
}

#[export]
fn client_holder_first(cr: &mut OCamlRuntime, h: OCaml<DynBox<Holder>>) -> OCaml<Any> {
    let holder: &Holder = h.borrow();
    holder.0.get(cr)
}

/// Calls the closure; an exception becomes an Error.
#[export]
fn client_apply(cr: &mut OCamlRuntime, f: BoxRoot<fn(Any) -> Any>, v: BoxRoot<Any>) -> OCaml<Result<Any, String>> {
    let result: Result<BoxRoot<Any>, String> = match f.try_call(cr, &v) {
        Ok(w) => Ok(w.root()),
        Err(e) => Err(e.message().unwrap_or_else(|| "no message".to_owned())),
    };
    result.to_ocaml(cr)
}

// SPDX-License-Identifier: MIT
//! The externals of programs/client.ml with the crate `ocaml`: a table of roots.

use ocaml::{CamlError, Error, Int, Pointer, Value};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

/// A root; the crate does not let it cross threads, Boxroot allows it.
struct Kept(Value);
unsafe impl Send for Kept {}

fn table() -> std::sync::MutexGuard<'static, HashMap<Int, Kept>> {
    static TABLE: OnceLock<Mutex<HashMap<Int, Kept>>> = OnceLock::new();
    TABLE.get_or_init(Default::default).lock().unwrap()
}

#[ocaml::func]
pub fn client_keep(key: Int, v: Value) {
    assert!(table().insert(key, Kept(v.root())).is_none());
}

#[ocaml::func]
pub fn client_get(key: Int) -> Value {
    table()[&key].0.clone()
}

#[ocaml::func]
pub fn client_update(key: Int, v: Value) {
    unsafe { table().get_mut(&key).unwrap().0.modify(gc, v) }
}

#[ocaml::func]
pub fn client_drop(key: Int) {
    assert!(table().remove(&key).is_some());
}

/// Drops the roots of keys first..=last on a thread unknown to OCaml, while this thread holds the lock.
#[ocaml::func]
pub fn client_drop_elsewhere(first: Int, last: Int) -> Int {
    let taken: Vec<Kept> = (first..=last).filter_map(|key| table().remove(&key)).collect();
    let n = taken.len() as Int;
    std::thread::spawn(move || drop(taken)).join().unwrap();
    n
}

#[ocaml::func]
pub fn client_count() -> Int {
    table().len() as Int
}

/// A custom block whose finaliser deletes two roots.
struct Holder(Value, #[allow(dead_code)] Value);
ocaml::custom!(Holder);

#[ocaml::func]
pub fn client_holder(a: Value, b: Value) -> Pointer<Holder> {
    Pointer::alloc_custom(Holder(a.root(), b.root()))
}

#[ocaml::func]
pub fn client_holder_first(h: Pointer<Holder>) -> Value {
    h.as_ref().0.clone()
}

/// Calls the closure; an exception becomes an Error.
#[ocaml::func]
pub fn client_apply(f: Value, v: Value) -> Value {
    unsafe {
        match f.call1(gc, v) {
            Ok(w) => Value::result_ok(gc, w),
            Err(Error::Caml(CamlError::Exception(e))) => {
                // Failure s and its like: a block of the exception and its argument.
                let text =
                    if e.tag() == ocaml::Tag(0) { e.field(1).string_val().to_owned() } else { "no message".to_owned() };
                Value::result_error(gc, text.as_str())
            }
            Err(_) => Value::result_error(gc, "not an exception"),
        }
    }
}

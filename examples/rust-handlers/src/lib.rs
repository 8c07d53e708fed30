// SPDX-License-Identifier: MIT
//! Event handlers: a table of Rust's holds OCaml closures, which any domain may add, call and remove.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

type Handler = Root<Fun<(Str,), Unit>>;

static HANDLERS: LazyLock<RwLock<HashMap<String, Arc<Handler>>>> = LazyLock::new(RwLock::default);

/// Calls `handler` for the events of this name, in place of an earlier one.
#[export]
fn on(rt: &mut Runtime, event: &str, handler: Handler) {
    // While this waits for the table, the domain's lock is released: a collection by another domain, which has the
    // table, need not wait for this one.
    let mut handlers = rt.write(&HANDLERS).unwrap();
    let earlier = handlers.insert(event.to_owned(), Arc::new(handler));
    drop(handlers);
    drop(earlier); // the root ends here, or with the last call that is under way; on whichever domain that is
}

/// Removes the handler; whether there was one.
#[export]
fn off(rt: &mut Runtime, event: &str) -> bool {
    let removed = rt.write(&HANDLERS).unwrap().remove(event);
    removed.is_some()
}

/// Calls the handler with the text; whether there is one. What it raises is raised.
#[export]
fn emit(rt: &mut Runtime, event: &str, text: ValueRef<'_, Str>) -> Result<bool, Exception> {
    // Not called with the table locked: handlers may add and remove handlers.
    let handler = rt.read(&HANDLERS).unwrap().get(event).cloned();
    match handler {
        Some(handler) => handler.call(rt, (text,)).map(|_| true),
        None => Ok(false),
    }
}

/// How many handlers there are.
#[export]
fn count(rt: &mut Runtime) -> usize {
    rt.read(&HANDLERS).unwrap().len()
}

library! {
    /// Event handlers, for all domains.
    name = "events",
    exports = [on, off, emit, count],
}

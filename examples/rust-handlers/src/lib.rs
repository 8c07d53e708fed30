// SPDX-License-Identifier: MIT
//! Event handlers: a table of Rust's holds OCaml closures, which any domain may add, call and remove.
#![forbid(unsafe_code)]

use ocaml_boxroot::{self as ocaml, prelude::*};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

type Handler = Root<Fun<(Str,), Unit>>;

static HANDLERS: LazyLock<Locked<HashMap<String, Arc<Handler>>>> = LazyLock::new(Locked::default);

/// Calls `handler` for the events of this name, in place of an earlier one.
#[export]
fn on(rt: &mut Runtime, event: &str, handler: Handler) {
    // While this waits for the table, the domain's lock is released: a collection by another domain, which has the
    // table, need not wait for this one.
    let earlier = HANDLERS.with(rt, |_, handlers| handlers.insert(event.to_owned(), Arc::new(handler)));
    drop(earlier); // the root ends here, or with the last call that is under way; on whichever domain that is
}

/// Removes the handler; whether there was one.
#[export]
fn off(rt: &mut Runtime, event: &str) -> bool {
    HANDLERS.with(rt, |_, handlers| handlers.remove(event)).is_some()
}

/// Calls the handler with the text; whether there is one. What it raises is raised.
#[export]
fn emit(rt: &mut Runtime, event: &str, text: ValueRef<'_, Str>) -> Result<bool, ocaml::Exception> {
    // Nothing can be called inside `with`: handlers may add and remove handlers.
    match HANDLERS.with(rt, |_, handlers| handlers.get(event).cloned()) {
        Some(handler) => handler.call(rt, (text,)).map(|_| true),
        None => Ok(false),
    }
}

/// How many handlers there are.
#[export]
fn count(rt: &mut Runtime) -> usize {
    HANDLERS.with(rt, |_, handlers| handlers.len())
}

library! {
    /// Event handlers, for all domains.
    name = "events",
    exports = [on, off, emit, count],
}

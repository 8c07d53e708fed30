// SPDX-License-Identifier: MIT
//! Asynchronous tasks in Rust that complete promises of OCaml. `Root`s live across `.await`, on whichever thread a task
//! goes on; the runtime does not: `attach` gets it where it is needed, for as long as it is needed.
#![forbid(unsafe_code)]

mod executor;

use executor::{sleep, spawn, Sleep};
use ocaml_boxroot::{self as ocaml, prelude::*};
use std::time::Duration;

/// Completes a promise of OCaml, on a thread of the executor. An exception in the callback is printed, and does not end
/// the task.
fn complete(call: impl FnOnce(&mut Runtime) -> Result<(), ocaml::Exception>) {
    match attach(call) {
        Ok(Ok(())) => (),
        Ok(Err(exception)) => eprintln!("a callback raised {exception}"),
        Err(error) => eprintln!("OCaml is not there any more: {error}"),
    }
}

/// The word in capitals, after a pause.
async fn capitals(word: Root<Str>, pause: Sleep) -> Option<Root<Str>> {
    pause.await;
    attach(|rt| {
        let capitals = String::from_utf8_lossy(word.get(rt).as_bytes()).to_uppercase();
        rt.string(capitals).root()
    })
    .ok()
}

/// Calls `resolve` with the word in capitals, after so many milliseconds.
#[export]
fn shout(rt: &mut Runtime, word: Root<Str>, time: u32, resolve: Root<Fun<(Str,), Unit>>) {
    let _ = rt;
    let pause = sleep(Duration::from_millis(time.into()));
    spawn(async move {
        if let Some(word) = capitals(word, pause).await {
            complete(|rt| resolve.call(rt, (&word,)).map(drop));
        }
    });
}

/// Calls `resolve` with the last of the values, one by one, with a pause before each: any OCaml values, for any type of
/// them. The task has the calls, and need not know the type.
#[export]
fn relay<A>(rt: &mut Runtime, values: ValueRef<'_, ocaml::List<A>>, resolve: Root<Fun<(A,), Unit>>) {
    let calls: Vec<ocaml::Delayed<Unit>> = values.get(rt).iter().map(|v| resolve.delay(rt, v.root(rt))).collect();
    spawn(async move {
        for call in calls {
            sleep(Duration::from_millis(1)).await;
            complete(|rt| call.call(rt).map(drop));
        }
    });
}

/// Lets so many milliseconds pass.
#[export]
fn pass(time: u32) {
    executor::pass(Duration::from_millis(time.into()));
}

/// How many tasks wait for time to pass.
#[export]
fn sleepers() -> usize {
    executor::sleepers()
}

library! {
    /// Asynchronous tasks.
    name = "tasks",
    exports = [shout, relay, pass, sleepers],
}

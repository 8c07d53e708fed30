// SPDX-License-Identifier: MIT
use crate::{Any, AttachError, Exception, Fun, Int, Root, Runtime, Unit, Value};
use std::any::Any as Payload;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

/// Why a domain could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program lacks the OCaml module `Ocaml_boxroot_domains`, or this is OCaml 4.
    NoDomains,
    /// OCaml raised an exception: there are too many domains, or memory is short.
    Exception(Exception),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::NoDomains => {
                f.write_str("no domains: OCaml 4, or the module Ocaml_boxroot_domains is not linked")
            }
            SpawnError::Exception(error) => write!(f, "the domain could not be started: {error}"),
        }
    }
}
impl std::error::Error for SpawnError {}

/// Why a domain has no result.
#[non_exhaustive]
pub enum JoinError {
    /// Its closure panicked with this payload.
    Panicked(Box<dyn Payload + Send>),
    /// OCaml raised an exception while waiting.
    Exception(Exception),
    /// Its closure could not run: no memory for roots.
    Attach(AttachError),
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(_) => f.write_str("the domain's closure panicked"),
            JoinError::Exception(error) => write!(f, "waiting for a domain raised {error}"),
            JoinError::Attach(error) => write!(f, "the domain's closure could not run: {error}"),
        }
    }
}
impl std::error::Error for JoinError {}

/// A domain that runs a closure of ours. Dropping it lets the domain run on.
#[derive(Debug)]
pub struct DomainHandle<R> {
    domain: Root<Any>,
    packet: Arc<Packet<R>>,
}

struct Packet<R> {
    closure: Mutex<Option<Closure<R>>>,
    result: Mutex<Option<std::thread::Result<R>>>,
}
type Closure<R> = Box<dyn FnOnce(&mut Runtime) -> R + Send>;

impl<R> fmt::Debug for Packet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packet")
    }
}

trait Job: Send + Sync {
    fn run(&self, rt: &mut Runtime);
}

impl<R: Send> Job for Packet<R> {
    fn run(&self, rt: &mut Runtime) {
        let Some(closure) = self.closure.lock().ok().and_then(|mut closure| closure.take()) else { return };
        let result = catch_unwind(AssertUnwindSafe(|| closure(rt)));
        if let Ok(mut place) = self.result.lock() {
            *place = Some(result);
        }
    }
}

/// What OCaml hands to the new domain: the address of a box, as an immediate.
type Parcel = Box<Arc<dyn Job>>;

/// Called by the new domain.
///
/// # Safety
/// `job` comes from `spawn_domain`, once; this thread holds the domain lock and has no usable Runtime.
#[no_mangle]
unsafe extern "C" fn ocaml_boxroot_run_job(job: isize) -> isize {
    // SAFETY: by the caller; no panic leaves Job::run.
    unsafe {
        let parcel: Parcel = Box::from_raw((job & !1) as *mut Arc<dyn Job>);
        crate::entry::with_lock_held(|rt| parcel.run(rt));
    }
    1
}

impl Runtime {
    /// Starts a domain that runs `f`, and ends with it; a panic comes out of [`join`](DomainHandle::join). Takes as
    /// long as starting a thread, and OCaml has room for a limited number of domains (128, unless `OCAMLRUNPARAM` says
    /// otherwise). Not in OCaml 4: [`SpawnError::NoDomains`].
    pub fn spawn_domain<R: Send + 'static>(
        &mut self,
        f: impl FnOnce(&mut Runtime) -> R + Send + 'static,
    ) -> Result<DomainHandle<R>, SpawnError> {
        let Some(spawn) = self.named("ocaml_boxroot.spawn_domain") else { return Err(SpawnError::NoDomains) };
        // SAFETY: Ocaml_boxroot_domains registers it with this type.
        let spawn = unsafe { spawn.cast::<Fun<(Int,), Any>>() }.root(self);
        let packet =
            Arc::new(Packet { closure: Mutex::new(Some(Box::new(f) as Closure<R>)), result: Mutex::new(None) });
        let parcel: Parcel = Box::new(packet.clone());
        let address = Box::into_raw(parcel);
        // SAFETY: an immediate, since the box is aligned.
        let job: Value<'static, Int> = unsafe { Value::from_raw(address as isize | 1) };
        match spawn.call(self, (job,)) {
            Ok(domain) => Ok(DomainHandle { domain: domain.root(), packet }),
            Err(error) => {
                // SAFETY: no domain was started, so nobody else takes the parcel.
                drop(unsafe { Box::from_raw(address) });
                Err(SpawnError::Exception(error))
            }
        }
    }
}

impl<R> DomainHandle<R> {
    /// Waits for the domain to end, with the lock released. The result of its closure, or what it panicked with.
    pub fn join(self, rt: &mut Runtime) -> Result<R, JoinError> {
        if let Some(join) = rt.named("ocaml_boxroot.join_domain") {
            // SAFETY: Ocaml_boxroot_domains registers it with this type.
            let join = unsafe { join.cast::<Fun<(Any,), Unit>>() }.root(rt);
            join.call(rt, (&self.domain,)).map_err(JoinError::Exception)?;
        }
        let result = self.packet.result.lock().ok().and_then(|mut result| result.take());
        match result {
            Some(Ok(result)) => Ok(result),
            Some(Err(payload)) => Err(JoinError::Panicked(payload)),
            None => Err(JoinError::Attach(AttachError::OutOfMemory)),
        }
    }
}

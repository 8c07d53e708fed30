// SPDX-License-Identifier: MIT
//! Domains, and waiting for other threads with the domain lock released.
use crate::runtime::with_lock_held;
use crate::{glue, Any, AttachError, Exception, Fresh, Fun, Root, Runtime, Unit};
use core::ffi::c_void;
use std::any::Any as Payload;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, RecvError, TryRecvError};
use std::sync::{
    Arc, LockResult, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    TryLockResult,
};
use std::thread::JoinHandle;

impl Runtime {
    /// Locks a Rust mutex; the domain lock is released while it is waited for. An error if it is poisoned, as in Rust.
    /// Where nobody has the mutex, it costs what it costs in Rust.
    ///
    /// ```
    /// # use ocaml_boxroot::*;
    /// use std::sync::Mutex;
    /// fn remember(rt: &mut Runtime, table: &Mutex<Vec<Root<Str>>>, word: ValueRef<'_, Str>) {
    ///     let mut table = rt.lock(table).unwrap();
    ///     table.push(word.get(rt).root(rt));
    /// }
    /// ```
    pub fn lock<'m, T: ?Sized>(&mut self, mutex: &'m Mutex<T>) -> LockResult<MutexGuard<'m, T>> {
        ready(mutex.try_lock()).unwrap_or_else(|| self.release(|| mutex.lock()))
    }

    /// Locks for reading; the domain lock is released while it is waited for.
    pub fn read<'m, T: ?Sized>(&mut self, lock: &'m RwLock<T>) -> LockResult<RwLockReadGuard<'m, T>> {
        ready(lock.try_read()).unwrap_or_else(|| self.release(|| lock.read()))
    }

    /// Locks for writing; the domain lock is released while it is waited for.
    pub fn write<'m, T: ?Sized>(&mut self, lock: &'m RwLock<T>) -> LockResult<RwLockWriteGuard<'m, T>> {
        ready(lock.try_write()).unwrap_or_else(|| self.release(|| lock.write()))
    }

    /// Waits for a thread to end, with the domain lock released. An error is what the thread panicked with.
    pub fn join<T>(&mut self, thread: JoinHandle<T>) -> std::thread::Result<T> {
        self.release(|| thread.join())
    }

    /// The next message; the domain lock is released while it is waited for. An error when no sender is left.
    pub fn recv<T>(&mut self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        match receiver.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Disconnected) => Err(RecvError),
            Err(TryRecvError::Empty) => self.release(|| receiver.recv()),
        }
    }

    /// The value of the cell, made by `f` if there is none, with the lock; the domain lock is released while another
    /// thread makes it. `f` must not use the same cell.
    pub fn once<'c, T>(&mut self, cell: &'c OnceLock<T>, f: impl FnOnce(&mut Runtime) -> T) -> &'c T {
        struct ReleaseAgain;
        impl Drop for ReleaseAgain {
            fn drop(&mut self) {
                // SAFETY: this thread took the lock back. The thread stays one that released it, whatever the result.
                unsafe { glue::obx_release() };
            }
        }
        if let Some(value) = cell.get() {
            return value;
        }
        let record = self.domain().as_ptr();
        self.release(|| {
            cell.get_or_init(|| {
                // SAFETY: this thread released the lock (in `release`), and is to come back.
                unsafe { glue::obx_reacquire(glue::HELD) };
                let _release = ReleaseAgain;
                // SAFETY: the lock of the same domain, until the end of `f`; the other Runtime is borrowed by `release`
                // (LOCK).
                f(unsafe { Runtime::at(record) })
            })
        })
    }
}

/// What needs no waiting.
fn ready<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(error)) => Some(Err(error)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Why a domain could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// This is OCaml 4, or the program lacks the OCaml module `Ocaml_boxroot`, which the text of
    /// [`library!`](crate::library) refers to.
    NoDomains,
    /// OCaml raised an exception: there are too many domains, or memory is short.
    Exception(Exception),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::NoDomains => {
                let why = if cfg!(ocaml5) { "the OCaml module Ocaml_boxroot is not linked" } else { "this is OCaml 4" };
                write!(f, "no domains: {why}")
            }
            SpawnError::Exception(error) => write!(f, "the domain could not be started: {error}"),
        }
    }
}
impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SpawnError::Exception(error) => Some(error),
            SpawnError::NoDomains => None,
        }
    }
}

/// Why a domain has no result.
#[non_exhaustive]
pub enum JoinError {
    /// Its closure panicked with this payload. (In a mutex, since threads may share the error.)
    Panicked(Mutex<Box<dyn Payload + Send>>),
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
impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JoinError::Exception(error) => Some(error),
            _ => None,
        }
    }
}

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

/// What a job's block holds: the address of this box.
type Parcel = Box<Arc<dyn Job>>;

/// # Safety
/// The parcel of a job that was taken just now; this thread holds the domain lock and has no usable Runtime.
unsafe extern "C" fn run(parcel: *mut c_void) {
    // SAFETY: by the caller; no panic leaves Job::run.
    unsafe {
        let parcel: Parcel = Box::from_raw(parcel.cast());
        with_lock_held(|rt| parcel.run(rt));
    }
}

impl Runtime {
    /// Starts a domain that runs `f`, and ends with it; a panic comes out of [`join`](DomainHandle::join). Takes as
    /// long as starting a thread, and OCaml has room for a limited number of domains (128, unless `OCAMLRUNPARAM` says
    /// otherwise). Not in OCaml 4: [`SpawnError::NoDomains`].
    pub fn spawn_domain<R: Send + 'static>(
        &mut self,
        f: impl FnOnce(&mut Runtime) -> R + Send + 'static,
    ) -> Result<DomainHandle<R>, SpawnError> {
        // SAFETY: a function of that type.
        let spawn = unsafe { self.sealed::<Fun<(Any,), Any>>(glue::SPAWN) }.filter(|_| cfg!(ocaml5));
        let Some(spawn) = spawn.map(|spawn| spawn.root(self)) else { return Err(SpawnError::NoDomains) };
        let packet =
            Arc::new(Packet { closure: Mutex::new(Some(Box::new(f) as Closure<R>)), result: Mutex::new(None) });
        let parcel: Parcel = Box::new(packet.clone());
        // SAFETY: LOCK. What `run` takes.
        let job = unsafe { glue::obx_job(run, Box::into_raw(parcel).cast()) };
        // SAFETY: the result of the call just now.
        let job = unsafe { Fresh::<Any>::new(self, job) }.root();
        match spawn.call(self, (&job,)) {
            Ok(domain) => Ok(DomainHandle { domain: domain.root(), packet }),
            Err(error) => {
                // SAFETY: LOCK.
                let parcel = unsafe { glue::obx_take_job(job.get(self).raw()) };
                if !parcel.is_null() {
                    // SAFETY: no domain took it.
                    drop::<Parcel>(unsafe { Box::from_raw(parcel.cast()) });
                }
                Err(SpawnError::Exception(error))
            }
        }
    }
}

impl<R> DomainHandle<R> {
    /// Waits for the domain to end, with the lock released. The result of its closure, or what it panicked with.
    pub fn join(self, rt: &mut Runtime) -> Result<R, JoinError> {
        // SAFETY: a function of that type, for what the other one returned.
        if let Some(join) = unsafe { rt.sealed::<Fun<(Any,), Unit>>(glue::JOIN) } {
            let join = join.root(rt);
            join.call(rt, (&self.domain,)).map_err(JoinError::Exception)?;
        }
        let result = self.packet.result.lock().ok().and_then(|mut result| result.take());
        match result {
            Some(Ok(result)) => Ok(result),
            Some(Err(payload)) => Err(JoinError::Panicked(Mutex::new(payload))),
            None => Err(JoinError::Attach(AttachError::OutOfMemory)),
        }
    }
}

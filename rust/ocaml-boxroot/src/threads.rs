// SPDX-License-Identifier: MIT
//! Domains, and waiting for other threads with the domain lock released.
use crate::panics::contain;
use crate::runtime::with_lock_held;
use crate::{glue, Any, AttachError, Exception, Fun, Root, Runtime, Unit, ValueGuard};
use core::ffi::c_void;
use std::any::Any as Payload;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{
    Arc, Condvar, LockResult, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    TryLockResult,
};
use std::thread::JoinHandle;
use std::time::Duration;

/// Data that threads and domains share, such as roots: a mutex that cannot deadlock with the domain lock.
///
/// [`with`](Locked::with) is the only way to the data. It takes the capability, and lends `&Runtime` for the time of
/// the closure: so whoever has the data holds the domain lock too, and can neither release it, nor call OCaml, nor
/// collect, nor have a second `Locked` at the same time. Whoever waits for the data has released the domain lock.
///
/// ```
/// # use ocaml_boxroot::prelude::*;
/// static WORDS: Locked<Vec<Root<Str>>> = Locked::new(Vec::new());
///
/// fn remember(rt: &mut Runtime, word: Root<Str>) {
///     WORDS.with(rt, |_, words| words.push(word));
/// }
/// fn longest(rt: &mut Runtime) -> Option<Root<Str>> {
///     WORDS.with(rt, |rt, words| Some(words.iter().max_by_key(|word| word.get(rt).as_bytes().len())?.clone_ref(rt)))
/// }
/// ```
#[derive(Default)]
pub struct Locked<T: ?Sized>(Mutex<T>);

impl<T> Locked<T> {
    /// Data to share.
    pub const fn new(data: T) -> Self {
        Locked(Mutex::new(data))
    }

    /// The data, which are shared no more. It panics where [`with`](Locked::with) does.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(|_| poisoned())
    }
}

impl<T: ?Sized> Locked<T> {
    /// Runs `f` with the data, which nobody else has meanwhile. Where another domain has them, the domain lock is
    /// released while this waits.
    ///
    /// A panic in `f` leaves the data *poisoned*, perhaps half changed: the next call panics, until
    /// [`clear_poison`](Locked::clear_poison).
    pub fn with<R>(&self, rt: &mut Runtime, f: impl FnOnce(&Runtime, &mut T) -> R) -> R {
        let mut data = rt.lock_mutex(&self.0).unwrap_or_else(|_| poisoned());
        f(rt, &mut data)
    }

    /// Whether a panic has left the data poisoned.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// Takes the data for sound.
    pub fn clear_poison(&self) {
        self.0.clear_poison()
    }
}

#[cold]
fn poisoned() -> ! {
    panic!("a panic has left the data half changed")
}

impl<T: ?Sized> fmt::Debug for Locked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Locked")
    }
}

/// How seldom waiting looks after signals.
const LONGEST: Duration = Duration::from_millis(20);

impl Runtime {
    /// Locks a mutex of Rust's that other code has; for your own data [`Locked`] is safer. The domain lock is released
    /// while this waits. An error if it is poisoned, as in Rust. Where nobody has the mutex, it costs what it costs in
    /// Rust.
    ///
    /// While you hold the mutex, do not let the domain lock go: neither release it, nor call OCaml or collect. A thread
    /// that waits for the mutex with the domain lock, by `Mutex::lock`, would wait for you, and you for it.
    ///
    /// ```
    /// # use ocaml_boxroot::prelude::*;
    /// use std::sync::Mutex;
    /// fn remember(rt: &mut Runtime, table: &Mutex<Vec<Root<Str>>>, word: ValueRef<'_, Str>) {
    ///     let mut table = rt.lock_mutex(table).unwrap();
    ///     table.push(word.get(rt).root(rt));
    /// }
    /// ```
    pub fn lock_mutex<'m, T: ?Sized>(&mut self, mutex: &'m Mutex<T>) -> LockResult<MutexGuard<'m, T>> {
        self.take(|| ready(mutex.try_lock()), || drop(mutex.lock()))
    }

    /// Locks for reading, as [`lock_mutex`](Runtime::lock_mutex) does.
    pub fn read_rwlock<'m, T: ?Sized>(&mut self, lock: &'m RwLock<T>) -> LockResult<RwLockReadGuard<'m, T>> {
        self.take(|| ready(lock.try_read()), || drop(lock.read()))
    }

    /// Locks for writing, as [`lock_mutex`](Runtime::lock_mutex) does.
    pub fn write_rwlock<'m, T: ?Sized>(&mut self, lock: &'m RwLock<T>) -> LockResult<RwLockWriteGuard<'m, T>> {
        self.take(|| ready(lock.try_write()), || drop(lock.write()))
    }

    /// What `attempt` gets. It is made with the domain lock, and `wait`, which ends when another attempt is worth
    /// while, without it. So nobody waits for the domain lock with the other lock in hand: a thread that holds the
    /// domain lock may be waiting for that one.
    fn take<G>(&mut self, attempt: impl Fn() -> Option<G>, wait: impl Fn()) -> G {
        loop {
            if let Some(guard) = attempt() {
                return guard;
            }
            self.release(&wait);
        }
    }

    /// Waits for a thread to end, with the domain lock released; OCaml's signal handlers run meanwhile. When one of
    /// them raises, that is the error, and the thread runs on, detached.
    pub fn join<T>(&mut self, thread: JoinHandle<T>) -> Result<T, JoinError> {
        self.wait(|time| {
            if !thread.is_finished() {
                std::thread::sleep(time);
            }
            thread.is_finished().then_some(())
        })
        .map_err(JoinError::Exception)?;
        self.release(|| thread.join()).map_err(|payload| JoinError::Panicked(Mutex::new(payload)))
    }

    /// The next message; the domain lock is released while it is waited for, and OCaml's signal handlers run.
    pub fn recv<T>(&mut self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        if let Ok(message) = receiver.try_recv() {
            return Ok(message);
        }
        let result = self.wait(|time| match receiver.recv_timeout(time) {
            Ok(message) => Some(Ok(message)),
            Err(RecvTimeoutError::Disconnected) => Some(Err(RecvError::Disconnected)),
            Err(RecvTimeoutError::Timeout) => None,
        });
        result.unwrap_or_else(|exception| Err(RecvError::Exception(exception)))
    }

    /// Calls `look` with the domain lock released until it finds something; it may wait for the time that it is given.
    /// In between, what is due in OCaml runs: an exception ends it. Rust's own waiting cannot be interrupted, so this
    /// wakes up by itself, the more seldom the longer it takes.
    fn wait<R>(&mut self, look: impl Fn(Duration) -> Option<R>) -> Result<R, Exception> {
        let mut time = Duration::from_micros(20);
        loop {
            if let Some(result) = self.release(|| look(time)) {
                return Ok(result);
            }
            self.poll()?;
            time = (time * 2).min(LONGEST);
        }
    }

    /// The value of the cell, made by `f` if there is none. Threads that find it empty at the same time run `f` each,
    /// and all get the value that is made first: none of them waits for another one's `f`.
    pub fn get_or_init<'c, T>(&mut self, cell: &'c OnceLock<T>, f: impl FnOnce(&mut Runtime) -> T) -> &'c T {
        if let Some(value) = cell.get() {
            return value;
        }
        let value = f(self);
        self.release(|| cell.get_or_init(|| value))
    }
}

/// Why there is no message.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecvError {
    /// No sender is left.
    Disconnected,
    /// A signal handler of OCaml's raised this exception.
    Exception(Exception),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Disconnected => f.write_str("no sender is left"),
            RecvError::Exception(error) => write!(f, "waiting for a message raised {error}"),
        }
    }
}
impl std::error::Error for RecvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecvError::Exception(error) => Some(error),
            RecvError::Disconnected => None,
        }
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

/// Why a domain, or a thread, has no result.
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
            JoinError::Panicked(_) => f.write_str("the closure panicked"),
            JoinError::Exception(error) => write!(f, "waiting for its end raised {error}"),
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
    done: Condvar,
}
type Closure<R> = Box<dyn FnOnce(&mut Runtime) -> R + Send>;

impl<R> fmt::Debug for Packet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packet")
    }
}

impl<R> Packet<R> {
    /// Waits so long for the closure to end. Says so also where it did not begin: OCaml knows whether it ever will, and
    /// its own waiting, which cannot be interrupted, is short then.
    fn wait(&self, time: Duration) -> Option<()> {
        let Ok(result) = self.result.lock() else { return Some(()) };
        let (result, _) = self.done.wait_timeout_while(result, time, |result| result.is_none()).ok()?;
        let begun = self.closure.lock().is_ok_and(|closure| closure.is_none());
        (result.is_some() || (!begun && time >= LONGEST)).then_some(())
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
            self.done.notify_one();
        }
    }
}

/// What a job's block holds: the address of this box.
type Parcel = Box<Arc<dyn Job>>;

/// # Safety
/// The parcel of a job that was taken just now; this thread holds the domain lock and has no usable Runtime.
unsafe extern "C" fn run(parcel: *mut c_void) {
    // SAFETY: by the caller.
    let parcel: Parcel = unsafe { Box::from_raw(parcel.cast()) };
    // Where nobody has the handle any more the result is dropped here, and that may panic.
    contain(move || {
        // SAFETY: by the caller.
        unsafe { with_lock_held(|rt| parcel.run(rt)) };
    });
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
        let closure = Mutex::new(Some(Box::new(f) as Closure<R>));
        let packet = Arc::new(Packet { closure, result: Mutex::new(None), done: Condvar::new() });
        let parcel: Parcel = Box::new(packet.clone());
        // SAFETY: LOCK. What `run` takes.
        let job = unsafe { glue::obx_job(run, Box::into_raw(parcel).cast()) };
        // SAFETY: the result of the call just now.
        let job = unsafe { ValueGuard::<Any>::from_raw(self, job) }.root();
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
    /// Waits for the domain to end, with the lock released; OCaml's signal handlers run meanwhile. When one of them
    /// raises, that is the error, and the domain runs on. The result of its closure, or what it panicked with.
    pub fn join(self, rt: &mut Runtime) -> Result<R, JoinError> {
        rt.wait(|time| self.packet.wait(time)).map_err(JoinError::Exception)?;
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

// SPDX-License-Identifier: MIT
//! Waiting for other threads with the domain lock released.
use crate::{glue, Runtime};
use std::sync::mpsc::{Receiver, RecvError, TryRecvError};
use std::sync::{
    LockResult, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult,
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

// SPDX-License-Identifier: MIT
//! The lock: who holds it, how it is taken and released, and what waits for it.
use crate::panics::{contain, hook_panics, is_unwinding};
use crate::{glue, AttachError};
use alloc::boxed::Box;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use ocaml_boxroot_sys::BoxrootDomain;

/// The proof that this thread holds the domain lock, seen only by reference, in closures and exported functions.
///
/// `&Runtime` allows reading the heap. `&mut Runtime` also allows what may run the collector: allocating, calling
/// OCaml, releasing the lock. At most one is usable on a thread at any time. It is neither `Send` nor `Sync`, and never
/// owned.
// LOCK: a reference to a Runtime points to the record, in the C library, of the domain whose lock this thread holds,
// for as long as the reference is usable. So creating a root through it looks nothing up. The type is empty, so nothing
// is read through it here.
#[repr(C)]
pub struct Runtime {
    _record: [u8; 0],
    _local: PhantomData<*mut ()>,
}

impl Runtime {
    /// # Safety
    /// This thread holds the lock of the domain whose record this is for all of `'a`, and no other `Runtime` is usable
    /// on it.
    #[inline]
    pub(crate) unsafe fn at<'a>(record: NonNull<c_void>) -> &'a mut Runtime {
        // SAFETY: the type is empty, so any address will do; the caller establishes LOCK.
        unsafe { &mut *record.as_ptr().cast() }
    }

    #[inline]
    pub(crate) fn domain(&self) -> BoxrootDomain {
        // SAFETY: LOCK.
        unsafe { BoxrootDomain::from_ptr(NonNull::from(self).cast()) }
    }
}

impl core::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Runtime")
    }
}

impl Runtime {
    /// Runs `f` with the lock released, so that other threads of this domain can run OCaml, and other domains need not
    /// wait for this one to collect. The lock is taken again afterwards, also when `f` panics. Some 40 ns where nobody
    /// else wants the lock. Signal handlers do not run here: see [`poll`](Runtime::poll).
    ///
    /// ```
    /// # use ocaml_boxroot::{self as ocaml, prelude::*};
    /// fn checksum(rt: &mut Runtime, data: ValueRef<'_, ocaml::Array1<u8>>) -> u64 {
    ///     let bytes = data.as_cells(rt);
    ///     rt.release(|| bytes.iter().map(|byte| u64::from(byte.get())).sum())
    /// }
    /// ```
    pub fn release<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct Reacquire(core::ffi::c_int);
        impl Drop for Reacquire {
            fn drop(&mut self) {
                // SAFETY: this thread released the lock, with this result.
                unsafe { glue::obx_reacquire(self.0) }
            }
        }
        // SAFETY: LOCK. The Runtime cannot be used meanwhile, as it is borrowed; any values that borrow from it ended
        // before.
        let _reacquire = Reacquire(unsafe { glue::obx_release() });
        f()
    }
}

// --- taking the lock: in functions that OCaml calls

/// Runs `f` in a function that OCaml calls: for the wrappers of exported functions.
///
/// # Safety
/// This thread holds the domain lock and has no usable `Runtime`, which is the case when OCaml code has just called a
/// foreign function. The caller lets no panic unwind into OCaml.
#[inline]
pub unsafe fn enter<R>(f: impl for<'x> FnOnce(&'x mut Runtime) -> R) -> R {
    // SAFETY: by the caller (LOCK): a Runtime further up the stack is borrowed by the call into OCaml.
    unsafe {
        with_lock_held(|rt| {
            run_deferred(rt);
            f(rt)
        })
    }
    .expect("no memory for OCaml roots")
}

/// As [`enter`], but leaves the deferred closures for later. `None` when there is no memory for the domain's roots.
///
/// # Safety
/// This thread holds the domain lock and has no usable `Runtime`.
#[inline]
pub(crate) unsafe fn with_lock_held<R>(f: impl for<'x> FnOnce(&'x mut Runtime) -> R) -> Option<R> {
    // SAFETY: by the caller; LOCK until `entry` is dropped.
    unsafe {
        let entry = Entry::new()?;
        Some(f(Runtime::at(entry.record)))
    }
}

/// Exists while a function that OCaml has called runs.
// OCaml 5 tells who holds the lock. With OCaml 4 the thread's state records it; the state
// from before is restored at the end.
struct Entry {
    record: NonNull<c_void>,
    #[cfg(not(ocaml5))]
    _before: Before,
}

impl Entry {
    #[inline]
    unsafe fn new() -> Option<Self> {
        #[cfg(feature = "std")]
        if let Some(entry) = LAST.with(Last::enter) {
            return Some(entry);
        }
        // SAFETY: by the caller.
        unsafe { Entry::find() }
    }

    #[cold]
    #[inline(never)]
    unsafe fn find() -> Option<Self> {
        let mut before = 0;
        // SAFETY: by the caller; the state lasts as long as the thread.
        unsafe {
            let record = glue::obx_enter(&mut before);
            let before = Before { state: glue::obx_lock_state(), was: before };
            // Until OCaml's threads are found each entry looks for them.
            #[cfg(feature = "std")]
            if let (Some(record), true) = (record, glue::obx_threads_settled()) {
                LAST.with(|last| last.set(record, before.state));
            }
            record.map(|record| Entry::at(record, before))
        }
    }

    #[cfg(ocaml5)]
    #[inline]
    fn at(record: NonNull<c_void>, _: Before) -> Entry {
        Entry { record }
    }

    #[cfg(not(ocaml5))]
    #[inline]
    fn at(record: NonNull<c_void>, before: Before) -> Entry {
        Entry { record, _before: before }
    }
}

/// The thread's state before it entered. Dropping it restores that state.
struct Before {
    state: *mut c_int,
    was: c_int,
}

impl Drop for Before {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `obx_lock_state` of this thread.
        unsafe { *self.state = self.was }
    }
}

/// What a thread remembers when it has entered, so that entering again calls nothing.
#[cfg(feature = "std")]
struct Last {
    /// The record of the domain, or null.
    record: Cell<*mut c_void>,
    /// The thread's state.
    #[cfg(not(ocaml5))]
    state: Cell<*mut c_int>,
}

#[cfg(feature = "std")]
std::thread_local! {
    static LAST: Last = const { Last::nothing() };
}

/// OCaml 5: only entering the same domain again is fast.
#[cfg(all(ocaml5, feature = "std"))]
impl Last {
    const fn nothing() -> Last {
        Last { record: Cell::new(null_mut()) }
    }

    #[inline]
    fn enter(&self) -> Option<Entry> {
        let record = NonNull::new(self.record.get())?;
        // SAFETY: records are never freed; this one was found in this thread.
        unsafe { ocaml_boxroot_sys::domain_is_here(BoxrootDomain::from_ptr(record)) }.then_some(Entry { record })
    }

    fn set(&self, record: NonNull<c_void>, _: *mut c_int) {
        self.record.set(record.as_ptr());
    }
}

/// OCaml 4: there is one domain.
#[cfg(all(not(ocaml5), feature = "std"))]
impl Last {
    const fn nothing() -> Last {
        Last { record: Cell::new(null_mut()), state: Cell::new(null_mut()) }
    }

    #[inline]
    fn enter(&self) -> Option<Entry> {
        let record = NonNull::new(self.record.get())?;
        let state = self.state.get();
        // SAFETY: `obx_lock_state` of this thread, which is set with the record.
        let was = unsafe { state.replace(glue::HELD) };
        Some(Entry { record, _before: Before { state, was } })
    }

    fn set(&self, record: NonNull<c_void>, state: *mut c_int) {
        self.record.set(record.as_ptr());
        self.state.set(state);
    }
}

// --- taking the lock: elsewhere

/// Runs `f` with the lock of this thread's domain, waiting for it if need be. The thread is registered with OCaml
/// meanwhile, if OCaml does not know it; it then belongs to the first domain.
///
/// A thread that has released the lock takes it again, in some 40 ns where nobody else wants it; one that OCaml does
/// not know is registered and unregistered each time, which takes longer.
///
/// ```no_run
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// fn length(text: &Root<Str>) -> Result<usize, ocaml::AttachError> {
///     attach(|rt| text.get(rt).as_bytes().len())
/// }
/// ```
///
/// # Errors
/// OCaml is not started, or shut down; this thread holds the lock; there are no systhreads, or memory is short. The
/// closure does not run then. Whether the lock is held already is asked of OCaml's runtime, so a nested call is an
/// error wherever it is made: also in functions called by OCaml, and in finalisers.
pub fn attach<R>(f: impl FnOnce(&mut Runtime) -> R) -> Result<R, AttachError> {
    with_lock(|rt| {
        run_deferred(rt);
        f(rt)
    })
}

/// As [`attach`], but leaves the deferred closures for later.
fn with_lock<R>(f: impl FnOnce(&mut Runtime) -> R) -> Result<R, AttachError> {
    struct Detach(core::ffi::c_int);
    impl Drop for Detach {
        fn drop(&mut self) {
            // SAFETY: obx_attach succeeded with this result, and nobody has a Runtime any more.
            unsafe { glue::obx_detach(self.0) }
        }
    }

    let mut record = None;
    // SAFETY: the function needs nothing.
    let how = AttachError::check(unsafe { glue::obx_attach(&mut record) })?;
    let _detach = Detach(how);
    let Some(record) = record else { return Err(AttachError::OutOfMemory) };
    // SAFETY: this thread now holds the lock, and did not before, so that no other Runtime is usable (LOCK).
    Ok(f(unsafe { Runtime::at(record) }))
}

// --- deferred closures

/// What is done later.
enum Job {
    Run(Box<dyn FnOnce(&mut Runtime) + Send>),
    /// Dropped with the lock released.
    Drop(Box<dyn Send>),
}

struct Node {
    job: Job,
    next: *mut Node,
}

// STACK: the nodes reachable from here are boxes that belong to the stack; nobody else has pointers to them. Whoever
// takes the whole list owns it. It ends with null, or with FIRST the first time.
static STACK: AtomicPtr<Node> = AtomicPtr::new(FIRST);

/// The end of the list before it was taken for the first time. It makes the first call of [`run_deferred`] slow, which
/// then also installs the panic hook: so the hook costs later calls no test of its own.
const FIRST: *mut Node = core::ptr::without_provenance_mut(1);

/// Runs `f` with the capability later, on any thread: at the next [`attach`](crate::attach), [`poll`](Runtime::poll) or
/// call from OCaml of a function that takes `&mut Runtime`. For destructors, which never have the capability. It takes
/// no lock, and so may be called anywhere, also inside the collector. The closures run in the order in which they were
/// given, each once. A panic in one ends that one alone: whoever happens to run it does not see it, and Rust's panic
/// hook has told it. While a thread unwinds it runs none. What is deferred when the program ends does not run.
pub fn defer(f: impl FnOnce(&mut Runtime) + Send + 'static) {
    push(Job::Run(Box::new(f)));
}

/// Drops `what` when the closures of [`defer`](crate::defer) run, in the same order, with the lock released: its `Drop`
/// may wait for a thread that needs the lock, and may attach.
pub(crate) fn defer_drop(what: Box<dyn Send>) {
    push(Job::Drop(what));
}

fn push(job: Job) {
    let node = Box::into_raw(Box::new(Node { job, next: null_mut() }));
    let mut head = STACK.load(Relaxed);
    loop {
        // SAFETY: the node is ours until it is in the stack.
        unsafe { (*node).next = head };
        match STACK.compare_exchange_weak(head, node, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// The jobs taken, oldest first. What is left goes back when a job panics without the standard library.
struct Taken(*mut Node);
impl Drop for Taken {
    fn drop(&mut self) {
        while let Some(job) = self.next() {
            push(job);
        }
    }
}
impl Taken {
    fn next(&mut self) -> Option<Job> {
        if self.0.is_null() || self.0 == FIRST {
            return None;
        }
        // SAFETY: STACK: the list is ours.
        let node = unsafe { Box::from_raw(self.0) };
        self.0 = node.next;
        Some(node.job)
    }
}

/// Whether [`run_deferred`] has something to do.
#[inline]
pub(crate) fn is_deferred() -> bool {
    !STACK.load(Relaxed).is_null()
}

/// Runs the deferred closures and drops, the oldest first.
#[inline]
pub(crate) fn run_deferred(rt: &mut Runtime) {
    if is_deferred() {
        run_all(rt)
    }
}

#[cold]
fn run_all(rt: &mut Runtime) {
    // The hook cannot be installed now.
    if is_unwinding() {
        return;
    }
    let mut node = STACK.swap(null_mut(), Acquire);
    let mut taken = Taken(null_mut());
    while !node.is_null() && node != FIRST {
        // SAFETY: STACK: the list is ours.
        let next = core::mem::replace(unsafe { &mut (*node).next }, taken.0);
        taken.0 = node;
        node = next;
    }
    if node == FIRST {
        hook_panics();
    }
    while let Some(job) = taken.next() {
        let mut next = Some(job);
        if let Some(Job::Drop(_)) = next {
            // The lock is released once for drops that follow one another: another thread may keep it for its turn.
            next = rt.release(|| {
                while let Some(Job::Drop(what)) = next {
                    contain(|| drop(what));
                    next = taken.next();
                }
                next
            });
        }
        if let Some(Job::Run(f)) = next {
            contain(|| f(rt));
        }
    }
}

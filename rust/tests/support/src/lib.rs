// SPDX-License-Identifier: MIT
//! An OCaml program, started once, and typed access to what it registers: what a generator would write for the tests,
//! which forbid unsafe code.

use ocaml_boxroot::*;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, OnceLock};

/// Whether the OCaml is version 5.
pub const OCAML5: bool = cfg!(ocaml5);

/// Whether bigarrays may hold floats of 16 bits.
pub const FLOAT16: bool = cfg!(float16);

/// The compiler that the OCaml program was compiled by.
pub const OCAMLOPT: &str = env!("TESTING_OCAMLOPT");

/// The value with a type that the test knows.
pub fn assume<T>(v: Value<'_>) -> Value<'_, T> {
    // SAFETY: the tests say so of what OCaml made with that type.
    unsafe { v.cast() }
}

/// Whether the value is a block in a minor heap.
pub fn is_young<T>(_: &Runtime, v: Value<'_, T>) -> bool {
    extern "C" {
        fn testing_is_young(v: isize) -> bool;
    }
    // SAFETY: the lock is held; the value is only looked at.
    unsafe { testing_is_young(v.raw()) }
}

extern "C" {
    fn caml_startup_exn(arguments: *const *const std::ffi::c_char) -> isize;
}
/// Linkers look at each archive once: the start of OCaml, which `start` calls, is taken with the rest of the runtime.
#[used]
static START: unsafe extern "C" fn(*const *const std::ffi::c_char) -> isize = caml_startup_exn;

/// Starts OCaml, the first time, on a thread of its own that stays. The calling thread does not hold the lock.
pub fn ocaml() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let (done, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let ocaml = start(&StartOptions { arguments: vec!["tests".into()] });
            done.send(ocaml.is_ok()).expect("the caller waits");
            loop {
                std::thread::park();
            }
        });
        assert!(started.recv().expect("the thread answers"), "OCaml starts");
    });
}

/// Runs `f` attached, on this thread.
pub fn attached<R>(f: impl FnOnce(&mut Runtime) -> R) -> R {
    ocaml();
    attach(f).expect("attach")
}

macro_rules! functions {
    ($($name:ident : ($($a:ty),+) -> $r:ty;)*) => {$(
        /// The function of program.ml with this name.
        pub fn $name(rt: &Runtime) -> Root<Fun<($($a,)+), $r>> {
            let v = rt.named_value(stringify!($name)).expect(stringify!($name));
            // SAFETY: program.ml registers it with this type.
            unsafe { v.cast() }.root(rt)
        }
    )*}
}

pub mod batch;
pub mod bench;
pub mod own;
pub mod random;

functions! {
    identity: (Any) -> Any;
    succ: (Int) -> Int;
    half: (Float) -> Float;
    greet: (Str, Int) -> Str;
    add3: (Int, Int, Int) -> Int;
    add5: (Int, Int, Int, Int, Int) -> Int;
    concat8: (Str, Str, Str, Str, Str, Str, Str, Str) -> Str;
    raise_not_found: (Unit) -> Unit;
    raise_failure: (Str) -> Unit;
    raise_custom: (Unit) -> Unit;
    raise_assert: (Unit) -> Unit;
    raise_printed: (Unit) -> Unit;
    raise_below: (Int) -> Int;
    raise_notrace: (Unit) -> Unit;
    record_backtraces: (Bool) -> Unit;
    out_of_memory: (Unit) -> Unit;
    catch_break: (Bool) -> Unit;
    interrupt_me: (Unit) -> Unit;
    finalise_raising: (Unit) -> Unit;
    in_blocking_section: (Int) -> Int;
    blocking_on_a_thread: (Int) -> Int;
    perform: (Unit) -> Int;
    perform_below: (Int) -> Int;
    handled: (Int) -> Int;
    reraise: (Exn) -> Unit;
    same_exn: (Fun<(Unit,), Unit>, Exn) -> Bool;
    deep: (Int) -> Int;
    beat: (Int) -> Unit;
    call_rust: (Int) -> Int;
    catch_rust: (Int) -> Int;
    catch_from_c: (Unit) -> Bool;
    custom: (Int) -> Custom;
    compare: (Custom, Custom) -> Int;
    garbage: (Int) -> Int;
    list: (Int) -> List<Str>;
    is_list: (List<(Int, Str)>, Int) -> Bool;
    strings: (Int) -> Array<Str>;
    floats: (Int) -> Array<Float>;
    infix: (Int) -> Any;
    continuation: (Unit) -> Any;
    forcing: (Int) -> Int;
    register: (Str, Any) -> Unit;
    run_job: (Any) -> Unit;
    lazy: (Int) -> Any;
    force: (Any) -> Any;
    atomic: (Int) -> Atomic<Int>;
    rust_at_exit: (Int) -> Unit;
    on_signal: (Int) -> Unit;
    raise_on_signal: (Unit) -> Unit;
    signal_me: (Unit) -> Unit;
    finalise: (Int) -> Unit;
    thread: (Int) -> Unit;
    collect_on_a_thread: (Int) -> Unit;
    stack_limit: (Int) -> Unit;
    memprof: (Float) -> Bool;
    stepper: (Float) -> Fun<(Float,), Float>;
    keep: (Any) -> Unit;
    marshal: (Any) -> Str;
    unmarshal: (Str) -> Any;
    equal: (Any, Any) -> Bool;
    forced: (Int) -> Lazy<Str>;
    circle: (Int) -> List<Int>;
    sum: (List<Int>) -> Int;
    sum_floats: (Array<Float>) -> Float;
    int_list: (Int) -> List<Int>;
}

macro_rules! samples {
    ($($name:ident: $t:ty;)*) => {$(
        /// The value of program.ml with this name.
        pub fn $name(rt: &Runtime) -> Value<'_, $t> {
            let v = rt.named_value(stringify!($name)).expect(stringify!($name));
            // SAFETY: program.ml registers it with this type.
            unsafe { v.cast() }
        }
    )*}
}

samples! {
    s_numbers: (Int, Int, Int, Int, Char, Uchar);
    s_boxed: (Int32, Int64, Nativeint);
    s_floats: Array<Float>;
    s_floatarray: FloatArray;
    s_empty: (Array<Float>, List<Int>, Str, Bytes, Opt<Int>);
    s_strings: List<Str>;
    s_bytes: Bytes;
    s_sums: List<Opt<Res<Int, Str>>>;
    s_nested: List<Opt<Opt<Unit>>>;
    s_pairs: List<(Int, Str)>;
    s_array: Array<(Int, Str)>;
    s_tuple12: (Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Bool);
    s_matrix: Array<Array<Float>>;
}

/// A custom block with a number, whose finaliser and comparison call [`on_rust`]'s function.
#[derive(Debug)]
pub enum Custom {}

type Handler = Box<dyn FnMut(&mut Runtime, isize) -> isize + Send>;
static HANDLERS: Mutex<Option<HashMap<isize, Handler>>> = Mutex::new(None);

/// A number for which OCaml's `rust n` calls `f` (once at a time, not from within itself).
pub fn on_rust(f: impl FnMut(&mut Runtime, isize) -> isize + Send + 'static) -> i32 {
    static LAST: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
    let n = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    HANDLERS.lock().unwrap().get_or_insert_default().insert(n as isize, Box::new(f));
    n
}

fn handle(rt: &mut Runtime, n: isize) -> isize {
    let take = |n| HANDLERS.lock().unwrap().as_mut().and_then(|handlers| handlers.remove(&n));
    let Some(mut handler) = take(n) else { return -2 };
    let result = catch_unwind(AssertUnwindSafe(|| handler(rt, n))).unwrap_or(-3);
    HANDLERS.lock().unwrap().get_or_insert_default().insert(n, handler);
    result
}

/// `external rust`. -2: no handler, -3: it panicked.
#[no_mangle]
extern "C" fn testing_rust(n: isize) -> isize {
    // SAFETY: OCaml has just called this function; panics are caught.
    unsafe { enter(|rt| (handle(rt, n >> 1) << 1) | 1) }
}

/// What C code calls in a blocking section that it opened.
type Unlocked = Box<dyn FnMut(isize) -> isize + Send>;
static UNLOCKED: Mutex<Option<Unlocked>> = Mutex::new(None);

/// `f` is called by OCaml's `in_blocking_section`, without the lock.
pub fn in_blocking_section_of_c(f: impl FnMut(isize) -> isize + Send + 'static) {
    *UNLOCKED.lock().unwrap() = Some(Box::new(f));
}

#[no_mangle]
extern "C" fn testing_unlocked(n: isize) -> isize {
    let call = || UNLOCKED.lock().unwrap().as_mut().map_or(-2, |f| f(n));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(-3)
}

extern "C" {
    fn testing_signal();
    fn testing_signal_stack() -> usize;
    fn testing_no_signal_stack();
}

/// The signal of [`raise_on_signal`] comes to this thread.
pub fn signal() {
    // SAFETY: the function needs nothing.
    unsafe { testing_signal() }
}

/// The address of the stack on which this thread's signal handlers run, if it is another than the thread's own.
pub fn signal_stack() -> Option<usize> {
    // SAFETY: the function needs nothing.
    Some(unsafe { testing_signal_stack() }).filter(|stack| *stack != 0)
}

/// Makes this thread one without a signal stack.
pub fn no_signal_stack() {
    // SAFETY: no handler runs on it now. Whoever made it frees it.
    unsafe { testing_no_signal_stack() }
}

#[repr(C)]
struct Operations {
    identifier: *const std::ffi::c_char,
    finalize: Option<extern "C" fn(isize)>,
    compare: Option<extern "C" fn(isize, isize) -> i32>,
    others: [Option<extern "C" fn()>; 6],
}
// SAFETY: constant.
unsafe impl Sync for Operations {}

static OPERATIONS: Operations = Operations {
    identifier: c"testing".as_ptr(),
    finalize: Some(custom_finalize),
    compare: Some(custom_compare),
    others: [None; 6],
};

extern "C" {
    fn caml_alloc_custom(operations: *const Operations, size: usize, used: usize, most: usize) -> isize;
}

/// `external custom`
#[no_mangle]
extern "C" fn testing_custom(n: isize) -> isize {
    // SAFETY: OCaml has just called this function; the block has one word behind the operations.
    unsafe {
        let block = caml_alloc_custom(&OPERATIONS, 8, 0, 1);
        (block as *mut isize).add(1).write(n >> 1);
        block
    }
}

fn number(block: isize) -> isize {
    // SAFETY: a block of testing_custom.
    unsafe { (block as *const isize).add(1).read() }
}

/// What happens inside the collector: the handler gets no runtime.
static IN_COLLECTOR: Mutex<Option<InCollector>> = Mutex::new(None);
type InCollector = Box<dyn FnMut(isize) + Send>;

/// `f` is called by finalisers of custom blocks, inside the collector, and by their comparison.
pub fn in_collector(f: impl FnMut(isize) + Send + 'static) {
    *IN_COLLECTOR.lock().unwrap() = Some(Box::new(f));
}

/// Drops all these inside the collector, one by one.
pub fn drop_in_collector<T: Send + 'static>(all: Vec<T>) {
    let count = all.len() as i32;
    let place = Arc::new(Mutex::new(all));
    let theirs = place.clone();
    in_collector(move |_| drop(theirs.lock().unwrap().pop()));
    attached(|rt| {
        let custom = custom(rt);
        for i in 0..count {
            custom.call(rt, (i,)).unwrap();
        }
        rt.full_major().unwrap();
        rt.full_major().unwrap();
    });
    assert!(place.lock().unwrap().is_empty());
}

extern "C" fn custom_finalize(block: isize) {
    if let Ok(mut f) = IN_COLLECTOR.try_lock() {
        if let Some(f) = f.as_mut() {
            f(number(block))
        }
    }
}

extern "C" fn custom_compare(a: isize, b: isize) -> i32 {
    if let Ok(mut f) = IN_COLLECTOR.try_lock() {
        if let Some(f) = f.as_mut() {
            f(-1)
        }
    }
    (number(a) - number(b)) as i32
}

/// The same in C, for comparison.
pub mod c {
    use ocaml_boxroot::*;

    extern "C" {
        fn testing_fixpoint(f: isize, x: isize) -> f64;
        fn testing_fixpoint_local(f: isize, x: isize) -> f64;
        fn testing_pairs(v: isize, n: usize);
        fn testing_batches(v: isize, n: usize);
    }

    /// The benchmark local_roots with boxroots.
    pub fn fixpoint(rt: &mut Runtime, f: ValueRef<'_, Fun<(Float,), Float>>, x: ValueRef<'_, Float>) -> f64 {
        // SAFETY: the lock is held; the function of the tests does not raise.
        unsafe { testing_fixpoint(f.get(rt).raw(), x.get(rt).raw()) }
    }

    /// The benchmark local_roots with CAMLparam and CAMLlocal.
    pub fn fixpoint_local(rt: &mut Runtime, f: ValueRef<'_, Fun<(Float,), Float>>, x: ValueRef<'_, Float>) -> f64 {
        // SAFETY: as above.
        unsafe { testing_fixpoint_local(f.get(rt).raw(), x.get(rt).raw()) }
    }

    /// Creates and deletes a root, `n` times.
    pub fn pairs(rt: &Runtime, v: ValueRef<'_>, n: usize) {
        // SAFETY: the lock is held.
        unsafe { testing_pairs(v.get(rt).raw(), n) }
    }

    /// Creates a thousand roots and deletes them, `n / 1000` times.
    pub fn batches(rt: &Runtime, v: ValueRef<'_>, n: usize) {
        // SAFETY: the lock is held.
        unsafe { testing_batches(v.get(rt).raw(), n) }
    }
}

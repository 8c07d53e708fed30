// SPDX-License-Identifier: MIT
//! The bindings at work, in a Rust program that starts the OCaml runtime. The cases run in order, on the main thread.
//! They are unsafe functions: the caller's thread holds the lock.

use ocaml_boxroot_sys::*;
use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const UNIT: Value = 1;
const EPERM: i32 = 1;
const EINVAL: i32 = 22;

extern "C" {
    fn caml_startup(argv: *const *const c_char);
    fn caml_shutdown();
    fn caml_copy_int64(i: i64) -> Value;
    fn caml_alloc_final(words: usize, finalise: extern "C" fn(Value), used: usize, max: usize) -> Value;
    fn caml_gc_minor(unit: Value) -> Value;
    fn caml_gc_full_major(unit: Value) -> Value;
    fn caml_gc_compaction(unit: Value) -> Value;
}

/// A small generator, so that the order of deletions is mixed and the same in every run.
struct Mix(u64);
impl Mix {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A root is sent to the thread that is to delete it.
struct Sent(BoxRoot);
// SAFETY: any thread may delete a root.
unsafe impl Send for Sent {}

unsafe fn create(v: Value) -> BoxRoot {
    boxroot_create(v).expect("boxroot_create")
}

unsafe fn boxed(i: i64) -> BoxRoot {
    create(caml_copy_int64(i))
}

/// The number in a boxed int64: the word after the custom operations.
unsafe fn number(r: BoxRoot) -> i64 {
    *(boxroot_get(r) as *const i64).add(1)
}

unsafe fn error() -> String {
    CStr::from_ptr(boxroot_error_string()).to_string_lossy().into_owned()
}

unsafe fn stats() -> BoxrootStats {
    let mut s = BoxrootStats::default();
    boxroot_get_stats(&mut s);
    s
}

unsafe fn setup_and_status() {
    assert!(boxroot_setup());
    assert!(boxroot_setup(), "setting up twice is allowed");
    assert_eq!(boxroot_status(), Status::Running);
}

unsafe fn create_get_modify_delete() {
    let mut r = create(2 * 21 + 1);
    assert_eq!(boxroot_get(r), 43);
    assert_eq!(*(*boxroot_get_ref(r)).get(), 43);
    assert!(boxroot_modify(&mut r, 5));
    assert_eq!(boxroot_get(r), 5);
    assert!(boxroot_modify(&mut r, caml_copy_int64(1 << 40)));
    caml_gc_minor(UNIT);
    assert_eq!(number(r), 1 << 40);
    assert!(boxroot_modify(&mut r, caml_copy_int64(-7))); // an old root takes a young value
    caml_gc_minor(UNIT);
    caml_gc_full_major(UNIT);
    assert_eq!(number(r), -7);
    boxroot_delete(r);
}

unsafe fn values_survive_collections() {
    let mut mix = Mix(1);
    let mut live: Vec<(i64, BoxRoot)> = Vec::new();
    for i in 0..60_000i64 {
        live.push((i, boxed(i)));
        if i % 3 == 0 {
            let (_, r) = live.swap_remove(mix.below(live.len()));
            boxroot_delete(r);
        }
        if i % 5 == 4 {
            let n = mix.below(live.len());
            let slot = &mut live[n];
            slot.0 = -i;
            assert!(boxroot_modify(&mut slot.1, caml_copy_int64(-i)));
        }
        match i {
            _ if i % 5_000 == 1 => drop(caml_gc_minor(UNIT)),
            20_000 | 40_000 => drop(caml_gc_full_major(UNIT)),
            50_000 => drop(caml_gc_compaction(UNIT)),
            _ => (),
        }
    }
    for (i, r) in live {
        assert_eq!(number(r), i);
        boxroot_delete(r);
    }
}

/// Handles create and delete what the other functions delete and create.
unsafe fn handles_on_domains() {
    let mut mix = Mix(2);
    let mut live: Vec<(i64, BoxRoot)> = Vec::new();
    let d = boxroot_domain_here().expect("boxroot_domain_here");
    assert_eq!(boxroot_domain_here(), Some(d));
    for i in 0..30_000i64 {
        live.push((i, if i % 4 == 0 { boxed(i) } else { boxroot_create_in(d, caml_copy_int64(i)).unwrap() }));
        if i % 3 == 0 {
            let (n, r) = live.swap_remove(mix.below(live.len()));
            assert_eq!(number(r), n);
            if i % 2 == 0 {
                boxroot_delete(r)
            } else {
                boxroot_delete_in(d, r)
            }
        }
        match i {
            _ if i % 5_000 == 1 => drop(caml_gc_minor(UNIT)),
            20_000 => drop(caml_gc_full_major(UNIT)),
            _ => (),
        }
    }
    for (i, r) in live {
        assert_eq!(number(r), i);
        boxroot_delete_in(d, r);
    }
    std::thread::spawn(|| {
        assert!(boxroot_domain_here().is_none());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(EPERM));
    })
    .join()
    .unwrap();
}

unsafe fn threads_delete() {
    // Four threads without the lock delete while this one creates, collects, compacts and reads.
    let mut kept = Vec::new();
    let mut workers = Vec::new();
    for round in 0..4i64 {
        let mut batch = Vec::new();
        for i in 0..20_000 {
            let n = round * 20_000 + i;
            if i % 4 == 0 {
                kept.push((n, boxed(n)))
            } else {
                batch.push(Sent(boxed(n)))
            }
        }
        workers.push(std::thread::spawn(move || batch.into_iter().for_each(|Sent(r)| boxroot_delete(r))));
        caml_gc_minor(UNIT);
    }
    caml_gc_compaction(UNIT);
    caml_gc_full_major(UNIT);
    workers.into_iter().for_each(|w| w.join().unwrap());
    caml_gc_full_major(UNIT);
    for (n, r) in kept {
        assert_eq!(number(r), n);
        boxroot_delete(r);
    }
    assert!(stats().delete_remote >= 1, "{:?}", stats());
}

unsafe fn the_lock_is_needed() {
    let r = boxed(11);
    let sent = Sent(r);
    std::thread::spawn(move || {
        let Sent(mut r) = { sent };
        let before = r;
        assert!(boxroot_create(UNIT).is_none());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(EPERM));
        assert!(error().len() > 5, "{:?}", error());
        assert!(!boxroot_modify(&mut r, UNIT));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(EPERM));
        assert!(r == before);
    })
    .join()
    .unwrap();
    assert_eq!(number(r), 11);
    boxroot_delete(r);
}

unsafe fn storages() {
    let name = b"storage\0".as_ptr() as *const c_char;
    let s = boxroot_storage_create(name).unwrap();
    assert_eq!(CStr::from_ptr(boxroot_storage_name(s)).to_bytes(), b"storage");
    let other = boxroot_storage_create(std::ptr::null()).unwrap();
    let d = boxroot_storage_here(s).unwrap();
    let add = |i: i64| match i % 2 {
        0 => boxroot_storage_add(s, caml_copy_int64(i)),
        _ => boxroot_create_in(d, caml_copy_int64(i)),
    };
    for _ in 0..2 {
        let mut roots: Vec<BoxRoot> = (0..3000).map(|i| add(i).unwrap()).collect();
        let kept = boxroot_storage_add(other, caml_copy_int64(7)).unwrap();
        caml_gc_full_major(UNIT);
        assert!(roots.iter().enumerate().all(|(i, r)| number(*r) == i as i64));
        assert_eq!((boxroot_storage_count(s), boxroot_storage_count(other)), (3000, 1));
        assert!(boxroot_modify(&mut roots[5], caml_copy_int64(8)));
        assert_eq!(number(roots[5]), 8);
        boxroot_delete(roots.pop().unwrap());
        boxroot_delete_in(d, roots.pop().unwrap());
        assert!(boxroot_storage_clear(s));
        assert_eq!((boxroot_storage_count(s), boxroot_storage_count(other)), (0, 1));
        caml_gc_full_major(UNIT);
        assert_eq!(number(kept), 7);
        assert!(boxroot_storage_clear(other));
    }
    boxroot_storage_delete(s);
    boxroot_storage_delete(other);
    caml_gc_full_major(UNIT);
}

unsafe fn wide_roots() {
    let errno = || std::io::Error::last_os_error().raw_os_error();
    assert!(boxroot_wide_create(0, std::ptr::null()).is_none());
    assert_eq!(errno(), Some(EINVAL));
    let many = [UNIT; BOXROOT_WIDEST + 1];
    assert!(boxroot_wide_create(many.len(), many.as_ptr()).is_none());
    assert_eq!(errno(), Some(EINVAL));
    let mut live: Vec<(i64, usize, BoxRootWide)> = Vec::new();
    for i in 0..3000i64 {
        let n = [1, 3, 7, BOXROOT_WIDEST][i as usize % 4];
        let roots: Vec<BoxRoot> = (0..n as i64).map(|k| boxed(100 * i + k)).collect();
        let vs: Vec<Value> = roots.iter().map(|r| boxroot_get(*r)).collect();
        live.push((i, n, boxroot_wide_create(n, vs.as_ptr()).unwrap()));
        let all: Vec<Option<BoxRoot>> = roots.into_iter().map(Some).collect();
        boxroot_delete_all(all.len(), all.as_ptr());
        match i % 500 {
            77 => drop(caml_gc_minor(UNIT)),
            444 => drop(caml_gc_compaction(UNIT)),
            _ => (),
        }
    }
    for (i, n, w) in &mut live {
        let text = |v: Value| *(v as *const i64).add(1);
        for k in 0..*n {
            assert_eq!(text(boxroot_wide_get(*w, k)), 100 * *i + k as i64);
            assert_eq!(boxroot_wide_ref(*w, k), boxroot_wide_ref(*w, 0).add(k));
        }
        assert!(boxroot_wide_modify(w, *n - 1, caml_copy_int64(-*i)));
        if *i % 1000 == 999 {
            caml_gc_minor(UNIT);
        }
        assert_eq!(text(boxroot_wide_get(*w, *n - 1)), -*i);
    }
    let (here, there): (Vec<_>, Vec<_>) = live.into_iter().partition(|(i, _, _)| i % 3 == 0);
    here.into_iter().for_each(|(_, _, w)| boxroot_wide_delete(w));
    let there: Vec<_> = there.into_iter().map(|(_, _, w)| SentWide(w)).collect();
    std::thread::spawn(move || there.into_iter().for_each(|SentWide(w)| boxroot_wide_delete(w))).join().unwrap();
    caml_gc_full_major(UNIT);
}

struct SentWide(BoxRootWide);
// SAFETY: as for Sent.
unsafe impl Send for SentWide {}

unsafe fn many_at_once() {
    for n in [0, 1, 31, 5000] {
        let vs: Vec<Value> = (0..n).map(|i| 2 * i + 1).collect();
        let mut rs: Vec<Option<BoxRoot>> = vec![None; vs.len()];
        assert!(boxroot_create_all(vs.len(), vs.as_ptr(), rs.as_mut_ptr()));
        caml_gc_full_major(UNIT);
        assert!(rs.iter().zip(&vs).all(|(r, v)| boxroot_get(r.unwrap()) == *v));
        boxroot_delete_all(rs.len(), rs.as_ptr());
    }
    std::thread::spawn(|| {
        let mut rs = [Some(create_elsewhere()), None];
        assert!(!boxroot_create_all(2, [UNIT, UNIT].as_ptr(), rs.as_mut_ptr()));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(EPERM));
        assert_eq!(rs, [None, None]);
        boxroot_delete_all(2, rs.as_ptr());
    })
    .join()
    .unwrap();
}

/// Some word that is not null: it must not be read.
unsafe fn create_elsewhere() -> BoxRoot {
    std::mem::transmute::<usize, BoxRoot>(8)
}

unsafe fn ephemeral_roots() {
    let keys: Vec<BoxRoot> = (0..500).map(|i| boxed(i)).collect();
    let all: Vec<BoxRootEphemeral> = (0..500i64)
        .map(|i| {
            let data = boxed(1000 + i);
            let e = boxroot_ephemeral_create(boxroot_get(keys[i as usize]), boxroot_get(data)).unwrap();
            boxroot_delete(data);
            e
        })
        .collect();
    let text = |v: Value| *(v as *const i64).add(1);
    let check = |living: &dyn Fn(i64) -> bool| {
        for (i, e) in all.iter().enumerate() {
            let (i, mut key, mut data) = (i as i64, 7, 7);
            assert_eq!(boxroot_ephemeral_get(*e, &mut data), living(i));
            assert_eq!(boxroot_ephemeral_get_key(*e, &mut key), living(i));
            match living(i) {
                true => assert_eq!((text(key), text(data)), (i, 1000 + i)),
                false => assert_eq!((key, data), (7, 7)),
            }
        }
    };
    caml_gc_minor(UNIT);
    check(&|_| true);
    caml_gc_compaction(UNIT);
    check(&|_| true);
    for (i, key) in keys.iter().enumerate() {
        if i % 3 == 0 {
            boxroot_delete(*key);
        }
    }
    for _ in 0..3 {
        caml_gc_full_major(UNIT);
    }
    check(&|i| i % 3 != 0);
    all.into_iter().for_each(|e| boxroot_ephemeral_delete(e));
    keys.into_iter().enumerate().filter(|(i, _)| i % 3 != 0).for_each(|(_, key)| boxroot_delete(key));
    caml_gc_full_major(UNIT);
}

static FINALISED: AtomicUsize = AtomicUsize::new(0);
static VICTIM: AtomicUsize = AtomicUsize::new(0); // a root that the finaliser deletes

extern "C" fn finalise(_: Value) {
    FINALISED.fetch_add(1, SeqCst);
    let victim = VICTIM.swap(0, SeqCst);
    if victim != 0 {
        // SAFETY: the root of `deletion_frees_the_value`, which nobody else deletes. Needs no lock.
        unsafe { boxroot_delete(std::mem::transmute::<usize, BoxRoot>(victim)) };
    }
}

unsafe fn deletion_frees_the_value() {
    let r = create(caml_alloc_final(2, finalise, 0, 1));
    let other = create(caml_alloc_final(2, finalise, 0, 1));
    VICTIM.store(std::mem::transmute::<BoxRoot, usize>(other), SeqCst);
    caml_gc_full_major(UNIT);
    assert_eq!(FINALISED.load(SeqCst), 0);
    boxroot_delete(r); // its finaliser deletes the other root, during a collection
    for _ in 0..6 {
        caml_gc_full_major(UNIT);
    }
    assert_eq!(FINALISED.load(SeqCst), 2);
}

unsafe fn counters() {
    let s = stats();
    assert!(s.pool_bytes >= 4096 && s.pool_capacity > 0 && s.bytes_reserved >= s.pool_bytes, "{:?}", s);
    assert!(s.pools_peak >= 1 && s.minor_scans >= 1, "{:?}", s);
    boxroot_print_stats();
}

unsafe fn teardown_and_again() {
    let r = boxed(3);
    boxroot_teardown();
    assert_eq!(boxroot_status(), Status::ToreDown);
    if !cfg!(feature = "checked") {
        boxroot_delete(r); // does nothing; the checked build reports it
    }
    assert!(boxroot_create(UNIT).is_none());
    assert!(error().len() > 5);
    assert!(boxroot_setup());
    assert_eq!(boxroot_status(), Status::Running);
    let r = boxed(4);
    caml_gc_full_major(UNIT);
    assert_eq!(number(r), 4);
    boxroot_delete(r);
    boxroot_teardown();
}

/// In a process of its own: the checked build ends it with a message.
unsafe fn misuse_is_reported() {
    let me = std::env::current_exe().unwrap();
    for case in ["delete", "clear", "slot", "ephemeral"] {
        let out = std::process::Command::new(&me).env(MISUSE, case).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains("boxroot"), "{}: {:?}: {}", case, out.status, text);
    }
}

const MISUSE: &str = "BOXROOT_TEST_MISUSE";

unsafe fn use_after_delete() {
    let r = boxed(1);
    boxroot_delete(r);
    boxroot_get(r);
}

unsafe fn use_after_clear() {
    let s = boxroot_storage_create(std::ptr::null()).unwrap();
    let r = boxroot_storage_add(s, UNIT).unwrap();
    boxroot_storage_clear(s);
    boxroot_get(r);
}

unsafe fn use_of_no_slot() {
    let w = boxroot_wide_create(2, [UNIT, UNIT].as_ptr()).unwrap();
    boxroot_wide_get(w, 2);
}

unsafe fn use_of_no_ephemeral_root() {
    let mut v = UNIT;
    boxroot_ephemeral_get(std::mem::transmute::<BoxRoot, BoxRootEphemeral>(boxed(1)), &mut v);
}

fn main() {
    let mut cases: Vec<(&str, unsafe fn())> = vec![
        ("setup_and_status", setup_and_status),
        ("create_get_modify_delete", create_get_modify_delete),
        ("values_survive_collections", values_survive_collections),
        ("handles_on_domains", handles_on_domains),
        ("storages", storages),
        ("wide_roots", wide_roots),
        ("many_at_once", many_at_once),
        ("ephemeral_roots", ephemeral_roots),
        ("threads_delete", threads_delete),
        ("the_lock_is_needed", the_lock_is_needed),
        ("deletion_frees_the_value", deletion_frees_the_value),
        ("counters", counters),
        ("teardown_and_again", teardown_and_again),
    ];
    if cfg!(feature = "checked") {
        cases.push(("misuse_is_reported", misuse_is_reported));
    }
    if std::env::args().any(|a| a == "--list") {
        cases.iter().for_each(|(name, _)| println!("{}: test", name));
        return;
    }
    // In this process, not before: a test binary that is only listed needs no OCaml.
    let name = b"roots\0".as_ptr() as *const c_char;
    // SAFETY: once, on the main thread, which holds the lock from here to the end.
    unsafe { caml_startup([name, std::ptr::null()].as_ptr()) };
    match std::env::var(MISUSE).as_deref() {
        Ok("delete") => cases = vec![("misuse", use_after_delete)],
        Ok("slot") => cases = vec![("misuse", use_of_no_slot)],
        Ok("ephemeral") => cases = vec![("misuse", use_of_no_ephemeral_root)],
        Ok(_) => cases = vec![("misuse", use_after_clear)],
        Err(_) => (),
    }
    println!("\nrunning {} tests", cases.len());
    for (name, case) in &cases {
        // A panic ends the program: the cases share one runtime.
        // SAFETY: this is the main thread, which holds the lock.
        unsafe { case() };
        println!("test {} ... ok", name);
    }
    // SAFETY: this thread holds the lock, and uses OCaml no more.
    unsafe { caml_shutdown() };
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", cases.len());
}

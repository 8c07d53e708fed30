// SPDX-License-Identifier: MIT
//! Rust values that OCaml owns.

use crate::process::{again, alone, told};
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached, own};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Counts its drops.
struct Counted(Arc<AtomicUsize>, usize);
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_payload_lasts_as_long_as_its_place() {
    let count = Arc::new(AtomicUsize::new(0));
    let root = attached(|rt| rt.boxed(Counted(count.clone(), 7)).root());
    let payload: &Counted = attached(|rt| {
        let payload = root.payload(rt);
        rt.full_major().unwrap();
        rt.release(|| assert_eq!(payload.1, 7));
        rt.compact().unwrap();
        assert!(std::ptr::eq(payload, root.payload(rt)), "it does not move");
        root.payload(rt)
    });
    std::thread::scope(|s| s.spawn(|| assert_eq!(payload.1, 7)).join().unwrap());
    attached(|rt| rt.full_major().unwrap());
    assert_eq!((payload.1, count.load(SeqCst)), (7, 0));
    drop(root);
    attached(|rt| rt.full_major().unwrap());
    assert_eq!(count.load(SeqCst), 1);
}

#[test]
fn every_place_lends_its_payload() {
    fn number(rt: &mut Runtime, place: ValueRef<'_, Boxed<usize>>) -> usize {
        let payload = place.payload(rt);
        rt.full_major().unwrap();
        *payload
    }
    attached(|rt| {
        let root = rt.boxed(1_usize).root();
        assert_eq!(number(rt, &root), 1);
        rt.frame(|rt, [a, mut b]| {
            let a = a.root(rt.boxed(2_usize));
            let b = b.set(rt.boxed(3_usize));
            assert_eq!((number(rt, a), number(rt, b)), (2, 3));
        });
        let fresh = rt.boxed(4_usize);
        assert_eq!(*fresh.payload(fresh.rt()), 4);
        assert_eq!(*fresh.value().payload(fresh.rt()), 4);
        // A field of a block may be assigned while its place is borrowed; nothing is collected meanwhile.
        let cell = own::own_box(rt).call(rt, (&root.clone_ref(rt).into_any(),)).unwrap().root();
        drop(root);
        rt.full_major().unwrap();
        let five = rt.boxed(5_usize).root().into_any();
        let field = cell.get(rt).into_any().field_ref(0).unwrap().get(rt).downcast::<Boxed<usize>>().unwrap();
        let payload = field.payload(rt);
        cell.get(rt).contents().set(rt, five.get(rt));
        assert_eq!(*payload, 1);
    })
}

#[test]
fn drops_are_exact() {
    alone(drops_are_exact, || {
        let count = Arc::new(AtomicUsize::new(0));
        let dropped = || count.load(SeqCst);
        attached(|rt| {
            let mut kept = Vec::new();
            for i in 0..10_000 {
                let v = rt.boxed(Counted(count.clone(), i));
                if i % 2 == 0 {
                    kept.push(v.root());
                }
            }
            rt.full_major().unwrap();
            assert_eq!(dropped(), 5000);
            assert!(kept.iter().enumerate().all(|(i, root)| root.payload(rt).1 == 2 * i));
            kept.truncate(1000);
            rt.full_major().unwrap();
            assert_eq!(dropped(), 9000);
            drop(kept);
            rt.full_major().unwrap();
            assert_eq!(dropped(), 10_000);
            assert_eq!(Arc::strong_count(&count), 1);
        })
    })
}

#[test]
fn types_are_checked() {
    fn refused(rt: &mut Runtime, v: Root, found: Option<&str>) {
        let expected = std::any::type_name::<Counted>();
        let error = v.get(rt).downcast::<Boxed<Counted>>().map(|_| ()).unwrap_err();
        assert!(matches!(&error, ShapeError::Payload { expected: e, found: f } if *e == expected && *f == found));
        let v: Root<Boxed<Counted>> = own::declared_as(v);
        assert_eq!(v.try_payload(rt).map(|_| ()), Err(error));
        assert_eq!(v.get(rt).try_payload(rt).map(|_| ()), Err(error));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| v.payload(rt).1)).unwrap_err();
        assert_eq!(*panic.downcast::<String>().unwrap(), error.to_string());
    }
    attached(|rt| {
        let count = Arc::new(AtomicUsize::new(0));
        let right = rt.boxed(Counted(count, 5)).root().into_any();
        assert_eq!(right.get(rt).downcast::<Boxed<Counted>>().unwrap().payload(rt).1, 5);
        let right: Root<Boxed<Counted>> = own::declared_as(right);
        // Another copy of the library: the same type, the same payload, but not ours.
        let foreign = own::foreign_copy(rt, &right);
        refused(rt, foreign, None);
        let other = rt.boxed(Newtype(7)).root().into_any();
        refused(rt, other, Some(std::any::type_name::<Newtype>()));
        let same_layout = rt.boxed(OtherNewtype(7)).root().into_any();
        assert!(same_layout.get(rt).downcast::<Boxed<Newtype>>().is_err());
        let custom = rt.boxed_custom(PanicsInOps).root().into_any();
        refused(rt, custom, Some(std::any::type_name::<PanicsInOps>()));
        let wrong = [
            int(3).into_any().root(rt),
            rt.string("a string that is longer than a block of ours").root().into_any(),
            rt.float(1.5).root().into_any(),
            ocaml::succ(rt).into_any(),
            ocaml::custom(rt).call(rt, (1,)).unwrap().root().into_any(),
            rt.block(0, &[]).unwrap().root(),
            rt.block(3, &[&int(1).into_any(), &int(2).into_any()]).unwrap().root(),
        ];
        for v in wrong {
            refused(rt, v, None);
        }
    })
}
struct Newtype(#[allow(dead_code)] u64);
struct OtherNewtype(#[allow(dead_code)] u64);

/// The example of the guide: a queue of OCaml values of any type.
struct Queue<A>(Mutex<VecDeque<Root<A>>>);
struct Table<K, V>(std::marker::PhantomData<fn(K) -> V>);
ocaml_abstract! {
    /// First in, first out.
    /// Of OCaml values.
    Queue<A> = "queue";
    Table<K, V> = "table";
    Counted = "counted";
}

fn create<A: 'static>(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Queue<A>>> {
    rt.boxed(Queue(Mutex::default()))
}
fn push<A: 'static>(rt: &mut Runtime, q: ValueRef<'_, Boxed<Queue<A>>>, x: Root<A>) {
    let q = q.payload(rt);
    rt.lock_mutex(&q.0).unwrap().push_back(x);
}
fn pop<'a, A: 'static>(rt: &'a mut Runtime, q: ValueRef<'_, Boxed<Queue<A>>>) -> Option<Value<'a, A>> {
    let q = q.payload(rt);
    let x = rt.lock_mutex(&q.0).unwrap().pop_front()?;
    Some(x.get(rt))
}

#[test]
fn generic_payloads() {
    attached(|rt| {
        let q = create::<Str>(rt).root();
        for i in 0..1000 {
            let s = rt.string(i.to_string()).root();
            push(rt, &q, s);
        }
        rt.full_major().unwrap();
        for i in 0..1000 {
            assert_eq!(pop(rt, &q).unwrap().to_str(), Ok(&*i.to_string()));
        }
        assert!(pop(rt, &q).is_none());
        let q = q.into_any();
        assert!(q.get(rt).downcast::<Boxed<Queue<Str>>>().is_ok());
        assert!(q.get(rt).downcast::<Boxed<Queue<Int>>>().is_err());
    })
}

#[test]
fn names_in_ocaml() {
    let mut to = Definitions::new();
    assert_eq!(Boxed::<Queue<List<Int>>>::describe(&mut to), "int list queue");
    assert_eq!(Boxed::<Queue<Boxed<Queue<Bool>>>>::describe(&mut to), "bool queue queue");
    assert_eq!(Boxed::<Table<Str, Boxed<Counted>>>::describe(&mut to), "(string, counted) table");
    let names: Vec<_> = to.list().iter().map(|d| (&*d.name, d.parameters, &*d.body, &*d.doc)).collect();
    assert_eq!(
        names,
        [("queue", 1, "", "First in, first out.\n Of OCaml values."), ("counted", 0, "", ""), ("table", 2, "", "")],
        "each type once"
    );
    assert_eq!(to.clashes().len(), 0);
    struct Wrong;
    struct Keyword;
    struct Predefined;
    ocaml_abstract! {
        Wrong = "a = int";
        Keyword = "val";
        Predefined = "float";
    }
    fn refused<T: OCamlType>() -> bool {
        std::panic::catch_unwind(|| T::describe(&mut Definitions::new())).is_err()
    }
    assert!(refused::<Boxed<Wrong>>() && refused::<Boxed<Keyword>>() && refused::<Boxed<Predefined>>());
}

/// Attaches, and drops a root, when it is dropped.
struct Attaches(#[allow(dead_code)] Root<Str>, Arc<AtomicUsize>);
impl Drop for Attaches {
    fn drop(&mut self) {
        assert_eq!(attach(|_| ()).unwrap_err(), AttachError::Nested);
        let count = self.1.clone();
        defer(move |rt| {
            rt.minor_gc();
            count.fetch_add(1, SeqCst);
        });
    }
}

#[test]
fn drops_inside_the_collector() {
    alone(drops_inside_the_collector, || {
        let count = Arc::new(AtomicUsize::new(0));
        attached(|rt| {
            for _ in 0..500 {
                let root = rt.string("kept by a payload").root();
                rt.boxed(Attaches(root, count.clone()));
            }
            rt.full_major().unwrap();
            rt.poll().unwrap();
            assert_eq!(count.load(SeqCst), 500);
        })
    })
}

static HELD: Mutex<usize> = Mutex::new(0);
/// Its drop waits for a mutex.
struct Waits;
impl Drop for Waits {
    fn drop(&mut self) {
        *HELD.lock().unwrap() += 1;
    }
}
impl CustomOps for Waits {
    const DEFER_DROP: bool = true;
}

#[test]
fn drops_can_wait_for_a_mutex_that_the_thread_holds() {
    alone(drops_can_wait_for_a_mutex_that_the_thread_holds, || {
        attached(|rt| {
            let mut held = HELD.lock().unwrap();
            for _ in 0..100 {
                rt.boxed_custom(Waits);
            }
            rt.full_major().unwrap();
            assert_eq!(*held, 0);
            *held = 1;
            drop(held);
            rt.poll().unwrap();
            assert_eq!(*HELD.lock().unwrap(), 101);
        })
    })
}

/// Its drop says that it has begun, waits for a mutex, and attaches.
struct Meets(Arc<(AtomicUsize, Mutex<usize>)>);
impl Drop for Meets {
    fn drop(&mut self) {
        self.0 .0.fetch_add(1, SeqCst);
        *self.0 .1.lock().unwrap() += 1;
        attach(|rt| rt.minor_gc()).unwrap();
    }
}
impl CustomOps for Meets {
    const DEFER_DROP: bool = true;
}

#[test]
fn deferred_drops_do_not_hold_the_lock() {
    alone(deferred_drops_do_not_hold_the_lock, || {
        let shared = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
        attached(|rt| {
            for _ in 0..100 {
                rt.boxed_custom(Meets(shared.clone()));
            }
            rt.full_major().unwrap();
        });
        let held = shared.1.lock().unwrap();
        let waits = std::thread::spawn(|| attached(|_| ()));
        while shared.0.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        // A thread waits for the mutex in the first drop; this one, which has it, attaches.
        attached(|rt| rt.minor_gc());
        drop(held);
        waits.join().unwrap();
        while *shared.1.lock().unwrap() < 100 {
            std::thread::yield_now();
        }
    })
}

#[test]
fn threads_and_domains_drop_payloads() {
    alone(threads_and_domains_drop_payloads, || {
        let count = Arc::new(AtomicUsize::new(0));
        let made = Arc::new(AtomicUsize::new(0));
        let work = |rt: &mut Runtime, count: &Arc<AtomicUsize>, made: &AtomicUsize| {
            let mut kept: VecDeque<Root<Boxed<Counted>>> = VecDeque::new();
            for i in 0..3000 {
                kept.push_back(rt.boxed(Counted(count.clone(), i)).root());
                made.fetch_add(1, SeqCst);
                if i % 3 == 0 {
                    let root = kept.pop_front().unwrap();
                    assert!(root.payload(rt).1 <= i);
                }
                if i % 1000 == 0 {
                    rt.full_major().unwrap();
                }
            }
            kept
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (count, made) = (count.clone(), made.clone());
                std::thread::spawn(move || attached(|rt| drop(work(rt, &count, &made))))
            })
            .collect();
        attached(|rt| {
            let mut domains = Vec::new();
            for _ in 0..2 {
                let (count, made) = (count.clone(), made.clone());
                domains.extend(rt.spawn_domain(move |rt| work(rt, &count, &made)));
            }
            // What a domain made outlives it.
            let kept: Vec<_> = domains.into_iter().map(|d| d.join(rt).unwrap()).collect();
            assert!(kept.iter().flatten().all(|root| root.payload(rt).1 < 3000));
            for thread in threads {
                rt.join(thread).unwrap();
            }
            let kept_now: usize = kept.iter().map(|k| k.len()).sum();
            rt.full_major().unwrap();
            assert_eq!(count.load(SeqCst) + kept_now, made.load(SeqCst));
            drop(kept);
            rt.full_major().unwrap();
            rt.full_major().unwrap();
            assert_eq!(count.load(SeqCst), made.load(SeqCst));
        })
    })
}

/// What the process occupies, in kB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_is_counted() {
    alone(memory_is_counted, || {
        struct Kilobyte(#[allow(dead_code)] [u8; 1024]);
        struct Kilobytes(#[allow(dead_code)] Vec<u8>);
        impl CustomOps for Kilobytes {
            fn memory(&self) -> usize {
                self.0.capacity()
            }
        }
        attached(|rt| {
            let before = resident();
            for i in 0..1_000_000 {
                rt.boxed(Kilobyte([i as u8; 1024]));
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 100_000, "a gigabyte of boxes: {grown} kB");
            // Larger than what a block of the minor heap may be charged with.
            for i in 0..5_000 {
                rt.boxed_custom(Kilobytes(vec![i as u8; 200 * 1024]));
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 200_000, "a gigabyte behind boxes: {grown} kB");
        })
    })
}

/// The messages of a process that is told what to do. It must be ended by a signal.
fn aborted(what: &str) -> String {
    use std::os::unix::process::ExitStatusExt;
    let output = again(panics_in_a_child, what);
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

struct Panics;
impl Drop for Panics {
    fn drop(&mut self) {
        panic!("on purpose in drop")
    }
}
struct PanicsInOps;
impl CustomOps for PanicsInOps {
    const COMPARE: Option<fn(&Self, &Self) -> Ordering> = Some(|_, _| panic!("on purpose in compare"));
    const HASH: Option<fn(&Self) -> u32> = Some(|_| panic!("on purpose in hash"));
    const MARSHAL: Option<Marshal<Self>> =
        Some(Marshal { name: c"panics", write: |_, _| panic!("on purpose in write"), read: |_| None });
}

#[test]
fn panics_in_a_child() {
    let Some(what) = told(panics_in_a_child) else { return };
    attached(|rt| {
        let v = rt.boxed_custom(PanicsInOps).root().into_any();
        let other = rt.boxed_custom(PanicsInOps).root().into_any();
        match &*what {
            "drop" => {
                rt.boxed(Panics);
                let _ = rt.full_major();
            }
            "compare" => drop(own::own_compare(rt).call(rt, (&v, &other))),
            "hash" => drop(own::own_hash(rt).call(rt, (&v,))),
            _ => drop(own::own_marshal(rt).call(rt, (&v,))),
        }
    });
    panic!("not reached")
}

#[test]
fn panics_in_the_runtime_end_the_process() {
    for (what, words) in
        [("drop", "the drop"), ("compare", "the comparison"), ("hash", "the hash"), ("write", "marshalling")]
    {
        let said = aborted(what);
        assert!(said.contains(&format!("on purpose in {what}")), "{said}");
        assert!(said.contains(&format!("ocaml-boxroot: {words} of a `all::boxed::Panics")), "{said}");
    }
}

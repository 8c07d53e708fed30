// SPDX-License-Identifier: MIT
//! Rust values inside OCaml's blocks.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{attached, own};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

/// A number, a root, and a count of drops.
struct Cell<A> {
    number: usize,
    root: Root<A>,
    drops: Arc<AtomicUsize>,
}
impl<A> Drop for Cell<A> {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
    }
}
ocaml_abstract! { Cell<A> = "cell"; }

#[test]
fn they_move_and_are_dropped_once() {
    const COUNT: usize = 10_000;
    let drops = Arc::new(AtomicUsize::new(0));
    attached(|rt| {
        let mut kept: Vec<Root<Inline<Cell<Str>>>> = Vec::new();
        for number in 0..COUNT {
            let root = rt.string(number.to_string()).root();
            let cell = rt.inline(Cell { number, root, drops: drops.clone() });
            if number % 2 == 0 {
                kept.push(cell.root());
            }
        }
        rt.full_major().unwrap();
        rt.compact().unwrap();
        assert_eq!(drops.load(SeqCst), COUNT / 2);
        for (i, cell) in kept.iter().enumerate() {
            let cell = cell.payload(rt);
            assert_eq!((cell.number, cell.root.get(rt).to_str()), (2 * i, Ok(&*(2 * i).to_string())));
        }
        drop(kept);
        rt.full_major().unwrap();
        assert_eq!((drops.load(SeqCst), Arc::strong_count(&drops)), (COUNT, 1));
    })
}

#[test]
fn a_young_one_moves_to_the_major_heap() {
    attached(|rt| {
        let root = rt.inline([1_u64, 2, 3]).root();
        let place = |rt: &Runtime| std::ptr::from_ref(root.payload(rt)).addr();
        let young = place(rt);
        rt.minor_gc();
        assert_ne!(place(rt), young);
        assert_eq!(root.payload(rt), &[1, 2, 3]);
    })
}

#[test]
fn places_lend_them() {
    attached(|rt| {
        rt.frame(|rt, [a, mut b]| {
            let a = a.root(rt.inline(AtomicUsize::new(2)));
            let b = b.set(rt.inline(3_u8));
            rt.minor_gc();
            a.payload(rt).fetch_add(5, SeqCst);
            rt.minor_gc();
            assert_eq!((a.payload(rt).load(SeqCst), *b.payload(rt)), (7, 3));
        });
        let fresh = rt.inline(());
        assert_eq!(fresh.value().payload(fresh.rt()), &());
        let largest = rt.inline([7_u8; 2000]).root();
        rt.full_major().unwrap();
        assert!(largest.payload(rt).iter().all(|byte| *byte == 7));
    })
}

#[test]
fn types_are_checked() {
    fn refused(rt: &mut Runtime, v: Root, found: Option<&str>) {
        let expected = std::any::type_name::<u64>();
        let error = v.get(rt).downcast::<Inline<u64>>().map(drop).unwrap_err();
        assert!(matches!(&error, ShapeError::Payload { expected: e, found: f } if *e == expected && *f == found));
        let v: Root<Inline<u64>> = own::declared_as(v);
        assert_eq!(v.try_payload(rt), Err(error));
        assert_eq!(v.get(rt).try_payload(rt), Err(error));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *v.payload(rt))).unwrap_err();
        assert_eq!(*panic.downcast::<String>().unwrap(), error.to_string());
    }
    attached(|rt| {
        let right = rt.inline(5_u64).root().into_any();
        assert_eq!(right.get(rt).downcast::<Inline<u64>>().unwrap().payload(rt), &5);
        let error = right.get(rt).downcast::<Boxed<u64>>().map(drop).unwrap_err();
        assert!(matches!(error, ShapeError::Payload { found: Some("u64"), .. }), "a value in a box is another type");
        let boxed = rt.boxed(5_u64).root().into_any();
        refused(rt, boxed, Some("u64"));
        let other = rt.inline(5_i64).root().into_any();
        refused(rt, other, Some("i64"));
        let wrong =
            [int(3).into_any().root(rt), rt.string("a string").root().into_any(), rt.float(1.5).root().into_any()];
        for v in wrong {
            refused(rt, v, None);
        }
    })
}

#[test]
fn they_are_abstract() {
    attached(|rt| {
        let [a, b] = [1_u64, 1].map(|n| rt.inline(n).root().into_any());
        let error = own::own_equal(rt).call(rt, (&a, &b)).unwrap_err();
        assert_eq!(error.to_string(), "Invalid_argument(\"compare: abstract value\")");
        let error = own::own_marshal(rt).call(rt, (&a,)).unwrap_err();
        assert_eq!(error.to_string(), "Invalid_argument(\"output_value: abstract value (Custom)\")");
        assert_eq!(Inline::<Cell<List<Int>>>::describe(&mut Definitions::new()), "int list cell");
    })
}

#[test]
fn another_domain_or_thread_drops_them() {
    let drops = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let drops = drops.clone();
        let made = move || {
            attached(|rt| {
                for number in 0..1000 {
                    let root = rt.string("x").root();
                    rt.inline(Cell { number, root, drops: drops.clone() });
                }
            })
        };
        std::thread::spawn(made).join().unwrap();
    }
    attached(|rt| rt.full_major().unwrap());
    assert_eq!(drops.load(SeqCst), 4000);
}

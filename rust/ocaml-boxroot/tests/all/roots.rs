// SPDX-License-Identifier: MIT
//! Values, places and roots.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::mem::size_of;
use std::sync::Arc;

#[test]
fn words() {
    assert_eq!(size_of::<Root<Str>>(), 8);
    assert_eq!(size_of::<Option<Root>>(), 8);
    assert_eq!(size_of::<ValueRef<'_>>(), 8);
    assert_eq!(size_of::<Value<'_>>(), 8);
    assert_eq!(size_of::<ValueExn<'_>>(), 8);
    assert_eq!(size_of::<ValueCell>(), 8);
    assert_eq!(size_of::<Exception>(), 8);
    assert_eq!(size_of::<Result<ValueGuard<'_>, Exception>>(), 16);
}

#[test]
fn immediates() {
    assert_eq!(int(-7).to_isize(), -7);
    assert_eq!(Value::int(isize::MAX >> 1).unwrap().to_isize(), isize::MAX >> 1);
    assert_eq!(Value::int(isize::MIN >> 1).unwrap().to_isize(), isize::MIN >> 1);
    assert!(Value::int((isize::MAX >> 1) + 1).is_none(), "no silent truncation");
    assert!(Value::int((isize::MIN >> 1) - 1).is_none());
    assert!(Value::from(true).to_bool() && !Value::from(false).to_bool());
}

#[test]
fn roots_keep_values_across_collections() {
    attached(|rt| {
        let roots: Vec<Root<Str>> = (0..1000).map(|i| rt.string(i.to_string()).root()).collect();
        rt.minor_gc();
        rt.full_major().unwrap();
        let copies: Vec<Root<Str>> = roots.iter().map(|r| r.clone_ref(rt)).collect();
        rt.compact().unwrap();
        for (i, (a, b)) in roots.iter().zip(&copies).enumerate() {
            assert_eq!(a.get(rt).to_str(), Ok(&*i.to_string()));
            assert!(a.get(rt).ptr_eq(b.get(rt)));
        }
        for r in copies {
            r.drop_ref(rt);
        }
    })
}

#[test]
fn output_roots() {
    attached(|rt| {
        let mut r = rt.string("").root();
        for i in 0..10_000 {
            assert_eq!(r.get(rt).as_bytes().len(), usize::min(i, 1));
            r.set(rt.string("x"));
            if i % 1000 == 0 {
                rt.full_major().unwrap();
            }
        }
        let last = rt.string("last").root();
        r.set_value(rt, last.get(rt));
        let again = rt.string("again");
        let rt = r.set_and_rt(again);
        assert_eq!(r.get(rt).to_str(), Ok("again"));
    })
}

#[test]
fn every_place_passes_as_a_value_ref() {
    fn read<T>(rt: &Runtime, x: ValueRef<'_, T>) -> isize {
        x.get(rt).raw()
    }
    fn write<T>(rt: &mut Runtime, x: ValueRef<'_, T>) -> isize {
        rt.minor_gc();
        x.get(rt).raw()
    }
    attached(|rt| {
        let root = rt.string("root").root();
        let shared = Arc::new(rt.string("shared").root());
        assert_eq!(write(rt, &int(3)), 7);
        write(rt, &root);
        write(rt, &shared);
        write(rt, &Value::UNIT);
        let field = rt.pair(&root, &shared);
        assert_eq!(read(field.rt(), &field), field.value().raw());
        let first = field.value().into_any().field_ref(0).unwrap();
        assert_eq!(read(field.rt(), first), read(field.rt(), &root));
        rt.frame(|rt, [slot]| {
            let slot = slot.root(rt.string("slot"));
            write(rt, slot);
            assert_eq!(slot.get(rt).to_str(), Ok("slot"));
        })
    })
}

#[test]
fn dropped_anywhere() {
    let make = |n: i32| -> Vec<Root<Str>> { attached(|rt| (0..n).map(|i| rt.string(i.to_string()).root()).collect()) };
    // Without the lock; on a thread that OCaml does not know; during a panic; in a thread-local's destructor.
    drop(make(500));
    let roots = make(500);
    std::thread::spawn(|| drop(roots)).join().unwrap();
    let roots = make(500);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _roots = roots;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    thread_local!(static KEPT: std::cell::RefCell<Vec<Root<Str>>> = const { std::cell::RefCell::new(Vec::new()) });
    let roots = make(500);
    std::thread::spawn(|| KEPT.set(roots)).join().unwrap();
    attached(|rt| rt.full_major().unwrap());
}

#[test]
fn dropped_inside_the_collector() {
    alone(dropped_inside_the_collector, || {
        let roots = Arc::new(std::sync::Mutex::new(attached(|rt| vec![rt.string("kept by a finaliser").root()])));
        let dropped = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (their_roots, count) = (roots.clone(), dropped.clone());
        ocaml::in_collector(move |_| {
            their_roots.lock().unwrap().clear();
            // The collector runs on this thread: attaching is an error, not a deadlock.
            assert_eq!(attach(|_| ()).unwrap_err(), AttachError::Nested);
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        attached(|rt| {
            let custom = ocaml::custom(rt);
            let compare = ocaml::compare(rt);
            for i in 0..10 {
                custom.call(rt, (i,)).unwrap();
            }
            let (a, b) = (custom.call(rt, (1,)).unwrap().root(), custom.call(rt, (2,)).unwrap().root());
            assert!(compare.call(rt, (&a, &b)).unwrap().value().to_isize() < 0);
            rt.full_major().unwrap();
            // On a thread of OCaml's, with no Rust code below.
            ocaml::collect_on_a_thread(rt).call(rt, (10,)).unwrap();
        });
        assert!(dropped.load(std::sync::atomic::Ordering::Relaxed) >= 20);
        assert!(roots.lock().unwrap().is_empty());
    })
}

#[test]
fn mutable_and_atomic_cells() {
    attached(|rt| {
        let old = rt.string("old").root();
        let r = rt.reference(&old).root();
        drop(old);
        rt.full_major().unwrap();
        let new = rt.string("new").root();
        r.get(rt).contents().set(rt, new.get(rt));
        drop(new);
        rt.minor_gc();
        ocaml::garbage(rt).call(rt, (100_000,)).unwrap().into_rt();
        assert_eq!(r.get(rt).contents().get().to_str(), Ok("new"));

        let make = ocaml::atomic(rt);
        let a = make.call(rt, (41,)).unwrap().root();
        let cell = a.get(rt).contents();
        assert_eq!(cell.fetch_add(rt, int(1)), 41);
        assert!(!cell.compare_and_set(rt, int(41), int(0)));
        assert!(cell.compare_and_set(rt, int(42), int(43)));
        assert_eq!(cell.exchange(rt, int(44)).to_isize(), 43);
        cell.set(rt, int(45));
        assert_eq!(cell.get().to_isize(), 45);
    })
}

#[test]
fn encoded_results() {
    attached(|rt| {
        let fail = ocaml::raise_not_found(rt);
        let error = fail.call(rt, ((),)).unwrap_err();
        let exn = error.value(rt).unwrap();
        assert!(ValueExn::<Unit>::raise(exn).decode().unwrap_err().ptr_eq(exn));
        assert_eq!(ValueExn::from(int(5)).decode().unwrap().to_isize(), 5);
        assert_eq!(ValueExn::from(exn).decode().unwrap().raw(), exn.raw());
    })
}

#[test]
fn shapes_are_checked() {
    attached(|rt| {
        assert_eq!(int(3).into_any().kind(), ValueKind::Int(3));
        assert_eq!(int(3).into_any().field(0).unwrap_err(), ShapeError::Immediate);
        let block = rt.block(7, &[&int(1).into_any(), &int(2).into_any()]).unwrap();
        let v = block.value();
        assert_eq!(v.kind(), ValueKind::Block { tag: 7, len: 2 });
        assert_eq!(v.field(1).unwrap().kind(), ValueKind::Int(2));
        assert_eq!(v.field(2).unwrap_err(), ShapeError::Bounds { index: 2, len: 2 });
        let rt = block.into_rt();
        assert!(matches!(rt.block(0, &[]).unwrap().value().kind(), ValueKind::Block { tag: 0, len: 0 }));
        for tag in 246..=255 {
            assert_eq!(rt.block(tag, &[&int(0).into_any()]).unwrap_err(), ShapeError::Tag(tag));
        }
        let text = rt.string("text").into_any().root();
        assert_eq!(text.get(rt).kind(), ValueKind::String { len: 4 });
        assert!(matches!(text.get(rt).field(0), Err(ShapeError::Opaque(252))));
        assert_eq!(rt.float(1.5).into_any().value().kind(), ValueKind::Float(1.5));
        let closure = ocaml::succ(rt).into_any();
        assert!(matches!(closure.get(rt).kind(), ValueKind::Closure | ValueKind::Infix));
        assert!(matches!(closure.get(rt).field(0), Err(ShapeError::Opaque(_))));
        let custom = ocaml::custom(rt).call(rt, (1,)).unwrap().into_any().root();
        assert_eq!(custom.get(rt).kind(), ValueKind::Custom);
        assert!(custom.get(rt).field(0).is_err());
        let floats = ocaml::floats(rt).call(rt, (3,)).unwrap().into_any().root();
        assert_eq!(floats.get(rt).kind(), ValueKind::FloatArray { len: 3 });
        assert!(floats.get(rt).field(0).is_err());
        let lazy = ocaml::lazy(rt).call(rt, (3,)).unwrap().root();
        assert_eq!(lazy.get(rt).kind(), ValueKind::Lazy);
        assert!(lazy.get(rt).field(0).is_err());
        assert_eq!(ocaml::force(rt).call(rt, (&lazy,)).unwrap().value().kind(), ValueKind::Int(4));
        assert_eq!(lazy.get(rt).kind(), ValueKind::Forward);
        assert_eq!(lazy.get(rt).field(0).unwrap().kind(), ValueKind::Int(4));
    })
}

/// Their fields are addresses of code and stacks.
#[test]
fn code_and_stacks_are_not_opened() {
    attached(|rt| {
        let infix = ocaml::infix(rt).call(rt, (3,)).unwrap().root();
        assert_eq!(infix.get(rt).kind(), ValueKind::Infix);
        for i in 0..4 {
            assert!(matches!(infix.get(rt).field(i), Err(ShapeError::Opaque(_))));
            assert!(infix.get(rt).field_ref(i).is_err());
        }
        // A lazy value is being forced by the frames below; the function in it is gone.
        let n = ocaml::on_rust(|rt, _| {
            let lazy = rt.named_value("the lazy").unwrap();
            assert_eq!(lazy.kind(), if ocaml::OCAML5 { ValueKind::Forcing } else { ValueKind::Lazy });
            assert!(lazy.field(0).is_err());
            rt.full_major().unwrap();
            4
        });
        assert_eq!(ocaml::forcing(rt).call(rt, (n,)).unwrap().value().to_isize(), 4);
        if ocaml::OCAML5 {
            let continuation = ocaml::continuation(rt).call(rt, ((),)).unwrap().root();
            assert_eq!(continuation.get(rt).kind(), ValueKind::Continuation);
            assert!(matches!(continuation.get(rt).field(0), Err(ShapeError::Opaque(245))));
            rt.full_major().unwrap();
        }
    })
}

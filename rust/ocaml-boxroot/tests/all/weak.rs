// SPDX-License-Identifier: MIT
//! Weak roots: what they find, when they are dead, and where they may be dropped.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::mem::size_of;
use std::sync::Arc;

#[test]
fn words() {
    assert_eq!(size_of::<Weak<Str>>(), 8);
    assert_eq!(size_of::<Option<Weak>>(), 8);
}

#[test]
fn find_what_is_kept_and_nothing_else() {
    attached(|rt| {
        let roots: Vec<Root<Str>> = (0..1000).map(|i| rt.string(i.to_string()).root()).collect();
        let weak: Vec<Weak<Str>> = roots.iter().map(|r| r.get(rt).downgrade(rt).unwrap()).collect();
        let fresh = rt.string("young");
        let young = fresh.value().downgrade(fresh.rt()).unwrap();
        rt.minor_gc();
        rt.compact().unwrap();
        assert!(young.get(rt).is_none());
        for (i, (w, r)) in weak.iter().zip(&roots).enumerate() {
            assert_eq!(w.get(rt).unwrap().to_str(), Ok(&*i.to_string()));
            assert!(w.get(rt).unwrap().ptr_eq(r.get(rt)));
        }
        let upgraded: Vec<Root<Str>> = weak.iter().step_by(2).map(|w| w.upgrade(rt).unwrap()).collect();
        drop(roots);
        rt.full_major().unwrap();
        for (i, w) in weak.iter().enumerate() {
            assert_eq!(w.is_alive(rt), i % 2 == 0, "{i}");
        }
        for (i, r) in upgraded.iter().enumerate() {
            assert_eq!(r.get(rt).to_str(), Ok(&*(2 * i).to_string()));
        }
        drop(upgraded);
        rt.full_major().unwrap();
        assert!(weak.iter().all(|w| w.get(rt).is_none() && w.upgrade(rt).is_none()));
        let number = int(5).downgrade(rt).unwrap();
        rt.full_major().unwrap();
        assert_eq!(number.get(rt).unwrap().to_isize(), 5);
    })
}

#[test]
fn hold_no_lazy_values() {
    attached(|rt| {
        let lazy = ocaml::lazy(rt).call(rt, (3,)).unwrap().root();
        assert_eq!(lazy.get(rt).downgrade(rt).unwrap_err(), RootError::Lazy);
        let pair = rt.pair(&lazy, &int(1)).root();
        let weak = pair.get(rt).downgrade(rt).unwrap();
        rt.full_major().unwrap();
        assert!(weak.get(rt).unwrap().ptr_eq(pair.get(rt)));
    })
}

#[test]
fn dropped_anywhere() {
    alone(dropped_anywhere, || {
        let kept = attached(|rt| rt.string("kept").root());
        let make =
            || -> Vec<Weak<Str>> { attached(|rt| (0..500).map(|_| kept.get(rt).downgrade(rt).unwrap()).collect()) };
        drop(make());
        let weak = make();
        std::thread::spawn(|| drop(weak)).join().unwrap();
        let weak = make();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _weak = weak;
            panic!("on purpose");
        }))
        .is_err());
        ocaml::drop_in_collector(make());
        attached(|rt| assert!(make_one(rt, &kept).is_alive(rt)));
    })
}

fn make_one(rt: &Runtime, kept: &Root<Str>) -> Weak<Str> {
    kept.get(rt).downgrade(rt).unwrap()
}

#[test]
fn shared_by_threads() {
    let kept: Vec<Root<Str>> = attached(|rt| (0..100).map(|i| rt.string(i.to_string()).root()).collect());
    let weak: Vec<Weak<Str>> = attached(|rt| kept.iter().map(|r| r.get(rt).downgrade(rt).unwrap()).collect());
    let (kept, weak) = (Arc::new(kept), Arc::new(weak));
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let (weak, _kept) = (weak.clone(), kept.clone());
            std::thread::spawn(move || {
                for round in 0..50 {
                    attached(|rt| {
                        for (i, w) in weak.iter().enumerate() {
                            let root = w.upgrade(rt).unwrap();
                            if i == round {
                                rt.minor_gc();
                            }
                            assert_eq!(root.get(rt).to_str(), Ok(&*i.to_string()), "thread {t}");
                        }
                    });
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

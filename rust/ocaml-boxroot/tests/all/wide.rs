// SPDX-License-Identifier: MIT
//! Wide roots: what they keep, how their values change, where they may be dropped.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::cell::RefCell;
use std::mem::size_of;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

fn text<'a>(rt: &'a Runtime, place: ValueRef<'_, Str>) -> &'a str {
    place.get(rt).to_str().unwrap()
}

/// A wide root of the texts of `first`, `first + 1`, … Its values are young.
fn numbers<const N: usize>(rt: &mut Runtime, first: usize) -> WideRoot<[Str; N]> {
    rt.locals(|rt, locals| {
        let places: [ValueRef<Str>; N] = std::array::from_fn(|i| locals.root(rt.string((first + i).to_string())));
        WideRoot::new(rt, places.map(|place| place.get(rt)))
    })
}

fn check<const N: usize>(rt: &Runtime, root: &WideRoot<[Str; N]>, first: usize) {
    assert_eq!(root.len(), N);
    for (i, place) in root.iter().enumerate() {
        assert_eq!(text(rt, place), (first + i).to_string());
    }
}

/// Weak roots of all values: which tell whether they are alive.
fn watch<const N: usize>(rt: &Runtime, root: &WideRoot<[Str; N]>) -> Vec<Weak<Str>> {
    root.iter().map(|place| place.get(rt).downgrade(rt).unwrap()).collect()
}

fn alive(rt: &mut Runtime, weak: &[Weak<Str>]) -> usize {
    for _ in 0..3 {
        rt.full_major().unwrap(); // what the marker had yet to read lives until it has finished
    }
    weak.iter().filter(|w| w.is_alive(rt)).count()
}

#[test]
fn words() {
    assert_eq!(size_of::<WideRoot<(Str, Int)>>(), 8);
    assert_eq!(size_of::<Option<WideRoot<[Str; 64]>>>(), 8);
    fn shared<T: Send + Sync>() {}
    shared::<(WideRoot<(Str, Int)>, WideRoot<[Str; 3]>)>();
}

#[test]
fn keep_all_values_of_each_width() {
    fn width<const N: usize>(rt: &mut Runtime) {
        let roots: Vec<WideRoot<[Str; N]>> = (0..300).map(|i| numbers(rt, i * N)).collect();
        rt.minor_gc();
        roots.iter().enumerate().for_each(|(i, root)| check(rt, root, i * N));
        let copies: Vec<_> = roots.iter().map(|root| root.clone_ref(rt)).collect();
        let weak: Vec<_> = roots.iter().flat_map(|root| watch(rt, root)).collect();
        drop(roots);
        rt.compact().unwrap();
        copies.iter().enumerate().for_each(|(i, root)| check(rt, root, i * N));
        assert_eq!(alive(rt, &weak), 300 * N);
        drop(copies);
        assert_eq!(alive(rt, &weak), 0, "{N}");
    }
    attached(|rt| {
        width::<1>(rt);
        width::<2>(rt);
        width::<3>(rt);
        width::<7>(rt);
        width::<63>(rt);
        width::<64>(rt);
    })
}

#[test]
fn tuples_have_places_of_their_types() {
    attached(|rt| {
        let (s, f) = (rt.string("s").root(), rt.float(1.5).root());
        let mut root = WideRoot::new(rt, (s.get(rt), int(3), f.get(rt)));
        drop((s, f));
        rt.compact().unwrap();
        let (s, i, f) = root.places();
        assert_eq!((text(rt, s), i.get(rt).to_isize(), f.get(rt).to_f64()), ("s", 3, 1.5));
        assert!(root.place::<0>().get(rt).ptr_eq(s.get(rt)) && root.place::<2>().get(rt).ptr_eq(f.get(rt)));
        let s = root.set::<0>(rt.string("t"));
        assert_eq!(text(rt, s), "t");
        root.set_value::<1>(rt, int(4));
        assert_eq!(root.try_set_value::<1>(rt, int(5)), Ok(()));
        let new = rt.float(2.5);
        assert_eq!(root.replace::<2>(new.rt(), new.value()).to_f64(), 1.5);
        rt.full_major().unwrap();
        let (s, i, f) = root.places();
        assert_eq!((text(rt, s), i.get(rt).to_isize(), f.get(rt).to_f64()), ("t", 5, 2.5));
        // Places pass as arguments.
        assert_eq!(ocaml::greet(rt).call(rt, (s, i)).unwrap().value().to_str(), Ok("t 5"));
        let many = WideRoot::new(
            rt,
            (
                int(0),
                int(1),
                int(2),
                int(3),
                int(4),
                int(5),
                int(6),
                int(7),
                int(8),
                int(9),
                int(10),
                Value::from(true),
            ),
        );
        rt.minor_gc();
        assert_eq!(many.place::<10>().get(rt).to_isize(), 10);
        assert!(many.place::<11>().get(rt).to_bool() && many.clone_ref(rt).place::<11>().get(rt).to_bool());
        assert!(many.clone_ref(rt).places().9.get(rt).to_isize() == 9);
        assert_eq!(WideRoot::new(rt, (int(7),)).place::<0>().get(rt).to_isize(), 7);
        assert_eq!(format!("{many:?}"), "WideRoot");
    })
}

#[test]
fn values_that_change() {
    attached(|rt| {
        let mut roots: Vec<WideRoot<[Str; 5]>> = (0..400).map(|i| numbers(rt, 10 * i)).collect();
        for round in 0..20 {
            for (i, root) in roots.iter_mut().enumerate() {
                let new = rt.string(format!("{round} {i}"));
                match i % 3 {
                    0 => _ = root.set_at(i % 5, new),
                    1 => root.set_value_at(new.rt(), i % 5, new.value()),
                    _ => {
                        let old = root[i % 5].get(new.rt());
                        assert!(root.replace_at(new.rt(), i % 5, new.value()).ptr_eq(old));
                    }
                }
                if i % 100 == round {
                    rt.minor_gc();
                }
            }
            if round % 5 == 3 {
                rt.compact().unwrap();
            }
            for (i, root) in roots.iter().enumerate() {
                for (k, place) in root.iter().enumerate() {
                    let expected = if k == i % 5 { format!("{round} {i}") } else { (10 * i + k).to_string() };
                    assert_eq!(text(rt, place), expected);
                }
            }
        }
        // What was replaced is let go, and nothing else.
        let weak: Vec<Weak<Str>> = roots.iter().flat_map(|root| watch(rt, root)).collect();
        let empty = rt.string("").root();
        roots.iter_mut().for_each(|root| root.set_value_at(rt, 2, empty.get(rt)));
        assert_eq!(alive(rt, &weak), 1600);
    })
}

/// What is rooted while a block is built survives it, also where the build ends by a panic.
#[test]
fn made_in_a_build() {
    attached(|rt| {
        let mut roots: Vec<WideRoot<(Str, Int)>> = Vec::new();
        for round in 0..50 {
            let built = catch_unwind(AssertUnwindSafe(|| {
                rt.build(if round % 2 == 0 { 2000 } else { 0 }, |n| {
                    for i in 0..40 {
                        roots.push(WideRoot::new(n, (n.string(format!("{round} {i}")), int(i))));
                        if round % 5 == 4 && i == 20 {
                            resume_unwind(Box::new(0));
                        }
                    }
                    let dup = roots[0].clone_ref(n);
                    roots.push(dup);
                    n.string("the end")
                })
                .into_rt();
            }));
            assert_eq!(built.is_err(), round % 5 == 4);
            if round % 10 == 7 {
                rt.full_major().unwrap();
            }
            assert_eq!(text(rt, roots[0].place::<0>()), "0 0");
        }
        rt.compact().unwrap();
        let mut expected = (0..50).flat_map(|round| {
            let own = (0..if round % 5 == 4 { 21 } else { 40 }).map(move |i| (format!("{round} {i}"), i));
            own.chain((round % 5 != 4).then(|| ("0 0".to_owned(), 0)))
        });
        for root in &roots {
            let (s, i) = root.places();
            assert_eq!(Some((text(rt, s).to_owned(), i.get(rt).to_isize())), expected.next());
        }
        assert!(expected.next().is_none());
    })
}

#[test]
fn indices_out_of_range() {
    attached(|rt| {
        let mut root: WideRoot<[Int; 2]> = WideRoot::new(rt, [int(1), int(2)]);
        let mut refused = |f: &mut dyn FnMut(&mut WideRoot<[Int; 2]>)| {
            catch_unwind(AssertUnwindSafe(|| f(&mut root))).unwrap_err();
            let found: Vec<isize> = root.iter().map(|place| place.get(rt).to_isize()).collect();
            assert_eq!(found, [1, 2]);
        };
        refused(&mut |root| root.set_value_at(rt, 2, int(3)));
        refused(&mut |root| root.try_set_value_at(rt, usize::MAX, int(3)).unwrap());
        refused(&mut |root| assert!(root.replace_at(rt, 64, int(3)).to_isize() > 0));
        refused(&mut |root| assert!(root[std::hint::black_box(2)].get(rt).to_isize() > 0));
        assert!(root.get(2).is_none());
        catch_unwind(AssertUnwindSafe(|| _ = root.set_at(2, ValueGuard::from_static(rt, int(3))))).unwrap_err();
    })
}

#[test]
fn dropped_anywhere() {
    alone(dropped_anywhere, || {
        let make = || {
            attached(|rt| {
                let roots: Vec<WideRoot<[Str; 6]>> = (0..300).map(|i| numbers(rt, i)).collect();
                let weak: Vec<Weak<Str>> = roots.iter().flat_map(|root| watch(rt, root)).collect();
                (roots, weak)
            })
        };
        let ended = |weak: Vec<Weak<Str>>| attached(|rt| assert_eq!(alive(rt, &weak), 0));
        let (roots, weak) = make(); // without the lock
        drop(roots);
        ended(weak);
        let (roots, weak) = make(); // on a thread that OCaml does not know
        std::thread::spawn(|| drop(roots)).join().unwrap();
        ended(weak);
        thread_local!(static KEPT: RefCell<Vec<WideRoot<[Str; 6]>>> = const { RefCell::new(Vec::new()) });
        let (roots, weak) = make();
        std::thread::spawn(|| KEPT.set(roots)).join().unwrap();
        ended(weak);
        let (roots, weak) = make();
        assert!(catch_unwind(AssertUnwindSafe(move || {
            let _roots = roots;
            resume_unwind(Box::new(0));
        }))
        .is_err());
        ended(weak);
        // By finalisers: of payloads, young and old.
        let (roots, weak) = make();
        attached(|rt| {
            for (i, root) in roots.into_iter().enumerate() {
                let owned = rt.boxed(root).root();
                if i % 3 == 0 {
                    rt.minor_gc();
                }
                drop(owned);
            }
        });
        ended(weak);
        // Inside the collector.
        let (roots, weak) = make();
        ocaml::drop_in_collector(roots);
        ended(weak);
    })
}

#[test]
fn shared_by_threads() {
    let shared: Arc<Vec<WideRoot<[Str; 4]>>> = Arc::new(attached(|rt| (0..50).map(|i| numbers(rt, i)).collect()));
    let (sender, receiver) = std::sync::mpsc::channel::<WideRoot<[Str; 9]>>();
    std::thread::scope(|scope| {
        let undertaker = scope.spawn(|| receiver.into_iter().for_each(drop));
        let makers: Vec<_> = (0..3)
            .map(|t| {
                let (shared, sender) = (shared.clone(), sender.clone());
                scope.spawn(move || {
                    for round in 0..20 {
                        let mut made: Vec<WideRoot<[Str; 9]>> = attached(|rt| {
                            shared.iter().enumerate().for_each(|(i, root)| check(rt, root, i));
                            (0..100).map(|i| numbers(rt, i)).collect()
                        });
                        attached(|rt| {
                            made.iter_mut().for_each(|root| _ = root.set_at(0, rt.string("changed")));
                            if round % 5 == t {
                                rt.full_major().unwrap();
                            }
                            for (i, root) in made.iter().enumerate() {
                                assert_eq!(
                                    (text(rt, &root[0]), text(rt, &root[8])),
                                    ("changed", &*(i + 8).to_string())
                                );
                            }
                        });
                        made.into_iter().for_each(|root| sender.send(root).unwrap());
                    }
                })
            })
            .collect();
        makers.into_iter().for_each(|t| t.join().unwrap());
        drop(sender);
        undertaker.join().unwrap();
    });
}

#[test]
fn passed_between_domains() {
    attached(|rt| {
        let mut theirs: Vec<WideRoot<[Str; 3]>> = (0..600).map(|i| numbers(rt, i)).collect();
        let weak: Vec<Weak<Str>> = theirs.iter().flat_map(|root| watch(rt, root)).collect();
        for _ in 0..3 {
            // Each modifies what another domain made, drops a third of it, and makes its own.
            let handle = rt.spawn_domain(move |rt| {
                for (i, root) in theirs.iter_mut().enumerate() {
                    root.set_at(1, rt.string("changed"));
                    if i % 100 == 99 {
                        rt.minor_gc();
                    }
                    assert_eq!(text(rt, &root[1]), "changed");
                }
                theirs.drain(..200);
                theirs.extend((0..200).map(|i| numbers(rt, i)));
                rt.full_major().unwrap();
                theirs
            });
            let Ok(handle) = handle else { return };
            theirs = handle.join(rt).unwrap();
            // The roots outlive the domain.
            rt.full_major().unwrap();
            assert!(theirs[..400].iter().all(|root| text(rt, &root[1]) == "changed"));
            (0..200).for_each(|i| check(rt, &theirs[400 + i], i));
        }
        drop(theirs);
        assert_eq!(alive(rt, &weak), 0);
    })
}

/// Each of these is modified by several domains in turn, so that it moves, while others mark and collect.
#[test]
fn modified_by_domains_in_turn() {
    attached(|rt| {
        let make = |rt: &mut Runtime| -> Vec<WideRoot<[Str; 3]>> { (0..200).map(|i| numbers(rt, i)).collect() };
        let shared = Arc::new((0..4).map(|_| Mutex::new(make(rt))).collect::<Vec<_>>());
        let spawned: Result<Vec<_>, _> = (0..3)
            .map(|d| {
                let shared = shared.clone();
                rt.spawn_domain(move |rt| {
                    for round in 0..40 {
                        let values: WideRoot<[Str; 2]> = numbers(rt, 1000 * d + round);
                        let mut roots = rt.lock_mutex(&shared[(d + round) % 4]).unwrap();
                        for root in roots.iter_mut() {
                            for place in root.iter() {
                                assert!(text(rt, place).parse::<usize>().is_ok());
                            }
                            let old = text(rt, &root[d]).to_owned();
                            assert_eq!(root.replace_at(rt, d, values[0].get(rt)).to_str(), Ok(&*old));
                            root.set_value_at(rt, 2, values[1].get(rt));
                        }
                        drop(roots);
                        match round % 10 {
                            3 => rt.full_major().unwrap(),
                            _ => rt.minor_gc(),
                        }
                    }
                })
            })
            .collect();
        let Ok(spawned) = spawned else { return };
        spawned.into_iter().for_each(|handle| handle.join(rt).unwrap());
        rt.full_major().unwrap();
        for roots in shared.iter() {
            for root in roots.lock().unwrap().iter() {
                assert!(root.iter().all(|place| text(rt, place).parse::<usize>().unwrap() < 3000));
            }
        }
    })
}

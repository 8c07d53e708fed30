// SPDX-License-Identifier: MIT
//! Storages: roots that are dropped together, one by one, and by other threads and domains; keys; a random program.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::random::{self, Mix};
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::mem::{forget, size_of};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

fn text<'a>(rt: &'a Runtime, place: ValueRef<'_, Str>) -> &'a str {
    place.get(rt).to_str().unwrap()
}

fn fill<'s>(rt: &mut Runtime, storage: &'s Storage, numbers: std::ops::Range<usize>) -> Vec<StorageRoot<'s, Str>> {
    numbers.map(|i| storage.root(rt.string(i.to_string()))).collect()
}

fn check(rt: &Runtime, roots: &[StorageRoot<'_, Str>], numbers: std::ops::Range<usize>) {
    assert_eq!(roots.len(), numbers.len());
    for (root, i) in roots.iter().zip(numbers) {
        assert_eq!(text(rt, root), i.to_string());
    }
}

/// A weak root for each, which tells whether the value is alive.
fn watch(rt: &mut Runtime, storage: &Storage, count: usize) -> Vec<Weak<Str>> {
    (0..count)
        .map(|i| {
            let v = rt.string(i.to_string());
            storage.root_value(v.rt(), v.value()).into_ref();
            v.value().downgrade(v.rt()).unwrap()
        })
        .collect()
}

fn alive(rt: &mut Runtime, weak: &[Weak<Str>]) -> usize {
    for _ in 0..3 {
        rt.full_major().unwrap(); // what the marker had yet to read lives until it has finished
    }
    weak.iter().filter(|w| w.is_alive(rt)).count()
}

#[test]
fn words() {
    assert_eq!(size_of::<StorageRoot<'_, Str>>(), 8);
    assert_eq!(size_of::<Option<StorageRoot<'_>>>(), 8);
    assert_eq!(size_of::<Option<StorageKey>>(), 16);
    fn shared<T: Send + Sync>() {}
    shared::<(Storage, StorageRoot<'_, Str>, StorageKey<Str>)>();
}

#[test]
fn names() {
    attached(|rt| {
        for (given, kept) in [
            ("", ""),
            ("connection 7", "connection 7"),
            (&"x".repeat(47), &*"x".repeat(47)),
            (&"x".repeat(48), &*"x".repeat(47)),
            (&("x".repeat(46) + "é"), &*"x".repeat(46)),
            (&("x".repeat(45) + "é"), &*("x".repeat(45) + "é")),
            ("a\0b", "a"),
        ] {
            let storage = Storage::new(rt, given);
            assert_eq!(storage.name(), kept);
            assert_eq!(format!("{storage:?}"), format!("Storage({kept:?})"));
        }
    })
}

#[test]
fn keep_values_until_they_are_cleared() {
    attached(|rt| {
        let mut storage = Storage::new(rt, "kept");
        for round in 0..3 {
            let roots = fill(rt, &storage, 0..5000);
            rt.minor_gc();
            check(rt, &roots, 0..5000);
            rt.compact().unwrap();
            check(rt, &roots, 0..5000);
            drop(roots); // which ends none of them
            assert_eq!(storage.count(rt), 5000, "{round}");
            storage.clear(rt);
            assert_eq!(storage.count(rt), 0, "{round}");
            rt.minor_gc();
        }
        let weak = watch(rt, &storage, 1000);
        assert_eq!(alive(rt, &weak), 1000);
        storage.clear(rt);
        assert_eq!(alive(rt, &weak), 0);
        let weak = watch(rt, &storage, 1000);
        assert_eq!(alive(rt, &weak), 1000);
        drop(storage);
        assert_eq!(alive(rt, &weak), 0);
    })
}

#[test]
fn roots_that_change_and_end() {
    attached(|rt| {
        let mut storage = Storage::new(rt, "change");
        let mut roots = fill(rt, &storage, 0..3000);
        for (i, root) in roots.iter_mut().enumerate() {
            match i % 3 {
                0 => assert_eq!(root.set(rt.string((i + 7).to_string())).get(rt).to_str(), Ok(&*(i + 7).to_string())),
                1 => {
                    let v = rt.string((i + 7).to_string());
                    root.set_value(v.rt(), v.value());
                }
                _ => (),
            }
            if i == 1500 {
                rt.minor_gc();
            }
        }
        rt.full_major().unwrap();
        for (i, root) in roots.into_iter().enumerate() {
            let number = if i % 3 == 2 { i } else { i + 7 };
            assert_eq!(text(rt, &root), number.to_string());
            match i % 4 {
                0 => root.delete(),
                1 => root.drop_ref(rt),
                _ => (), // it stays
            }
        }
        for _ in 0..3 {
            rt.full_major().unwrap(); // some deletions wait for the marker
        }
        // In the checked build what was deleted lately is still there, so that its use is found.
        let counts = |n, exact| n == exact || (cfg!(feature = "checked") && n > exact);
        assert!(counts(storage.count(rt), 1500));
        let kept =
            fill(rt, &storage, 0..100).into_iter().map(StorageRoot::into_ref).collect::<Vec<ValueRef<'_, Str>>>();
        rt.compact().unwrap();
        kept.iter().enumerate().for_each(|(i, place)| assert_eq!(text(rt, place), i.to_string()));
        assert!(counts(storage.count(rt), 1600));
    })
}

#[test]
fn keys_are_tested() {
    attached(|rt| {
        let (mut one, two) = (Storage::new(rt, "one"), Storage::new(rt, "two"));
        let insert = |rt: &mut Runtime, storage: &Storage, s: &str| {
            let v = rt.string(s);
            storage.insert(v.rt(), v.value())
        };
        let (a, b, c) = (insert(rt, &one, "a"), insert(rt, &one, "b"), insert(rt, &two, "c"));
        rt.compact().unwrap();
        assert_eq!(text(rt, one.get(&a).unwrap()), "a");
        assert_eq!(text(rt, two.get(&c).unwrap()), "c");
        assert!(two.get(&a).is_none() && one.get(&c).is_none());
        let mut root = one.take(b).unwrap();
        root.set(rt.string("b again"));
        rt.minor_gc();
        assert_eq!(text(rt, &root), "b again");
        root.drop_ref(rt);
        one.clear(rt);
        assert!(one.get(&a).is_none());
        let d = insert(rt, &one, "d"); // perhaps where the first one was
        assert!(one.get(&a).is_none() && one.take(a).is_none());
        assert_eq!(text(rt, one.get(&d).unwrap()), "d");
        drop(two);
        let three = Storage::new(rt, "three"); // perhaps in the memory of the second
        assert!(three.get(&c).is_none() && three.take(c).is_none());
        assert!(three.get(&d).is_none());
    })
}

#[test]
fn dropped_anywhere() {
    alone(dropped_anywhere, || {
        let make = |count: usize| {
            attached(|rt| {
                let storage = Storage::new(rt, "dropped");
                let weak = watch(rt, &storage, count);
                (storage, weak)
            })
        };
        let ended = |weak: Vec<Weak<Str>>| attached(|rt| assert_eq!(alive(rt, &weak), 0));
        let (storage, weak) = make(700); // without the lock
        drop(storage);
        ended(weak);
        let (storage, weak) = make(700); // on a thread that OCaml does not know
        std::thread::spawn(|| drop(storage)).join().unwrap();
        ended(weak);
        let (storage, weak) = make(700);
        assert!(catch_unwind(AssertUnwindSafe(move || {
            let _storage = storage;
            resume_unwind(Box::new(0));
        }))
        .is_err());
        ended(weak);
        // Inside the collector.
        let (storage, weak) = make(700);
        ocaml::drop_in_collector(vec![storage]);
        ended(weak);
    })
}

/// Payloads of OCaml, each with a storage of its own, that young blocks and old ones own.
#[test]
fn dropped_by_finalisers() {
    struct Session(#[allow(dead_code)] Storage, #[allow(dead_code)] Vec<StorageKey<Str>>);
    attached(|rt| {
        let mut weak = Vec::new();
        for round in 0..60 {
            let storage = Storage::new(rt, "session");
            weak.extend(watch(rt, &storage, 50));
            let key = {
                let v = rt.string("keyed");
                storage.insert(v.rt(), v.value())
            };
            let session = rt.boxed(Session(storage, vec![key]));
            if round % 2 == 0 {
                let root = session.root();
                rt.minor_gc();
                drop(root);
            }
            if round % 10 == 9 {
                rt.full_major().unwrap();
            }
        }
        assert_eq!(alive(rt, &weak), 0);
    })
}

/// A storage that is forgotten keeps its values; one that is leaked has roots for ever.
#[test]
fn forgotten() {
    attached(|rt| {
        let storage = Storage::new(rt, "forgotten");
        let weak = watch(rt, &storage, 100);
        forget(storage);
        assert_eq!(alive(rt, &weak), 100);
        let storage: &'static Storage = Box::leak(Box::new(Storage::new(rt, "leaked")));
        let roots: Vec<StorageRoot<'static, Str>> = fill(rt, storage, 0..100);
        rt.full_major().unwrap();
        let roots = rt.release(|| std::thread::spawn(|| attached(|rt| (check(rt, &roots, 0..100), roots).1)).join());
        roots.unwrap().into_iter().for_each(StorageRoot::delete);
    })
}

#[test]
fn shared_by_threads() {
    let storage = attached(|rt| Storage::new(rt, "shared"));
    let storage = &storage;
    let (sender, receiver) = std::sync::mpsc::channel::<StorageRoot<'_, Str>>();
    std::thread::scope(|scope| {
        let undertaker = scope.spawn(|| receiver.into_iter().for_each(StorageRoot::delete));
        let makers: Vec<_> = (0..3)
            .map(|t| {
                let sender = sender.clone();
                scope.spawn(move || {
                    for round in 0..20 {
                        let roots = attached(|rt| {
                            let roots = fill(rt, storage, 0..200);
                            if round % 5 == t {
                                rt.full_major().unwrap();
                            }
                            roots
                        });
                        attached(|rt| check(rt, &roots, 0..200));
                        roots.into_iter().for_each(|root| sender.send(root).unwrap());
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
fn shared_by_domains() {
    attached(|rt| {
        let mut storage = Arc::new(Storage::new(rt, "domains"));
        for round in 0..3 {
            let spawned: Result<Vec<_>, _> = (0..3)
                .map(|d| {
                    let storage = storage.clone();
                    rt.spawn_domain(move |rt| {
                        let roots = fill(rt, &storage, d..d + 1000);
                        rt.minor_gc();
                        check(rt, &roots, d..d + 1000);
                        let keys = roots.iter().map(|root| storage.insert(rt, root.get(rt)));
                        (d, keys.collect::<Vec<StorageKey<Str>>>())
                    })
                })
                .collect();
            let Ok(spawned) = spawned else { return };
            let keys: Vec<_> = spawned.into_iter().map(|handle| handle.join(rt).unwrap()).collect();
            rt.full_major().unwrap();
            // The roots outlive the domains.
            for (d, keys) in &keys {
                for (i, key) in keys.iter().enumerate() {
                    assert_eq!(text(rt, storage.get(key).unwrap()), (d + i).to_string());
                }
            }
            while Arc::get_mut(&mut storage).is_none() {
                std::thread::yield_now();
            }
            Arc::get_mut(&mut storage).unwrap().clear(rt);
            assert!(keys.iter().flat_map(|k| &k.1).all(|key| storage.get(key).is_none()), "{round}");
            rt.full_major().unwrap();
        }
    })
}

// --- a random program

/// A storage, and what it should hold.
struct Place {
    storage: Storage,
    keys: Vec<(StorageKey<Str>, usize)>,
    /// Of roots in it before it was cleared, or in another.
    stale: Vec<StorageKey<Str>>,
    /// Roots that no key is left of.
    lost: usize,
}

fn place(rt: &Runtime) -> Place {
    Place { storage: Storage::new(rt, "random"), keys: Vec::new(), stale: Vec::new(), lost: 0 }
}

fn run(seed: u64) {
    let mut mix = Mix(seed);
    attached(|rt| {
        let mut places: Vec<Place> = (0..4).map(|_| place(rt)).collect();
        for _ in 0..if cfg!(feature = "checked") { 300 } else { 1500 } {
            let at = mix.below(places.len());
            let p = &mut places[at];
            let n = mix.below(10_000);
            match mix.below(16) {
                0..=5 => {
                    for n in n..n + mix.below(200) {
                        let v = rt.string(n.to_string());
                        p.keys.push((p.storage.insert(v.rt(), v.value()), n));
                    }
                }
                6 | 7 => {
                    for _ in 0..mix.below(100).min(p.keys.len()) {
                        let (key, n) = p.keys.swap_remove(mix.below(p.keys.len()));
                        let root = p.storage.take(key).unwrap();
                        assert_eq!(text(rt, &root), n.to_string());
                        match mix.below(4) {
                            0 => root.delete(),
                            1 | 2 => root.drop_ref(rt),
                            _ => p.lost += 1,
                        }
                    }
                }
                8 | 9 => {
                    for (key, n) in &p.keys {
                        assert_eq!(text(rt, p.storage.get(key).unwrap()), n.to_string());
                    }
                    assert!(p.stale.iter().all(|key| p.storage.get(key).is_none()));
                }
                10 => {
                    let mut roots = fill(rt, &p.storage, n..n + 50);
                    for root in &mut roots {
                        root.set(rt.string("changed"));
                    }
                    rt.minor_gc();
                    assert!(roots.iter().all(|root| text(rt, root) == "changed"));
                    roots.into_iter().for_each(|root| root.drop_ref(rt));
                }
                11 => {
                    p.storage.clear(rt);
                    p.stale = p.keys.drain(..).map(|(key, _)| key).collect();
                    p.lost = 0;
                    assert_eq!(p.storage.count(rt), 0);
                }
                12 => {
                    let old = std::mem::replace(p, place(rt));
                    p.stale = old.keys.into_iter().map(|(key, _)| key).collect();
                    match mix.below(3) {
                        0 => drop(old.storage),
                        1 => rt.release(|| drop(old.storage)),
                        _ => rt.release(|| std::thread::spawn(|| drop(old.storage)).join().unwrap()),
                    }
                }
                13 => match mix.below(8) {
                    0 => rt.full_major().unwrap(),
                    1 => rt.compact().unwrap(),
                    _ => rt.minor_gc(),
                },
                14 => ocaml::garbage(rt).call(rt, (n as i32 % 500,)).unwrap().into_rt().poll().unwrap(),
                _ => assert!(p.storage.count(rt) >= p.keys.len() + p.lost),
            }
        }
        for p in &mut places {
            rt.full_major().unwrap();
            for (key, n) in &p.keys {
                assert_eq!(text(rt, p.storage.get(key).unwrap()), n.to_string());
            }
        }
    });
}

#[test]
fn random_programs() {
    random::programs(5, run);
}

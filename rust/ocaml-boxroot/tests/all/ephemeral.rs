// SPDX-License-Identifier: MIT
//! Ephemeral roots: data that lives as long as its key; cycles and chains; where they may be dropped.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::mem::size_of;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Data that refers to a key.
type Pair = (Str, Str);

fn collect(rt: &mut Runtime) {
    for _ in 0..3 {
        rt.full_major().unwrap(); // what was read while the marker was at work lives until it has finished
    }
}

/// Keys, and an ephemeral root for each, with data `data N` that refers to its key.
fn cycles(rt: &mut Runtime, count: usize) -> (Vec<Root<Str>>, Vec<Ephemeral<Str, Pair>>) {
    let keys: Vec<Root<Str>> = (0..count).map(|i| rt.string(format!("key {i}")).root()).collect();
    let all = keys.iter().enumerate().map(|(i, key)| {
        let text = rt.string(format!("data {i}")).root();
        let data = rt.pair(&text, key);
        Ephemeral::new(data.rt(), key.get(data.rt()), data.value()).unwrap()
    });
    let all = all.collect();
    (keys, all)
}

/// Each is dead, or alive with the right key and data; how many are alive.
fn check(rt: &Runtime, all: &[Ephemeral<Str, Pair>]) -> usize {
    let mut alive = 0;
    for (i, e) in all.iter().enumerate() {
        let (key, data) = (e.key(rt), e.get(rt));
        assert!(key.is_some() == data.is_some() && e.is_alive(rt) == key.is_some());
        let (Some(key), Some(data)) = (key, data) else {
            assert!(e.upgrade(rt).is_none());
            continue;
        };
        assert_eq!(key.to_str(), Ok(&*format!("key {i}")));
        assert_eq!(data.first().to_str(), Ok(&*format!("data {i}")));
        assert!(data.second().ptr_eq(key));
        alive += 1;
    }
    alive
}

#[test]
fn words() {
    assert_eq!(size_of::<Ephemeral<Str, Int>>(), 8);
    assert_eq!(size_of::<Option<Ephemeral>>(), 8);
    fn shared<T: Send + Sync>() {}
    shared::<Ephemeral<Str, Str>>();
}

#[test]
fn data_lives_as_long_as_the_key() {
    attached(|rt| {
        let (mut keys, all) = cycles(rt, 900);
        assert_eq!(check(rt, &all), 900);
        rt.minor_gc();
        assert_eq!(check(rt, &all), 900);
        rt.compact().unwrap();
        assert_eq!(check(rt, &all), 900);
        let data: Vec<Weak<Pair>> = all.iter().map(|e| e.get(rt).unwrap().downgrade(rt).unwrap()).collect();
        collect(rt);
        assert!(data.iter().all(|w| w.is_alive(rt)));
        let kept: Vec<Root<Str>> = keys.drain(..).step_by(3).collect();
        collect(rt);
        assert_eq!(check(rt, &all), 300);
        for (i, (e, w)) in all.iter().zip(&data).enumerate() {
            assert!(e.is_alive(rt) == (i % 3 == 0) && w.is_alive(rt) == (i % 3 == 0), "{i}");
        }
        // A root of the data keeps the data; here the key too, since the data refers to it.
        let roots: Vec<Root<Pair>> = all.iter().step_by(3).map(|e| e.upgrade(rt).unwrap()).collect();
        drop(kept);
        collect(rt);
        assert_eq!(check(rt, &all), 300);
        drop(roots);
        collect(rt);
        assert_eq!(check(rt, &all), 0);
        assert!(data.iter().all(|w| !w.is_alive(rt)));
    })
}

#[test]
fn dropped_ones_keep_nothing() {
    attached(|rt| {
        let (keys, mut all) = cycles(rt, 500);
        let data: Vec<Weak<Pair>> = all.iter().map(|e| e.get(rt).unwrap().downgrade(rt).unwrap()).collect();
        all.truncate(200);
        collect(rt);
        assert_eq!(data.iter().filter(|w| w.is_alive(rt)).count(), 200);
        assert_eq!(check(rt, &all), 200);
        assert_eq!(keys[499].get(rt).to_str(), Ok("key 499"));
    })
}

/// The data of one is the key of the next, as in a list that is held by its first key.
#[test]
fn chains() {
    attached(|rt| {
        let first = rt.string("0").root();
        let mut last = first.clone_ref(rt);
        let all: Vec<Ephemeral<Str, Str>> = (1..200)
            .map(|i| {
                let next = rt.string(i.to_string()).root();
                let e = Ephemeral::new(rt, last.get(rt), next.get(rt)).unwrap();
                last = next;
                e
            })
            .collect();
        drop(last);
        collect(rt);
        for (i, e) in all.iter().enumerate() {
            assert_eq!(e.get(rt).unwrap().to_str(), Ok(&*(i + 1).to_string()));
        }
        let middle = all[100].upgrade(rt).unwrap();
        drop(first);
        collect(rt);
        // The key of the one after it is alive, and so on.
        assert!(all[..101].iter().all(|e| !e.is_alive(rt)) && all[101..].iter().all(|e| e.is_alive(rt)));
        assert_eq!(middle.get(rt).to_str(), Ok("101"));
    })
}

#[test]
fn data_that_is_replaced() {
    attached(|rt| {
        let (mut keys, mut all) = cycles(rt, 300);
        let old: Vec<Weak<Pair>> = all.iter().map(|e| e.get(rt).unwrap().downgrade(rt).unwrap()).collect();
        let text = rt.string("new").root();
        for (i, e) in all.iter_mut().enumerate().filter(|(i, _)| i % 2 == 0) {
            let new = rt.pair(&text, &keys[(i + 1) % 300]);
            assert_eq!(e.set(new.rt(), new.value()), Ok(true));
            if i == 150 {
                rt.minor_gc();
            }
        }
        collect(rt);
        for (i, (e, old)) in all.iter().zip(&old).enumerate() {
            let expected = if i % 2 == 0 { "new".to_owned() } else { format!("data {i}") };
            assert_eq!(e.get(rt).unwrap().first().to_str(), Ok(&*expected));
            assert_eq!(e.key(rt).unwrap().to_str(), Ok(&*format!("key {i}")));
            assert_eq!(old.is_alive(rt), i % 2 == 1);
        }
        keys.clear();
        collect(rt);
        let pair = rt.pair(&text, &text).root();
        for e in &mut all {
            assert_eq!(e.set(rt, pair.get(rt)), Ok(false));
            assert!(e.get(rt).is_none());
        }
    })
}

#[test]
fn keys_of_all_kinds() {
    attached(|rt| {
        // Immediates and functions that are part of the program never die.
        let number = Ephemeral::new(rt, int(5), rt.named_value("succ").unwrap()).unwrap();
        let text = rt.string("data").root();
        let function = ocaml::succ(rt);
        let of_function = Ephemeral::new(rt, function.get(rt), text.get(rt)).unwrap();
        drop((function, text));
        collect(rt);
        assert_eq!(number.key(rt).unwrap().to_isize(), 5);
        assert!(number.get(rt).unwrap().ptr_eq(rt.named_value("succ").unwrap()));
        assert_eq!(of_function.get(rt).unwrap().to_str(), Ok("data"));
        // A function inside the block of another one.
        let infix = ocaml::infix(rt).call(rt, (7,)).unwrap().root();
        let inside = Ephemeral::new(rt, infix.get(rt), int(1)).unwrap();
        rt.compact().unwrap();
        assert!(inside.key(rt).unwrap().ptr_eq(infix.get(rt)));
        drop(infix);
        collect(rt);
        assert!(inside.get(rt).is_none() && inside.key(rt).is_none());
        // Lazy values are data, but not keys.
        let lazy = ocaml::lazy(rt).call(rt, (3,)).unwrap().root();
        let refused = Ephemeral::new(rt, lazy.get(rt), int(1)).unwrap_err();
        assert_eq!(refused, RootError::Lazy);
        assert!(refused.to_string().contains("lazy"));
        let key = rt.string("key").root();
        let e = Ephemeral::new(rt, key.get(rt), lazy.get(rt)).unwrap();
        drop(lazy);
        rt.full_major().unwrap();
        let data = e.upgrade(rt).unwrap();
        let four = ocaml::force(rt).call(rt, (&data,)).unwrap().root();
        assert_eq!(four.get(rt).kind(), ValueKind::Int(4));
        drop(data);
        collect(rt);
        let data = e.upgrade(rt).unwrap();
        assert!(ocaml::force(rt).call(rt, (&data,)).unwrap().value().ptr_eq(int(4)));
    })
}

/// Keys and data that are rooted while a block is built, which holds every second key.
#[test]
fn made_in_a_build() {
    attached(|rt| {
        let mut all: Vec<Ephemeral<Str, Str>> = Vec::new();
        let keys = [0, 2000].map(|words| {
            let built = rt.build(words, |n| {
                let keys: Vec<Value<'_, Str>> = (0..60).map(|i| n.string(format!("key {i}"))).collect();
                for (i, key) in keys.iter().enumerate() {
                    all.push(Ephemeral::new(n, *key, n.string(format!("data {i}"))).unwrap());
                    if i % 3 == 0 {
                        let e = all.last_mut().unwrap();
                        assert_eq!(e.set(n, n.string(format!("new {i}"))), Ok(true));
                    }
                }
                let kept: Vec<Value<'_, Str>> = keys.into_iter().step_by(2).collect();
                kept.as_slice().to_ocaml(n).unwrap()
            });
            built.root()
        });
        rt.minor_gc();
        collect(rt);
        for (i, e) in all.iter().enumerate() {
            let i = i % 60;
            let text = if i % 3 == 0 { format!("new {i}") } else { format!("data {i}") };
            assert_eq!(e.get(rt).map(|v| v.to_str().unwrap()), (i % 2 == 0).then_some(&*text));
        }
        drop(keys);
        collect(rt);
        assert!(all.iter().all(|e| !e.is_alive(rt)));
    })
}

/// What they are for: a payload of Rust owns a closure, or what it is, which refers to the block of the payload.
#[test]
fn payloads_with_callbacks_that_refer_to_them() {
    type Data = (Str, Boxed<Button>);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    #[derive(Default)]
    struct Button(Mutex<Option<Ephemeral<Boxed<Button>, Data>>>);
    impl Drop for Button {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, SeqCst);
        }
    }
    attached(|rt| {
        let buttons: Vec<Root<Boxed<Button>>> = (0..200).map(|_| rt.boxed(Button::default()).root()).collect();
        for round in 0..3 {
            for (i, button) in buttons.iter().enumerate() {
                let text = rt.string(format!("{round} {i}")).root();
                let data = rt.pair(&text, button);
                let e = Ephemeral::new(data.rt(), button.get(data.rt()), data.value()).unwrap();
                drop(button.payload(data.rt()).0.lock().unwrap().replace(e));
            }
            collect(rt);
            for (i, button) in buttons.iter().enumerate() {
                let on_click = button.payload(rt).0.lock().unwrap();
                let data = on_click.as_ref().unwrap().get(rt).unwrap();
                assert_eq!(data.first().to_str(), Ok(&*format!("{round} {i}")));
                assert!(data.second().ptr_eq(button.get(rt)));
            }
        }
        assert_eq!(DROPPED.load(SeqCst), 0);
        drop(buttons);
        collect(rt);
        collect(rt);
        assert_eq!(DROPPED.load(SeqCst), 200);
    })
}

/// A payload whose block dies hands on the ephemeral roots that it had: what its own key was is not found any more.
#[test]
fn used_after_the_key_was_finalised() {
    static FOUND: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    #[derive(Default)]
    struct Owner(Mutex<Option<Ephemeral<Boxed<Owner>, Str>>>);
    impl Drop for Owner {
        fn drop(&mut self) {
            let e = self.0.get_mut().unwrap().take().unwrap();
            defer(move |rt| {
                let found = e.key(rt).is_some() || e.get(rt).is_some() || e.upgrade(rt).is_some();
                FOUND[usize::from(found)].fetch_add(1, SeqCst);
            });
        }
    }
    attached(|rt| {
        for i in 0..3000 {
            let owner = rt.boxed(Owner::default()).root();
            let text = rt.string("data");
            let e = Ephemeral::new(text.rt(), owner.get(text.rt()), text.value()).unwrap();
            *owner.payload(text.rt()).0.lock().unwrap() = Some(e);
            match i % 4 {
                0 => rt.minor_gc(), // it dies old; otherwise young
                1 => rt.poll().unwrap(),
                _ => (),
            }
            drop(owner);
            if i % 300 == 0 {
                rt.full_major().unwrap();
            }
        }
        collect(rt);
        collect(rt);
        rt.poll().unwrap();
        assert_eq!(FOUND.each_ref().map(|n| n.load(SeqCst)), [3000, 0]);
    })
}

/// Nothing is collected while they are made, however many there are; the data may be the key itself.
#[test]
fn values_stay_while_very_many_are_made() {
    attached(|rt| {
        let first = rt.string("the first");
        let (value, rt_) = (first.value(), first.rt());
        let mut all: Vec<Ephemeral<Str, Str>> = Vec::new();
        for _ in 0..if cfg!(feature = "checked") { 20_000 } else { 60_000 } {
            all.push(Ephemeral::new(rt_, value, value).unwrap());
        }
        assert_eq!(value.to_str(), Ok("the first"));
        assert!(all.iter().all(|e| e.get(rt_).unwrap().ptr_eq(value) && e.key(rt_).unwrap().ptr_eq(value)));
        let root = first.root();
        rt.minor_gc();
        assert!(all.iter().all(|e| e.get(rt).unwrap().ptr_eq(root.get(rt))));
        drop(root);
        collect(rt);
        assert!(all.iter().all(|e| e.get(rt).is_none()));
    })
}

#[test]
fn dropped_anywhere() {
    alone(dropped_anywhere, || {
        let make = || {
            attached(|rt| {
                let (keys, all) = cycles(rt, 300);
                let data: Vec<Weak<Pair>> = all.iter().map(|e| e.get(rt).unwrap().downgrade(rt).unwrap()).collect();
                (keys, all, data)
            })
        };
        let ended = |keys: Vec<Root<Str>>, data: Vec<Weak<Pair>>| {
            attached(|rt| {
                collect(rt);
                assert!(data.iter().all(|w| !w.is_alive(rt)));
                assert_eq!(keys[7].get(rt).to_str(), Ok("key 7"));
            })
        };
        let (keys, all, data) = make(); // without the lock
        drop(all);
        ended(keys, data);
        let (keys, all, data) = make(); // on a thread that OCaml does not know
        std::thread::spawn(|| drop(all)).join().unwrap();
        ended(keys, data);
        let (keys, all, data) = make();
        assert!(catch_unwind(AssertUnwindSafe(move || {
            let _all = all;
            resume_unwind(Box::new(0));
        }))
        .is_err());
        ended(keys, data);
        // By finalisers of payloads, some of which the keys keep.
        let (keys, all, data) = make();
        attached(|rt| {
            for (i, e) in all.into_iter().enumerate() {
                let owned = rt.boxed(e).root();
                if i % 3 == 0 {
                    rt.minor_gc();
                }
                drop(owned);
            }
        });
        ended(keys, data);
        // Inside the collector.
        let (keys, all, data) = make();
        ocaml::drop_in_collector(all);
        ended(keys, data);
    })
}

#[test]
fn shared_by_threads() {
    let (keys, all) = attached(|rt| cycles(rt, 100));
    let (keys, all) = (&keys, &all);
    std::thread::scope(|scope| {
        for t in 0..4 {
            scope.spawn(move || {
                for round in 0..30 {
                    let mut own: Vec<Ephemeral<Str, Pair>> = attached(|rt| {
                        assert_eq!(check(rt, all), 100);
                        let data = all[round].upgrade(rt).unwrap();
                        keys.iter().map(|key| Ephemeral::new(rt, key.get(rt), data.get(rt)).unwrap()).collect()
                    });
                    attached(|rt| {
                        if round % 6 == t {
                            rt.full_major().unwrap();
                        }
                        for (e, other) in own.iter_mut().zip(all) {
                            assert_eq!(e.get(rt).unwrap().first().to_str(), Ok(&*format!("data {round}")));
                            assert_eq!(e.set(rt, other.get(rt).unwrap()), Ok(true));
                        }
                        assert_eq!(check(rt, &own), 100);
                    });
                }
            });
        }
    });
}

#[test]
fn used_by_domains() {
    attached(|rt| {
        let (keys, all) = cycles(rt, 400);
        let (dying, dead) = cycles(rt, 400);
        drop(dying);
        let (keys, shared) = (Arc::new(keys), Arc::new((all, dead)));
        let spawned: Result<Vec<_>, _> = (0..3)
            .map(|d| {
                let (keys, shared) = (keys.clone(), shared.clone());
                rt.spawn_domain(move |rt| {
                    let mut own = Vec::new();
                    for round in 0..30 {
                        assert_eq!(check(rt, &shared.0), 400);
                        check(rt, &shared.1); // at any time, while others sweep and clean
                        let data = shared.0[round].get(rt).unwrap();
                        match Ephemeral::new(rt, keys[round].get(rt), data) {
                            Ok(e) => own.push(e),
                            Err(error) => assert_eq!(error, RootError::NotFirstDomain),
                        }
                        if round % 10 == d {
                            rt.full_major().unwrap();
                        }
                        rt.build(200, |n| n.string("garbage")).into_rt();
                    }
                    assert_eq!(check(rt, &own), own.len());
                    own
                })
            })
            .collect();
        let Ok(spawned) = spawned else { return };
        let own: Vec<Vec<Ephemeral<Str, Pair>>> = spawned.into_iter().map(|h| h.join(rt).unwrap()).collect();
        collect(rt);
        // They outlive the domains that made them.
        own.iter().for_each(|own| assert_eq!(check(rt, own), own.len()));
        assert_eq!((check(rt, &shared.0), check(rt, &shared.1)), (400, 0));
        drop(Arc::try_unwrap(keys));
        collect(rt);
        assert_eq!(check(rt, &shared.0) + own.iter().map(|own| check(rt, own)).sum::<usize>(), 0);
    })
}

// SPDX-License-Identifier: MIT
//! Results that own the runtime, frames, and scopes without collections.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Returns the value in one branch, without a root, and goes on in the other.
fn fixpoint<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Fun<(Float,), Float>>,
    x: ValueRef<'_, Float>,
) -> Result<ValueGuard<'a, Float>, Exception> {
    let y = f.call(rt, (x,))?;
    if y.value().to_f64() == x.get(y.rt()).to_f64() {
        return Ok(y);
    }
    let (y, rt) = y.root_and_rt();
    fixpoint(rt, f, &y)
}

fn fixpoint_loop<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Fun<(Float,), Float>>,
    mut x: Root<Float>,
) -> Result<ValueGuard<'a, Float>, Exception> {
    let mut rt = rt;
    loop {
        let y = f.call(rt, (&x,))?;
        if y.value().to_f64() == x.get(y.rt()).to_f64() {
            return Ok(y);
        }
        rt = x.set_and_rt(y);
    }
}

#[test]
fn conditional_return() {
    attached(|rt| {
        let half = ocaml::half(rt);
        let x = rt.float(12.0).root();
        assert_eq!(fixpoint(rt, &half, &x).unwrap().value().to_f64(), 0.75);
        assert_eq!(fixpoint_loop(rt, &half, x).unwrap().value().to_f64(), 0.75);
    })
}

#[test]
fn fresh_values() {
    attached(|rt| {
        let (v, rt2) = rt.string("frozen").freeze();
        let r = v.root(rt2);
        assert_eq!(v.to_str(), r.get(rt2).to_str());
        let v = rt.string("gone");
        let rt = v.into_rt();
        assert_eq!(rt.string("value").into_value().to_str(), Ok("value"));
        assert_eq!(ValueGuard::from_static(rt, int(3)).value().to_isize(), 3);
        assert_eq!(r.get(rt).to_str(), Ok("frozen"));
    })
}

#[test]
fn frames_keep_values() {
    attached(|rt| {
        let result = rt.frame(|rt, [a, b, mut c]| {
            let a = a.root(rt.string("a"));
            rt.minor_gc();
            let (b, rt) = b.root_and_rt(rt.pair(a, &int(1)));
            rt.full_major().unwrap();
            for i in 0..1000 {
                let place = c.set(rt.string(i.to_string()));
                rt.minor_gc();
                assert_eq!(place.get(rt).to_str(), Ok(&*i.to_string()));
            }
            assert!(b.get(rt).first().ptr_eq(a.get(rt)));
            rt.pair(a, b)
        });
        assert_eq!(result.value().first().to_str(), Ok("a"));
        assert_eq!(result.value().second().second().to_isize(), 1);
    })
}

/// If a frame stayed linked, the next collection would read cells that are no more.
#[test]
fn frames_end_by_panics_errors_and_exceptions() {
    fn clobber(depth: usize) -> usize {
        let noise = std::hint::black_box([depth | 0xdead_0000_0000; 64]);
        if depth == 0 {
            noise[3] & 1
        } else {
            clobber(depth - 1) + (noise[7] & 1)
        }
    }
    attached(|rt| {
        let fail = ocaml::raise_not_found(rt);
        for i in 0..200 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                rt.frame(|rt, [a, b]| {
                    let _a = a.root(rt.string("lost"));
                    rt.frame(|rt, [c]| {
                        let _c = c.root(rt.string("lost too"));
                        if i % 2 == 0 {
                            std::panic::resume_unwind(Box::new(i));
                        }
                    });
                    let _b = b.root(rt.string("x"));
                    std::panic::resume_unwind(Box::new(i))
                })
            }));
            assert!(matches!(caught, Err(payload) if payload.downcast_ref() == Some(&i)));
            let failed: Result<(), Exception> = rt.frame(|rt, [a]| {
                let _a = a.root(rt.string("lost"));
                fail.call(rt, ((),))?;
                Ok(())
            });
            assert!(failed.unwrap_err().is(rt, "Not_found"));
            clobber(20);
            rt.minor_gc();
        }
        rt.full_major().unwrap();
    })
}

fn check(rt: &Runtime, places: &[ValueRef<'_, Str>]) {
    for (i, place) in places.iter().enumerate() {
        assert_eq!(place.get(rt).to_str(), Ok(&*i.to_string()));
    }
}

#[test]
fn locals_in_any_number() {
    attached(|rt| {
        for count in [0, 1, 7, 8, 9, 71, 72, 73, 328, 329, 2888, 2889, 20_000] {
            let last = rt.locals(|rt, locals| {
                let mut places = Vec::new();
                for i in 0..count {
                    places.push(match i % 3 {
                        0 => locals.root(rt.string(i.to_string())),
                        1 => {
                            let v = rt.string(i.to_string());
                            locals.root_value(v.rt(), v.value())
                        }
                        _ => locals.root_and_rt(rt.string(i.to_string())).0,
                    });
                    if i % 997 == 5 {
                        rt.minor_gc();
                    }
                }
                check(rt, &places);
                rt.compact().unwrap();
                check(rt, &places);
                let mut slot = locals.slot(rt);
                for i in 0..50 {
                    let place = slot.set(rt.string(i.to_string()));
                    rt.minor_gc();
                    assert_eq!(place.get(rt).to_str(), Ok(&*i.to_string()));
                }
                let last = slot.set(rt.string("last"));
                rt.pair(last, &int(count))
            });
            assert_eq!((last.value().first().to_str(), last.value().second().to_isize()), (Ok("last"), count as isize));
            rt.minor_gc();
        }
    })
}

/// A function that has locals of its own, and makes some in those of its caller.
#[test]
fn locals_of_a_caller() {
    fn half<'f>(rt: &mut Runtime, depth: usize, outer: &'f Locals) -> Vec<ValueRef<'f, Str>> {
        rt.locals(|rt, inner| {
            rt.frame(|rt, [slot]| {
                let slot = slot.root(rt.string("slot"));
                let below = if depth == 0 { Vec::new() } else { half(rt, depth - 1, inner) };
                check(rt, &below);
                let new = (0..depth * 40).map(|i| outer.root(rt.string(i.to_string()))).collect();
                rt.minor_gc();
                check(rt, &below);
                assert_eq!(slot.get(rt).to_str(), Ok("slot"));
                new
            })
        })
    }
    attached(|rt| {
        rt.locals(|rt, locals| {
            let places = half(rt, 20, locals);
            rt.full_major().unwrap();
            check(rt, &places);
        })
    })
}

/// OCaml code that is called catches an exception of C: the runtime drops the local roots of what that leaves, and none
/// of ours, whose tables are in the heap. A Rust function that OCaml calls panics with locals of its own.
#[test]
fn locals_stay_when_exceptions_and_panics_pass() {
    let panics = ocaml::on_rust(|rt, _| {
        rt.locals(|rt, locals| {
            let _kept: Vec<_> = (0..500).map(|i| locals.root(rt.string(i.to_string()))).collect();
            rt.minor_gc();
            resume_unwind(Box::new("on purpose"))
        })
    });
    attached(|rt| {
        let (catch, rust, fail) = (ocaml::catch_from_c(rt), ocaml::call_rust(rt), ocaml::raise_not_found(rt));
        for round in 0..50 {
            let result: Result<(), Exception> = rt.locals(|rt, locals| {
                let mut places = Vec::new();
                for i in 0..1000 {
                    places.push(locals.root(rt.string(i.to_string())));
                    if i % 300 == 3 {
                        assert!(catch.call(rt, ((),)).unwrap().value().to_bool());
                        assert_eq!(rust.call(rt, (panics,)).unwrap().value().to_isize(), -3);
                        rt.minor_gc();
                    }
                }
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    rt.locals(|rt, inner| {
                        let _lost: Vec<_> = (0..100).map(|_| inner.root(rt.string("lost"))).collect();
                        resume_unwind(Box::new(round))
                    })
                }));
                assert!(matches!(caught, Err(payload) if payload.downcast_ref() == Some(&round)));
                rt.full_major().unwrap();
                check(rt, &places);
                fail.call(rt, ((),))?;
                Ok(())
            });
            assert!(result.unwrap_err().is(rt, "Not_found"));
            rt.minor_gc();
        }
    })
}

#[test]
fn locals_of_threads_that_wait() {
    let threads: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..20 {
                    attached(|rt| {
                        rt.locals(|rt, locals| {
                            let places: Vec<_> = (0..400).map(|i| locals.root(rt.string(i.to_string()))).collect();
                            rt.release(|| {
                                attach(|rt| {
                                    let more = locals.root(rt.string("more"));
                                    rt.minor_gc();
                                    assert_eq!(more.get(rt).to_str(), Ok("more"));
                                })
                            })
                            .unwrap();
                            rt.release(std::thread::yield_now);
                            check(rt, &places);
                        })
                    })
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn releasing_inside_a_frame() {
    attached(|rt| {
        rt.frame(|rt, [a]| {
            let a = a.root(rt.string("kept"));
            rt.release(|| std::thread::spawn(|| attach(|rt| rt.full_major().unwrap()).unwrap()).join().unwrap());
            assert_eq!(a.get(rt).to_str(), Ok("kept"));
        })
    })
}

fn assoc<'n>(n: &'n Nursery, count: i32) -> Value<'n, List<(Int, Str)>> {
    (0..count).rev().fold(n.nil(), |tail, i| n.cons(n.pair(n.int(i), n.string(i.to_string())), tail))
}

/// Whatever was estimated: nothing, too little, a few pieces, too much.
#[test]
fn built_values() {
    attached(|rt| {
        let is_list = ocaml::is_list(rt);
        for count in [0, 1, 2, 30, 31, 32, 33, 100, 1000] {
            for words in [0, 1, 2, 8, 256, 257, 258, 513, 514, 2000, 8 * count as usize, 100_000] {
                let list = rt.build(words, |n| assoc(n, count)).root();
                rt.minor_gc();
                assert!(
                    is_list.call(rt, (&list, count)).unwrap().value().to_bool(),
                    "{count} elements in {words} words"
                );
            }
        }
        rt.full_major().unwrap();
    })
}

#[test]
fn built_values_may_be_large_and_hold_old_ones() {
    attached(|rt| {
        let old = rt.string("old").root();
        rt.full_major().unwrap();
        let big = "x".repeat(100_000);
        let v = rt.build(16, |n| {
            let mut block = n.block_builder(3, 400).unwrap();
            assert_eq!(block.get(399).raw(), Value::UNIT.raw());
            for i in 0..block.len() {
                block.set(i, n.pair(old.get(n), n.string(i.to_string())));
            }
            block.set(0, n.string(&big));
            block.finish()
        });
        let v = v.root();
        drop(old);
        rt.minor_gc();
        rt.full_major().unwrap();
        assert_eq!(v.get(rt).kind(), ValueKind::Block { tag: 3, len: 400 });
        assert_eq!(v.get(rt).field(0).unwrap().kind(), ValueKind::String { len: 100_000 });
        let pair = v.get(rt).field(399).unwrap();
        assert_eq!(pair.field(0).unwrap().kind(), ValueKind::String { len: 3 });
    })
}

#[test]
fn a_panic_in_a_build_leaves_a_sound_heap() {
    attached(|rt| {
        for i in 0..300 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                rt.build(600, |n| -> Value<'_, Str> {
                    let _list = assoc(n, i);
                    std::panic::resume_unwind(Box::new(i))
                });
            }));
            assert!(caught.is_err());
            let failed: Result<ValueGuard<'_, Str>, i32> = rt.try_build(300, |n| {
                let _list = assoc(n, i % 7);
                Err(i)
            });
            assert_eq!(failed.unwrap_err(), i);
            rt.minor_gc();
        }
        rt.full_major().unwrap();
    })
}

#[test]
fn roots_of_values_under_construction() {
    attached(|rt| {
        let mut kept = Vec::new();
        let v = rt.build(64, |n| {
            let v = n.string("inside");
            kept.push(v.root(n));
            n.some(v)
        });
        let v = v.root();
        rt.full_major().unwrap();
        assert!(v.get(rt).to_option().unwrap().ptr_eq(kept[0].get(rt)));
        assert_eq!(kept[0].get(rt).to_str(), Ok("inside"));
    })
}

#[test]
fn sizes_that_the_heap_refuses() {
    attached(|rt| {
        rt.build(0, |n| {
            let error = n.block_builder(0, usize::MAX >> 12).unwrap_err();
            assert_eq!(error.to_string(), format!("OCaml's heap has no block of {} words", usize::MAX >> 12));
            assert!(matches!(n.block_builder(250, 1).unwrap_err(), ShapeError::Tag(250)));
            assert!(n.block_builder(0, 0).is_err());
            n.unit()
        });
        let caught = catch_unwind(AssertUnwindSafe(|| {
            rt.build(0, |n| {
                let mut block = n.block_builder(0, 1).unwrap();
                block.set(1, n.unit());
                block.finish()
            })
            .root()
        }));
        assert!(caught.is_err(), "no field 1");
    })
}

#[test]
fn lists_and_arrays() {
    attached(|rt| {
        let list = ocaml::list(rt).call(rt, (1000,)).unwrap().root();
        let mut i = 0;
        list.try_for_each(rt, |rt, element| {
            if i % 100 == 0 {
                rt.minor_gc();
            }
            let copy = rt.string(i.to_string());
            assert_eq!(element.get(copy.rt()).to_str(), copy.value().to_str());
            i += 1;
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(i, 1000);
        assert_eq!(list.get(rt).iter().map(|s| s.as_bytes().len()).sum::<usize>(), 10 + 180 + 2700);
        assert_eq!(
            list.try_for_each(rt, |rt, _| Err(rt.string("stop").root())).unwrap_err().get(rt).to_str(),
            Ok("stop")
        );

        let strings = ocaml::strings(rt).call(rt, (300,)).unwrap().root();
        let mut i = 0;
        strings
            .try_for_each(rt, |rt, element| {
                rt.minor_gc();
                assert_eq!(element.get(rt).to_str(), Ok(&*i.to_string()));
                i += 1;
                Ok::<_, ()>(())
            })
            .unwrap();
        let floats = ocaml::floats(rt).call(rt, (300,)).unwrap().root();
        let mut sum = 0.0;
        floats
            .try_for_each(rt, |rt, element| {
                rt.minor_gc();
                sum += element.get(rt).to_f64();
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!((i, sum), (300, 44850.0));
    })
}

/// Another thread collects while this one waits, in a frame, with no OCaml code below it.
#[test]
fn frames_of_a_thread_that_waits() {
    attached(|rt| {
        rt.frame(|rt, [a, b]| {
            let a = a.root(rt.string("young"));
            let b = b.root(rt.pair(a, a));
            for i in 0..20 {
                let collect = |rt: &mut Runtime| {
                    rt.minor_gc();
                    rt.compact().unwrap();
                    rt.frame(|rt, [c]| c.root(rt.string("another")).get(rt).as_bytes().len());
                };
                if i % 2 == 0 {
                    rt.release(|| attach(collect)).unwrap();
                }
                rt.release(|| std::thread::spawn(move || attach(collect).unwrap()).join().unwrap());
                assert_eq!(a.get(rt).to_str(), Ok("young"));
                assert!(b.get(rt).second().ptr_eq(a.get(rt)));
            }
        })
    })
}

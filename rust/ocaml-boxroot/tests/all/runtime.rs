// SPDX-License-Identifier: MIT
//! Attaching, releasing, waiting, deferring.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex, OnceLock, RwLock};
use std::thread;

#[test]
fn nested_attach_is_an_error() {
    attached(|rt| {
        assert_eq!(attach(|_| ()), Err(AttachError::Nested));
        rt.release(|| attach(|_| assert_eq!(attach(|_| ()), Err(AttachError::Nested))).unwrap());
        assert_eq!(attach(|_| ()), Err(AttachError::Nested));
        rt.minor_gc();
    });
    attach(|_| ()).unwrap();
}

#[test]
fn starting_again_is_an_error() {
    ocaml::ocaml();
    assert_eq!(start(&StartOptions::default()).unwrap_err(), StartError::AlreadyStarted);
    attached(|_| assert_eq!(start(&StartOptions::default()).unwrap_err(), StartError::AlreadyStarted));
}

#[test]
fn panics_restore_everything() {
    for _ in 0..50 {
        let caught = catch_unwind(|| attached(|_| std::panic::resume_unwind(Box::new(1))));
        assert!(caught.is_err());
        attached(|rt| {
            let kept = rt.string("kept").root();
            let caught = catch_unwind(AssertUnwindSafe(|| rt.release(|| std::panic::resume_unwind(Box::new(2)))));
            assert!(caught.is_err());
            rt.minor_gc();
            assert_eq!(kept.get(rt).to_str(), Ok("kept"));
            let caught =
                catch_unwind(AssertUnwindSafe(|| rt.release(|| attach(|_| std::panic::resume_unwind(Box::new(3))))));
            assert!(caught.is_err());
            rt.minor_gc();
        });
    }
}

#[test]
fn threads_share_roots() {
    let roots: Arc<Vec<Root<Str>>> =
        Arc::new(attached(|rt| (0..100).map(|i| rt.string(i.to_string()).root()).collect()));
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let roots = roots.clone();
            thread::spawn(move || {
                for i in 0..200 {
                    attached(|rt| {
                        let root = &roots[(i * 7 + t) % 100];
                        let text = root.get(rt).to_str().unwrap().to_owned();
                        let copy = rt.string(text).root();
                        if i % 50 == t {
                            rt.full_major().unwrap();
                        }
                        assert_eq!(copy.get(rt).to_str(), root.get(rt).to_str());
                    })
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// With the domain lock, this thread waits for a mutex as Rust does; another thread waits for it through the runtime,
/// and must not have it while it waits for the domain lock.
#[test]
fn a_mutex_is_not_held_while_the_domain_lock_is_waited_for() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock().unwrap();
    let theirs = mutex.clone();
    let (here, is_here) = mpsc::channel();
    let other = thread::spawn(move || {
        attached(|rt| {
            here.send(()).unwrap();
            *rt.lock_mutex(&theirs).unwrap() += 1;
        })
    });
    is_here.recv().unwrap();
    attached(|_| {
        drop(held);
        for _ in 0..1000 {
            thread::yield_now();
            *mutex.lock().unwrap() += 1;
        }
    });
    other.join().unwrap();
    assert_eq!(*mutex.lock().unwrap(), 1001);
}

#[test]
fn a_cell_does_not_wait_for_what_another_thread_makes() {
    static CELL: OnceLock<i32> = OnceLock::new();
    let (inside, is_inside) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let other = thread::spawn(move || {
        attached(|rt| {
            *rt.get_or_init(&CELL, |rt| {
                inside.send(()).unwrap();
                rt.release(|| may_go.recv()).unwrap();
                1
            })
        })
    });
    is_inside.recv().unwrap();
    attached(|_| assert_eq!(CELL.get_or_init(|| 2), &2));
    go.send(()).unwrap();
    assert_eq!(other.join().unwrap(), 2);
}

#[test]
fn locked_data() {
    attached(|rt| {
        let mut words = Locked::new(vec![rt.string("first").root()]);
        let second = rt.string("second").root();
        words.with(rt, |_, words| words.push(second));
        rt.full_major().unwrap();
        let last = words.with(rt, |rt, words| words.pop().map(|word| word.clone_ref(rt))).unwrap();
        assert_eq!(last.get(rt).to_str(), Ok("second"));
        let caught = catch_unwind(AssertUnwindSafe(|| words.with(rt, |_, _| std::panic::resume_unwind(Box::new(1)))));
        assert!(caught.is_err() && words.is_poisoned());
        // The domain lock is as before.
        rt.minor_gc();
        let caught = catch_unwind(AssertUnwindSafe(|| words.with(rt, |_, words| words.len()))).unwrap_err();
        assert_eq!(caught.downcast_ref(), Some(&"a panic has left the data half changed"));
        words.clear_poison();
        assert_eq!(words.with(rt, |_, words| words.len()), 1);
        words = Locked::default();
        assert_eq!(words.into_inner().len(), 0);
        let numbers: &Locked<[i32]> = &Locked::new([1, 2, 3]);
        assert_eq!(numbers.with(rt, |_, numbers| numbers.len()), 3);
    })
}

/// Each would hang if the lock were not released while waiting.
#[test]
fn waiting_releases_the_lock() {
    fn other(f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
        thread::spawn(f)
    }
    let mutex = Arc::new(Mutex::new(0));
    let (held, is_held) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let theirs = mutex.clone();
    let holder = other(move || {
        let mut guard = theirs.lock().unwrap();
        held.send(()).unwrap();
        may_go.recv().unwrap();
        attached(|rt| rt.minor_gc());
        *guard = 1;
    });
    is_held.recv().unwrap();
    attached(|rt| {
        go.send(()).unwrap();
        assert_eq!(*rt.lock_mutex(&mutex).unwrap(), 1);
        rt.join(holder).unwrap();
        assert_eq!(rt.join(thread::spawn(|| attached(|_| 5))).unwrap(), 5);
        assert_eq!(*rt.lock_mutex(&mutex).unwrap(), 1);

        let (sender, receiver) = mpsc::channel();
        let t = other(move || sender.send(attached(|rt| rt.string("sent").root())).unwrap());
        assert_eq!(rt.recv(&receiver).unwrap().get(rt).to_str(), Ok("sent"));
        rt.join(t).unwrap();
        assert!(rt.recv(&receiver).is_err(), "no sender is left");

        let lock = RwLock::new(1);
        *rt.write_rwlock(&lock).unwrap() += 1;
        assert_eq!(*rt.read_rwlock(&lock).unwrap(), 2);
    });
    // Threads initialise one cell, whose closure needs OCaml.
    static CELL: OnceLock<Root<Str>> = OnceLock::new();
    static READY: AtomicUsize = AtomicUsize::new(0);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                attached(|rt| {
                    READY.fetch_add(1, SeqCst);
                    let root = rt.get_or_init(&CELL, |rt| {
                        // The others have the lock in turn, and wait for the cell.
                        rt.release(|| {
                            while READY.load(SeqCst) < 4 {
                                thread::yield_now();
                            }
                        });
                        rt.full_major().unwrap();
                        rt.string("once").root()
                    });
                    assert_eq!(root.get(rt).to_str(), Ok("once"));
                })
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn a_panic_while_a_cell_is_made() {
    static CELL: OnceLock<i32> = OnceLock::new();
    attached(|rt| {
        assert!(catch_unwind(AssertUnwindSafe(|| rt.get_or_init(&CELL, |_| std::panic::resume_unwind(Box::new(1)))))
            .is_err());
        rt.minor_gc();
        assert_eq!(rt.get_or_init(&CELL, |rt| rt.string("x").value().as_bytes().len() as i32), &1);
    })
}

#[test]
fn deferred_closures_run_with_the_capability() {
    struct Session(Option<Root<Fun<(Int,), Int>>>, i32);
    impl Drop for Session {
        fn drop(&mut self) {
            if let Some(f) = self.0.take() {
                let n = self.1;
                defer(move |rt| drop(f.call(rt, (n,))));
            }
        }
    }
    static CLOSED: AtomicUsize = AtomicUsize::new(0);
    let n = ocaml::on_rust(|_, _| CLOSED.fetch_add(1, SeqCst) as isize);
    attached(|rt| {
        drop(Session(Some(ocaml::call_rust(rt)), n));
        rt.poll().unwrap();
    });
    let session = attached(|rt| Session(Some(ocaml::call_rust(rt)), n));
    drop(session);
    attached(|_| ());
    // Another test's thread may have taken it.
    while CLOSED.load(SeqCst) < 2 {
        thread::yield_now();
    }
}

#[test]
fn a_panic_in_what_was_deferred_is_nobody_elses() {
    alone(a_panic_in_what_was_deferred_is_nobody_elses, || {
        static RUN: AtomicUsize = AtomicUsize::new(0);
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                RUN.fetch_add(1, SeqCst);
                panic!("on purpose, in a drop");
            }
        }
        impl CustomOps for Bomb {
            const DEFER_DROP: bool = true;
        }
        attached(|rt| {
            defer(|_| panic!("on purpose"));
            defer(|_| {
                RUN.fetch_add(1, SeqCst);
            });
            rt.poll().unwrap();
            assert_eq!(RUN.load(SeqCst), 1, "those behind it run");
            for _ in 0..3 {
                rt.boxed_custom(Bomb).into_rt();
            }
            rt.full_major().unwrap();
        });
        attached(|_| assert_eq!(RUN.load(SeqCst), 4));
    })
}

/// They have nothing to do with what fails there, and the panic hook cannot be installed.
#[test]
fn what_was_deferred_does_not_run_while_a_thread_unwinds() {
    alone(what_was_deferred_does_not_run_while_a_thread_unwinds, || {
        static RUN: AtomicBool = AtomicBool::new(false);
        struct Attaches;
        impl Drop for Attaches {
            fn drop(&mut self) {
                attach(|rt| rt.minor_gc()).unwrap();
                assert!(!RUN.load(SeqCst));
            }
        }
        ocaml::ocaml();
        defer(|_| RUN.store(true, SeqCst));
        let caught = catch_unwind(|| {
            let _attaches = Attaches;
            panic!("on purpose")
        });
        assert!(caught.is_err());
        attached(|_| assert!(RUN.load(SeqCst)));
    })
}

#[test]
fn an_ocaml_thread_calls_rust() {
    attached(|rt| {
        let n = ocaml::on_rust(|rt, _| {
            rt.release(|| attach(|rt| rt.minor_gc()).unwrap());
            rt.string("x").value().as_bytes().len() as isize
        });
        ocaml::thread(rt).call(rt, (n,)).unwrap();
        // A Rust thread may call OCaml threads, too.
        let t = thread::spawn(move || attached(|rt| ocaml::thread(rt).call(rt, (n,)).map(drop)).unwrap());
        rt.join(t).unwrap();
    })
}

#[test]
fn finalisers_run_when_polled() {
    alone(finalisers_run_when_polled, || {
        static RUN: AtomicBool = AtomicBool::new(false);
        attached(|rt| {
            let n = ocaml::on_rust(|rt, _| {
                assert_eq!(attach(|_| ()).unwrap_err(), AttachError::Nested, "in a finaliser");
                rt.minor_gc();
                RUN.store(true, SeqCst);
                0
            });
            ocaml::finalise(rt).call(rt, (n,)).unwrap();
            rt.full_major().unwrap();
            rt.poll().unwrap();
            assert!(RUN.load(SeqCst));
        })
    })
}

/// C code opened the blocking section: nobody here knows how to close it.
#[test]
fn a_blocking_section_of_others_is_not_entered() {
    ocaml::in_blocking_section_of_c(|n| {
        let answer = attach(|_| ());
        match n {
            0 => assert_eq!(answer, Err(AttachError::Nested), "this library holds the lock further up"),
            _ => assert_eq!(answer, Err(AttachError::NotRegistered), "OCaml knows the thread"),
        }
        // Roots need no lock.
        n + 1
    });
    attached(|rt| {
        let blocking = ocaml::in_blocking_section(rt);
        assert_eq!(blocking.call(rt, (0,)).unwrap().value().to_isize(), 1);
        rt.minor_gc();
        let n = ocaml::on_rust(|rt, _| {
            let n = ocaml::in_blocking_section(rt).call(rt, (0,)).unwrap().value().to_isize();
            rt.full_major().unwrap();
            n
        });
        assert_eq!(ocaml::call_rust(rt).call(rt, (n,)).unwrap().value().to_isize(), 1);
        // On a thread of OCaml's own, no function of this library is below.
        assert_eq!(ocaml::blocking_on_a_thread(rt).call(rt, (1,)).unwrap().value().to_isize(), 2);
    });
    attach(|rt| rt.minor_gc()).unwrap();
}

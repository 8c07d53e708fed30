// SPDX-License-Identifier: MIT
//! Domains that Rust starts.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// Whether this OCaml has domains.
fn domains(rt: &mut Runtime) -> bool {
    match rt.spawn_domain(|_| ()) {
        Ok(handle) => {
            handle.join(rt).unwrap();
            true
        }
        Err(SpawnError::NoDomains) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn domains_share_roots() {
    attached(|rt| {
        if !domains(rt) {
            return;
        }
        let roots: Arc<Vec<Root<Str>>> = Arc::new((0..100).map(|i| rt.string(i.to_string()).root()).collect());
        let handles: Vec<_> = (0..3)
            .map(|d| {
                let roots = roots.clone();
                rt.spawn_domain(move |rt| {
                    let mut made = Vec::new();
                    for i in 0..300 {
                        let root = &roots[(i * 7 + d) % 100];
                        assert_eq!(root.get(rt).to_str(), Ok(&*((i * 7 + d) % 100).to_string()));
                        made.push(root.clone_ref(rt));
                        if i % 100 == d {
                            rt.full_major().unwrap();
                        }
                        rt.build(100, |n| n.string("garbage")).into_rt();
                    }
                    made
                })
                .unwrap()
            })
            .collect();
        let made: Vec<Vec<Root<Str>>> = handles.into_iter().map(|h| h.join(rt).unwrap()).collect();
        rt.full_major().unwrap();
        // Roots outlive the domains that made them.
        for (d, roots) in made.iter().enumerate() {
            for (i, root) in roots.iter().enumerate() {
                assert_eq!(root.get(rt).to_str(), Ok(&*((i * 7 + d) % 100).to_string()));
            }
        }
    })
}

/// Threads and domains add to a table, read it, and call what is in it, while all of them collect.
#[test]
fn domains_share_locked_data() {
    type Function = Root<Fun<(Int,), Int>>;
    static TABLE: Locked<Vec<Function>> = Locked::new(Vec::new());
    static CALLS: Locked<usize> = Locked::new(0);
    const ROUNDS: usize = 200;
    fn work(rt: &mut Runtime, first: usize) {
        let succ = ocaml::succ(rt);
        for i in first..first + ROUNDS {
            let f = succ.clone_ref(rt);
            TABLE.with(rt, |_, table| {
                table.truncate(20);
                table.push(f);
            });
            let f = TABLE.with(rt, |rt, table| table[i % table.len()].clone_ref(rt));
            assert_eq!(f.call(rt, (i as i32,)).unwrap().value().to_isize(), i as isize + 1);
            CALLS.with(rt, |_, calls| *calls += 1);
            match i % 50 {
                0 => rt.full_major().unwrap(),
                7 | 21 => rt.minor_gc(),
                _ => rt.poll().unwrap(),
            }
        }
    }
    attached(|rt| {
        // Two threads in the first domain, and in each of three others the domain's own.
        let threads: Vec<_> = (0..2).map(|n| std::thread::spawn(move || attached(|rt| work(rt, n)))).collect();
        let domains = if domains(rt) { 3 } else { 0 };
        let handles: Vec<_> = (0..domains).map(|n| rt.spawn_domain(move |rt| work(rt, n)).unwrap()).collect();
        for handle in handles {
            handle.join(rt).unwrap();
        }
        for thread in threads {
            rt.join(thread).unwrap();
        }
        assert_eq!(CALLS.with(rt, |_, calls| *calls), (domains + 2) * ROUNDS);
        TABLE.with(rt, |_, table| table.clear());
    })
}

#[test]
fn panics_come_out_of_join() {
    attached(|rt| {
        if !domains(rt) {
            return;
        }
        for i in 0..5 {
            let handle = rt.spawn_domain(move |rt| {
                let _kept = rt.string("dropped").root();
                std::panic::resume_unwind(Box::new(i))
            });
            let handle: DomainHandle<()> = handle.unwrap();
            match handle.join(rt) {
                Err(JoinError::Panicked(payload)) => assert_eq!(payload.into_inner().unwrap().downcast_ref(), Some(&i)),
                other => panic!("{other:?}"),
            }
        }
    })
}

/// Nobody has the handle: the domain drops its result.
#[test]
fn a_result_that_panics_when_its_domain_drops_it() {
    alone(a_result_that_panics_when_its_domain_drops_it, || {
        static DROPPED: AtomicBool = AtomicBool::new(false);
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                DROPPED.store(true, SeqCst);
                panic!("on purpose");
            }
        }
        attached(|rt| {
            if !domains(rt) {
                return;
            }
            let (go, may_go) = std::sync::mpsc::channel::<()>();
            drop(rt.spawn_domain(move |rt| {
                rt.recv(&may_go).unwrap();
                Bomb
            }));
            go.send(()).unwrap();
            while !DROPPED.load(SeqCst) {
                rt.release(std::thread::yield_now);
            }
            // It ends as others do.
            assert!(domains(rt));
            rt.full_major().unwrap();
        })
    })
}

#[test]
fn a_domain_releases_attaches_and_calls() {
    attached(|rt| {
        if !domains(rt) {
            return;
        }
        let n = ocaml::on_rust(|rt, _| {
            rt.minor_gc();
            9
        });
        let handle = rt.spawn_domain(move |rt| {
            assert_eq!(attach(|_| ()).unwrap_err(), AttachError::Nested);
            let kept = rt.string("kept").root();
            rt.release(|| attach(|rt| rt.full_major().unwrap()).unwrap());
            assert_eq!(kept.get(rt).to_str(), Ok("kept"));
            rt.frame(|rt, [slot]| {
                let slot = slot.root(rt.string("slot"));
                rt.full_major().unwrap();
                assert_eq!(slot.get(rt).to_str(), Ok("slot"));
            });
            ocaml::call_rust(rt).call(rt, (n,)).unwrap().value().to_isize()
        });
        assert_eq!(handle.unwrap().join(rt).unwrap(), 9);
    })
}

#[test]
fn errors_of_domains_are_shared() {
    fn shared<E: std::error::Error + Send + Sync + 'static>() {}
    shared::<JoinError>();
    shared::<SpawnError>();
}

/// What OCaml passes to the function that runs jobs, if it is none.
#[test]
fn jobs_are_made_by_rust() {
    attached(|rt| {
        let run = ocaml::run_job(rt);
        let string = rt.string("no job").root();
        let boxed = rt.boxed(7).root();
        for other in [int(12345).root(rt).as_any(), string.as_any(), boxed.as_any(), run.as_any()] {
            run.call(rt, (other,)).unwrap();
        }
    })
}

#[test]
fn more_domains_than_there_can_be() {
    alone(more_domains_than_there_can_be, || {
        attached(|rt| {
            if !domains(rt) {
                return;
            }
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let stopped = Arc::new(std::sync::Mutex::new(stopped));
            let mut handles = Vec::new();
            let error = loop {
                let stopped = stopped.clone();
                match rt.spawn_domain(move |rt| rt.release(|| drop(stopped.lock().map(|s| s.recv())))) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => break error,
                }
                assert!(handles.len() < 1000);
            };
            assert!(matches!(error, SpawnError::Exception(_)), "{error}");
            drop(stop);
            for handle in handles {
                handle.join(rt).unwrap();
            }
            assert!(domains(rt), "there is room again");
        })
    })
}

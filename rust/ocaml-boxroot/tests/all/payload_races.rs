// SPDX-License-Identifier: MIT
//! Rust values that OCaml owns, made by some domains and threads, read and dropped by others at the same time.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::attached;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// It owns a root, and the block that owns it, too, is held by a root.
struct Owner {
    number: usize,
    text: Root<Str>,
    drops: Arc<AtomicUsize>,
}
impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
    }
}

enum Kept {
    Boxed(Root<Boxed<Owner>>),
    Inline(Root<Inline<Owner>>),
}

impl Kept {
    fn check(&self, rt: &Runtime) {
        let owner = match self {
            Kept::Boxed(root) => root.payload(rt),
            Kept::Inline(root) => root.payload(rt),
        };
        // Not by a comparison of strings: ThreadSanitizer sees memcmp, but not the mutex of Rust that was locked
        // before.
        assert_eq!(owner.text.get(rt).to_str().unwrap().parse(), Ok(owner.number));
    }
}

struct Shared {
    /// Only tried: who waits for a mutex while holding OCaml's lock could wait for ever.
    slots: Vec<Mutex<Option<Kept>>>,
    drops: Arc<AtomicUsize>,
}

const EACH: usize = 150;

fn work(rt: &mut Runtime, shared: &Shared, worker: usize) {
    for i in 0..EACH {
        let text = rt.string(i.to_string()).root();
        let owner = Owner { number: i, text, drops: shared.drops.clone() };
        let new = match (i + worker) % 2 {
            0 => Kept::Boxed(rt.boxed(owner).root()),
            _ => Kept::Inline(rt.inline(owner).root()),
        };
        let slot = &shared.slots[(i * 7 + worker) % shared.slots.len()];
        let old = match slot.try_lock() {
            Ok(mut slot) => slot.replace(new),
            Err(_) => Some(new),
        };
        if let Some(old) = old {
            old.check(rt);
            match i % 3 {
                0 => drop(old),
                1 => rt.release(|| drop(old)),
                // By a finaliser.
                _ => rt.boxed(old).into_rt().minor_gc(),
            }
        }
        if i % 50 == 5 * worker {
            rt.full_major().unwrap();
        }
    }
}

impl Shared {
    fn new() -> Arc<Shared> {
        let slots = (0..40).map(|_| Mutex::new(None)).collect();
        Arc::new(Shared { slots, drops: Arc::default() })
    }

    /// All that was made is dropped, once.
    fn end(&self, rt: &mut Runtime, made: usize) {
        for slot in &self.slots {
            if let Some(kept) = slot.lock().unwrap().take() {
                kept.check(rt);
            }
        }
        // A finaliser may have dropped the root of another block.
        for _ in 0..4 {
            rt.full_major().unwrap();
        }
        assert_eq!(self.drops.load(SeqCst), made);
    }
}

#[test]
fn threads_drop_what_others_made() {
    let shared = Shared::new();
    let thread = |worker| {
        let shared = shared.clone();
        std::thread::spawn(move || attached(|rt| work(rt, &shared, worker)))
    };
    let threads: Vec<_> = (0..3).map(thread).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    attached(|rt| shared.end(rt, 3 * EACH));
}

#[test]
fn domains_drop_what_others_made() {
    let shared = Shared::new();
    attached(|rt| {
        let mut made = 0;
        // Domains end, and others use what they have left.
        for round in 0..2_usize {
            let mut spawn = |worker: usize| {
                let shared = shared.clone();
                rt.spawn_domain(move |rt| work(rt, &shared, worker + 3 * round))
            };
            let domains: Vec<_> = (0..3).map(&mut spawn).collect();
            for domain in domains {
                match domain {
                    Ok(domain) => {
                        domain.join(rt).unwrap();
                        made += EACH;
                    }
                    Err(SpawnError::NoDomains) => (),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        shared.end(rt, made);
    });
}

// SPDX-License-Identifier: MIT
//! Random programs over the safe layer: threads of Rust and of OCaml and domains that end share values, whose content
//! follows from a number, and drop them anywhere; exceptions, panics, nested calls and collections are in between.
//!
//!     stress --seed N --threads N --domains N --steps N
//! With one thread and no domain the same seed does the same. Exit code 1 when a value is wrong, or one is left.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing as ocaml;
use ocaml_boxroot_testing::random::Mix;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::SeqCst};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Debug, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Sample {
    number: i64,
    weight: f64,
    words: Vec<String>,
    pairs: Vec<(i64, Option<String>)>,
    floats: Vec<f64>,
    next: Option<Box<Sample>>,
}

/// What belongs to a number: now and then an array that is too large for the minor heap.
fn sample(number: u64) -> Sample {
    let mut mix = Mix(number);
    let mut size = || match mix.below(40) {
        0 => 257 + mix.below(300),
        1..5 => mix.below(40),
        _ => mix.below(5),
    };
    let (words, pairs, floats, next) = (size(), size(), size(), size() == 3 && number > 10);
    let text = |i: usize| "x".repeat((number as usize + i) % 30) + &i.to_string();
    Sample {
        number: number as i64,
        weight: number as f64 / 8.0,
        words: (0..words).map(text).collect(),
        pairs: (0..pairs).map(|i| (i as i64, (i % 3 != 0).then(|| text(i)))).collect(),
        floats: (0..floats).map(|i| i as f64).collect(),
        next: next.then(|| Box::new(sample(number / 2))),
    }
}

/// Whether a function that OCaml called has panicked.
static FAILED: AtomicBool = AtomicBool::new(false);

/// How many payloads there are.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// A Rust value that OCaml owns, perhaps with a value of OCaml.
struct Payload(u64, #[allow(dead_code)] Option<Kept>);
impl Payload {
    fn new(number: u64, own: Option<Kept>) -> Payload {
        LIVE.fetch_add(1, SeqCst);
        Payload(number, own)
    }
}
impl Drop for Payload {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, SeqCst);
    }
}

/// A storage that lasts as long as the program, and that all use.
static STORAGE: OnceLock<Storage> = OnceLock::new();

/// A root in it, deleted wherever this is dropped.
struct Stored(Option<StorageRoot<'static, Sample>>);
impl Stored {
    fn root(&self) -> &StorageRoot<'static, Sample> {
        self.0.as_ref().unwrap()
    }
}
impl Drop for Stored {
    fn drop(&mut self) {
        if let Some(root) = self.0.take() {
            root.delete()
        }
    }
}

/// A value and its number.
enum Kept {
    Sample(Root<Sample>, u64),
    Boxed(Root<Boxed<Payload>>, u64),
    Inline(Root<Inline<Payload>>, u64),
    Cell(Root<Ref<Sample>>, u64),
    Raised(Exception, u64),
    Stored(Stored, u64),
    /// Several, in a storage of their own.
    Storage(Storage, Vec<StorageKey<Sample>>, u64),
    Wide(WideRoot<[Sample; 3]>, u64),
    Wider(WideRoot<(Sample, Int, Boxed<Payload>)>, u64),
    /// Data that refers to its key, and whether the key is rooted.
    Ephemeral(Ephemeral<Sample, (Sample, Sample)>, Option<Root<Sample>>, u64),
}

impl Kept {
    fn check(&self, rt: &Runtime) {
        match self {
            Kept::Sample(root, n) => assert_eq!(root.to_rust::<Sample>(rt).unwrap(), sample(*n)),
            Kept::Boxed(root, n) => assert_eq!(root.payload(rt).0, *n),
            Kept::Inline(root, n) => assert_eq!(root.payload(rt).0, *n),
            Kept::Cell(root, n) => {
                let v = root.get(rt).contents().get();
                assert_eq!(v.to_rust::<Sample>(rt).unwrap(), sample(*n));
            }
            Kept::Stored(stored, n) => assert_eq!(stored.root().to_rust::<Sample>(rt).unwrap(), sample(*n)),
            Kept::Storage(storage, keys, n) => {
                for key in keys {
                    assert_eq!(storage.get(key).unwrap().to_rust::<Sample>(rt).unwrap(), sample(*n));
                }
            }
            Kept::Wide(root, n) => {
                root.iter().for_each(|place| assert_eq!(place.to_rust::<Sample>(rt).unwrap(), sample(*n)))
            }
            Kept::Wider(root, n) => {
                let (first, second, third) = root.places();
                assert_eq!(first.to_rust::<Sample>(rt).unwrap(), sample(*n));
                assert_eq!((second.get(rt).to_isize() as u64, third.payload(rt).0), (*n, *n));
            }
            Kept::Ephemeral(e, root, n) => match (e.key(rt), e.get(rt)) {
                (Some(key), Some(data)) => {
                    assert!(data.second().ptr_eq(key));
                    assert_eq!(key.to_rust::<Sample>(rt).unwrap(), sample(*n));
                    assert_eq!(data.first().to_rust::<Sample>(rt).unwrap(), sample(*n));
                }
                (key, data) => assert!(key.is_none() && data.is_none() && root.is_none()),
            },
            Kept::Raised(exception, n) => assert!(exception.text(rt).contains(&n.to_string())),
        }
    }

    fn drop_ref(self, rt: &Runtime) {
        match self {
            Kept::Sample(root, _) => root.drop_ref(rt),
            Kept::Boxed(root, _) => root.drop_ref(rt),
            Kept::Inline(root, _) => root.drop_ref(rt),
            Kept::Cell(root, _) => root.drop_ref(rt),
            Kept::Stored(mut stored, _) => stored.0.take().unwrap().drop_ref(rt),
            Kept::Storage(mut storage, keys, _) => {
                storage.clear(rt);
                assert!(keys.iter().all(|key| storage.get(key).is_none()));
            }
            kept => drop(kept),
        }
    }
}

const SLOTS: usize = 200;
const HANDLERS: usize = 4;

/// What all share. Mutexes are only tried: who waits for one while holding OCaml's lock could wait for ever.
struct World {
    slots: Vec<Mutex<Option<Kept>>>,
    /// Of a thread that OCaml does not know, which drops what it gets.
    graveyard: Mutex<Option<Sender<Kept>>>,
    handlers: Mutex<Vec<i32>>,
}

impl World {
    fn take(&self, mix: &mut Mix) -> Option<Kept> {
        self.slots[mix.below(SLOTS)].try_lock().ok()?.take()
    }

    /// What was there is dropped here.
    fn put(&self, mix: &mut Mix, kept: Kept) {
        let old = match self.slots[mix.below(SLOTS)].try_lock() {
            Ok(mut slot) => slot.replace(kept),
            Err(_) => Some(kept),
        };
        drop(old);
    }

    fn bury(&self, kept: Kept) {
        if let Ok(Some(graveyard)) = self.graveyard.try_lock().as_deref() {
            let _ = graveyard.send(kept);
        }
    }

    fn handler(&self, mix: &mut Mix) -> Option<i32> {
        self.handlers.try_lock().ok()?.get(mix.below(HANDLERS)).copied()
    }
}

fn make(rt: &mut Runtime, mix: &mut Mix) -> Kept {
    let n = mix.word() % 1_000_000;
    match mix.below(16) {
        12 => {
            let root = rt.locals(|rt, locals| {
                let places = [(); 3].map(|()| locals.root(rt.alloc(&sample(n)).unwrap()));
                WideRoot::new(rt, places.map(|place| place.get(rt)))
            });
            Kept::Wide(root, n)
        }
        13 => {
            let payload = rt.boxed(Payload::new(n, None)).root();
            let v = rt.alloc(&sample(n)).unwrap();
            Kept::Wider(WideRoot::new(v.rt(), (v.value(), int(n as i32), payload.get(v.rt()))), n)
        }
        14 => {
            let (key, text) = (rt.alloc(&sample(n)).unwrap().root(), rt.alloc(&sample(n)).unwrap().root());
            let data = rt.pair(&text, &key);
            match Ephemeral::new(data.rt(), key.get(data.rt()), data.value()) {
                Ok(e) => Kept::Ephemeral(e, (mix.below(3) > 0).then_some(key), n),
                Err(error) => {
                    assert_eq!(error, RootError::NotFirstDomain);
                    Kept::Sample(key, n)
                }
            }
        }
        10 => {
            let storage = STORAGE.get_or_init(|| Storage::new(rt, "all"));
            Kept::Stored(Stored(Some(storage.root(rt.alloc(&sample(n)).unwrap()))), n)
        }
        11 => {
            let storage = Storage::new(rt, "own");
            let keys = (0..1 + mix.below(5)).map(|_| {
                let v = rt.alloc(&sample(n)).unwrap();
                storage.insert(v.rt(), v.value())
            });
            let keys = keys.collect();
            Kept::Storage(storage, keys, n)
        }
        0 => {
            let own = (mix.below(2) == 0).then(|| Kept::Sample(rt.alloc(&sample(n)).unwrap().root(), n));
            Kept::Boxed(rt.boxed(Payload::new(n, own)).root(), n)
        }
        1 => Kept::Inline(rt.inline(Payload::new(n, None)).root(), n),
        2 => Kept::Cell(rt.build(mix.below(600), |nursery| nursery.reference(made(nursery, n))).root(), n),
        3 => Kept::Raised(ocaml::raise_failure(rt).call(rt, (n.to_string(),)).unwrap_err(), n),
        4 => Kept::Sample(rt.build(mix.below(600), |nursery| made(nursery, n)).root(), n),
        _ => Kept::Sample(rt.alloc(&sample(n)).unwrap().root(), n),
    }
}

fn made(nursery: &Nursery, n: u64) -> Value<'_, Sample> {
    sample(n).to_ocaml(nursery).unwrap()
}

/// Drops it somewhere.
fn lose(rt: &mut Runtime, mix: &mut Mix, world: &World, kept: Kept) {
    match mix.below(8) {
        0 | 1 => kept.drop_ref(rt),
        2 => drop(kept),
        3 => rt.release(|| drop(kept)),
        4 => world.bury(kept),
        // By a finaliser, inside the collector.
        5 => drop(rt.boxed(Payload::new(0, Some(kept)))),
        6 => {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _kept = kept;
                rt.frame(|rt, [a]| {
                    let _a = a.root(rt.string("lost"));
                    resume_unwind(Box::new("on purpose"))
                })
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"on purpose"));
        }
        _ => defer(move |rt| {
            kept.check(rt);
            drop(kept)
        }),
    }
}

fn collect(rt: &mut Runtime, mix: &mut Mix) {
    match mix.below(40) {
        0 => rt.full_major().unwrap(),
        1 => rt.compact().unwrap(),
        2..20 => rt.minor_gc(),
        20..30 => ocaml::garbage(rt).call(rt, (mix.below(2000) as i32,)).unwrap().into_rt().poll().unwrap(),
        _ => rt.poll().unwrap(),
    }
}

fn step(rt: &mut Runtime, mix: &mut Mix, world: &World, depth: usize) {
    match mix.below(20) {
        0..=4 => {
            let kept = make(rt, mix);
            world.put(mix, kept);
        }
        5..=8 => {
            if let Some(kept) = world.take(mix) {
                kept.check(rt);
                world.put(mix, kept);
            }
        }
        9..=11 => {
            if let Some(kept) = world.take(mix) {
                kept.check(rt);
                lose(rt, mix, world, kept);
            }
        }
        12 => match world.take(mix) {
            // A root as an output, and a field that changes.
            Some(Kept::Sample(mut root, _)) => {
                let n = mix.word() % 1_000_000;
                root.set(rt.alloc(&sample(n)).unwrap());
                world.put(mix, Kept::Sample(root, n));
            }
            Some(Kept::Stored(mut stored, _)) => {
                let n = mix.word() % 1_000_000;
                stored.0.as_mut().unwrap().set(rt.alloc(&sample(n)).unwrap());
                world.put(mix, Kept::Stored(stored, n));
            }
            Some(Kept::Wide(mut root, _)) => {
                let n = mix.word() % 1_000_000;
                (0..3).for_each(|i| _ = root.set_at(i, rt.alloc(&sample(n)).unwrap()));
                world.put(mix, Kept::Wide(root, n));
            }
            Some(Kept::Ephemeral(mut e, root, n)) => {
                let text = rt.alloc(&sample(n)).unwrap().root();
                if let Some(key) = e.key(rt).map(|key| key.root(rt)) {
                    let data = rt.pair(&text, &key);
                    match e.set(data.rt(), data.value()) {
                        Ok(set) => assert!(set),
                        Err(error) => assert_eq!(error, RootError::NotFirstDomain),
                    }
                }
                world.put(mix, Kept::Ephemeral(e, root, n));
            }
            Some(Kept::Cell(root, _)) => {
                let n = mix.word() % 1_000_000;
                let (new, rt) = rt.alloc(&sample(n)).unwrap().freeze();
                root.get(rt).contents().set(rt, new);
                world.put(mix, Kept::Cell(root, n));
            }
            Some(kept) => world.put(mix, kept),
            None => (),
        },
        13 | 14 => collect(rt, mix),
        15 if depth < 5 => {
            let n = mix.word() % 1_000_000;
            let count = mix.below(10);
            rt.frame(|rt, [a, b]| {
                let a = a.root(rt.alloc(&sample(n)).unwrap());
                let b = b.root(rt.reference(a));
                for _ in 0..count {
                    step(rt, mix, world, depth + 1);
                }
                assert!(b.get(rt).contents().get().ptr_eq(a.get(rt)));
                assert_eq!(a.to_rust::<Sample>(rt).unwrap(), sample(n));
            });
        }
        16 if depth < 3 => {
            let count = mix.below(6);
            rt.release(|| attach(|rt| (0..count).for_each(|_| step(rt, mix, world, depth + 1)))).unwrap();
        }
        17 => {
            if let (Some(handler), true) = (world.handler(mix), depth < 5) {
                ocaml::call_rust(rt).call(rt, (handler,)).unwrap().into_rt();
            }
        }
        18 if depth < 3 => {
            if let (Some(handler), 0) = (world.handler(mix), mix.below(10)) {
                ocaml::thread(rt).call(rt, (handler,)).unwrap().into_rt();
            }
        }
        19 if depth < 5 => {
            let n = mix.word() % 1_000_000;
            let (count, places) = (mix.below(4), mix.below(25));
            rt.locals(|rt, locals| {
                let places: Vec<_> = (0..places).map(|_| locals.root(rt.alloc(&sample(n)).unwrap())).collect();
                (0..count).for_each(|_| step(rt, mix, world, depth + 1));
                places.iter().for_each(|place| assert_eq!(place.to_rust::<Sample>(rt).unwrap(), sample(n)));
            });
        }
        _ => (),
    }
}

fn steps(rt: &mut Runtime, mix: &mut Mix, world: &World, count: usize) {
    (0..count).for_each(|_| step(rt, mix, world, 0))
}

/// A thread of Rust, which attaches for a while, again and again.
fn work(world: &World, seed: u64, count: usize) {
    let mut mix = Mix(seed);
    let mut left = count;
    while left > 0 {
        let now = left.min(1 + mix.below(60));
        left -= now;
        attach(|rt| steps(rt, &mut mix, world, now)).unwrap();
        if mix.below(3) == 0 {
            drop(world.take(&mut mix));
        }
    }
}

/// Domains that end, a few at a time.
fn domains(world: &Arc<World>, seed: u64, together: usize, count: usize) {
    let mut mix = Mix(seed);
    let mut left = count;
    while left > 0 {
        let now = left.min(100 + mix.below(400));
        left -= now;
        attach(|rt| {
            let mut spawn = |_| {
                let (world, mut mix) = (world.clone(), Mix(mix.word()));
                rt.spawn_domain(move |rt| steps(rt, &mut mix, &world, now)).unwrap()
            };
            let handles: Vec<_> = (0..together).map(&mut spawn).collect();
            handles.into_iter().for_each(|handle| handle.join(rt).unwrap());
        })
        .unwrap();
    }
}

/// All values are right, and no payload is left.
fn finish(world: &World) {
    attach(|rt| {
        for slot in &world.slots {
            if let Some(kept) = slot.lock().unwrap().take() {
                kept.check(rt);
                drop(kept);
            }
        }
        for _ in 0..8 {
            rt.full_major().unwrap();
            rt.poll().unwrap();
        }
    })
    .unwrap();
    assert_eq!(LIVE.load(SeqCst), 0, "payloads are left");
}

fn run(seed: u64, threads: u64, together: usize, count: usize) {
    ocaml::ocaml();
    let (sender, graves) = channel::<Kept>();
    let world = Arc::new(World {
        slots: (0..SLOTS).map(|_| Mutex::new(None)).collect(),
        graveyard: Mutex::new(Some(sender)),
        handlers: Mutex::default(),
    });
    for i in 0..HANDLERS {
        let (world_, mut mix) = (world.clone(), Mix(seed + 1000 + i as u64));
        let handler = ocaml::on_rust(move |rt, _| {
            let steps = AssertUnwindSafe(|| (0..3).for_each(|_| step(rt, &mut mix, &world_, 9)));
            if catch_unwind(steps).is_err() {
                FAILED.store(true, SeqCst);
            }
            0
        });
        world.handlers.lock().unwrap().push(handler);
    }
    let undertaker = std::thread::spawn(move || graves.into_iter().for_each(drop));
    let mut workers: Vec<_> = (0..threads)
        .map(|t| {
            let world = world.clone();
            std::thread::spawn(move || work(&world, seed + t, count))
        })
        .collect();
    if ocaml::OCAML5 && together > 0 {
        let world = world.clone();
        workers.push(std::thread::spawn(move || domains(&world, seed + 500, together, count)));
    }
    let failed = workers.into_iter().filter_map(|worker| worker.join().err()).count();
    assert!(failed == 0 && !FAILED.load(SeqCst), "threads have failed");
    world.graveyard.lock().unwrap().take();
    undertaker.join().unwrap();
    finish(&world);
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut options = [1, 3, 2, 3000];
    for pair in words.chunks(2) {
        let place = ["--seed", "--threads", "--domains", "--steps"].iter().position(|name| *name == pair[0]);
        match (place, pair.get(1).and_then(|word| word.parse::<u64>().ok())) {
            (Some(place), Some(number)) => options[place] = number,
            _ => {
                eprintln!("usage: stress [--seed N] [--threads N] [--domains N] [--steps N]");
                return ExitCode::from(2);
            }
        }
    }
    let [seed, threads, domains, steps] = options;
    match catch_unwind(|| run(seed, threads, domains as usize, steps as usize)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            eprintln!("failed: --seed {seed} --threads {threads} --domains {domains} --steps {steps}");
            ExitCode::FAILURE
        }
    }
}

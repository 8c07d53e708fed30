// SPDX-License-Identifier: MIT
//! Random programs over ephemeral roots, whose data refers to keys, beside a model that knows what must be alive.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::random::{self, Mix};
use ocaml_boxroot_testing::{self as ocaml, attached};

/// Data that refers to a key.
type Pair = (Str, Str);

fn collect(rt: &mut Runtime) {
    for _ in 0..3 {
        rt.full_major().unwrap(); // what was read while the marker was at work lives until it has finished
    }
}

/// What is known of an ephemeral root: the numbers of its key, of the key that its data refers to, and of the data.
struct Known {
    e: Ephemeral<Str, Pair>,
    key: usize,
    refers: usize,
    data: usize,
    dead: bool,
}

/// The keys that must be alive: those with roots, and those that data of living ones refers to.
fn living(roots: &[Option<Root<Str>>], all: &[Known]) -> Vec<bool> {
    let mut alive: Vec<bool> = roots.iter().map(Option::is_some).collect();
    loop {
        let found = all.iter().filter(|k| !k.dead && alive[k.key] && !alive[k.refers]).map(|k| k.refers).next();
        match found {
            Some(key) => alive[key] = true,
            None => return alive,
        }
    }
}

/// After a full collection what need not live is dead.
fn compare(rt: &Runtime, roots: &[Option<Root<Str>>], all: &mut [Known], collected: bool) {
    let alive = living(roots, all);
    for known in all {
        match known.e.get(rt) {
            Some(data) => {
                assert!(!known.dead && (alive[known.key] || !collected), "it should be dead");
                assert_eq!(known.e.key(rt).unwrap().to_str(), Ok(&*known.key.to_string()));
                assert_eq!(data.first().to_str(), Ok(&*format!("data {}", known.data)));
                assert_eq!(data.second().to_str(), Ok(&*known.refers.to_string()));
            }
            None => {
                assert!(!alive[known.key] && known.e.key(rt).is_none(), "it should be alive");
                known.dead = true;
            }
        }
    }
}

fn run(seed: u64) {
    let mut mix = Mix(seed);
    attached(|rt| {
        let mut roots: Vec<Option<Root<Str>>> = Vec::new();
        let mut all: Vec<Known> = Vec::new();
        for step in 0..if cfg!(feature = "checked") { 300 } else { 1000 } {
            // A key that is alive, found where it may be.
            let find = |rt: &mut Runtime, mix: &mut Mix, roots: &mut Vec<Option<Root<Str>>>, all: &[Known]| {
                let known = (!all.is_empty()).then(|| &all[mix.below(all.len())]);
                if let (Some(key), 0..3) = (known.and_then(|k| Some((k.key, k.e.key(rt)?))), mix.below(4)) {
                    let (number, key) = (key.0, Root::new(rt, key.1));
                    return (number, key);
                }
                let root = rt.string(roots.len().to_string()).root();
                roots.push(Some(root.clone_ref(rt)));
                (roots.len() - 1, root)
            };
            match mix.below(16) {
                0..=4 => {
                    for _ in 0..mix.below(15) {
                        let (key, key_root) = find(rt, &mut mix, &mut roots, &all);
                        let (refers, refers_root) = find(rt, &mut mix, &mut roots, &all);
                        let text = rt.string(format!("data {step}")).root();
                        let data = rt.pair(&text, &refers_root);
                        let e = Ephemeral::new(data.rt(), key_root.get(data.rt()), data.value()).unwrap();
                        all.push(Known { e, key, refers, data: step, dead: false });
                    }
                }
                5 | 6 if !all.is_empty() => {
                    for _ in 0..mix.below(10) {
                        let (refers, refers_root) = find(rt, &mut mix, &mut roots, &all);
                        let text = rt.string(format!("data {step}")).root();
                        let data = rt.pair(&text, &refers_root);
                        let at = mix.below(all.len());
                        let known = &mut all[at];
                        match known.e.set(data.rt(), data.value()).unwrap() {
                            true => (known.refers, known.data) = (refers, step),
                            false => assert!(known.e.key(rt).is_none()),
                        }
                    }
                }
                7 if !all.is_empty() => {
                    for _ in 0..mix.below(all.len().min(20)) {
                        let e = all.swap_remove(mix.below(all.len())).e;
                        match mix.below(8) {
                            0 => rt.release(|| drop(e)),
                            1 => rt.release(|| std::thread::spawn(|| drop(e)).join().unwrap()),
                            2 => drop(rt.boxed(e)), // by a finaliser
                            _ => drop(e),
                        }
                    }
                }
                8..=10 => {
                    let living: Vec<usize> = (0..roots.len()).filter(|i| roots[*i].is_some()).collect();
                    for _ in 0..living.len().min(mix.below(12)) {
                        roots[living[mix.below(living.len())]] = None;
                    }
                }
                11 => match mix.below(2) {
                    0 => rt.full_major().unwrap(),
                    _ => {
                        collect(rt);
                        compare(rt, &roots, &mut all, true);
                    }
                },
                12 | 13 => match mix.below(10) {
                    0 => rt.compact().unwrap(),
                    _ => rt.minor_gc(),
                },
                14 => ocaml::garbage(rt).call(rt, (step as i32 % 500,)).unwrap().into_rt().poll().unwrap(),
                _ => compare(rt, &roots, &mut all, false),
            }
        }
        collect(rt);
        compare(rt, &roots, &mut all, true);
        roots.iter_mut().for_each(|root| *root = None);
        collect(rt);
        compare(rt, &roots, &mut all, true);
        assert!(all.iter().all(|known| known.dead));
    });
}

#[test]
fn random_programs() {
    random::programs(3, run);
}

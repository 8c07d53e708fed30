// SPDX-License-Identifier: MIT
//! Random programs over roots, frames, locals, builds, calls, releases and panics, against a model.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::random::{self, Mix};
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::panic::{catch_unwind, AssertUnwindSafe};

type Entry = List<(Int, Str)>;

/// What a list should hold: its numbers; each goes with its text.
type Model = Vec<i32>;

fn text(n: i32) -> String {
    "x".repeat(n as usize % 40) + &n.to_string()
}

fn check(rt: &Runtime, list: ValueRef<'_, Entry>, model: &Model) {
    let mut rest = list.get(rt);
    for n in model {
        let (pair, tail) = rest.split_first().expect("as long as the model");
        assert_eq!((pair.first().to_isize(), pair.second().to_str()), (*n as isize, Ok(&*text(*n))));
        rest = tail;
    }
    assert!(rest.split_first().is_none());
}

fn build<'a>(
    rt: &'a mut Runtime,
    mix: &mut Mix,
    model: &mut Model,
    tail: Option<ValueRef<'_, Entry>>,
) -> ValueGuard<'a, Entry> {
    let new: Model = (0..mix.below(30)).map(|_| mix.below(10_000) as i32).collect();
    let words = mix.below(3) * mix.below(400);
    model.splice(0..0, new.iter().copied());
    rt.build(words, |n| {
        let tail = tail.map_or(n.nil(), |tail| tail.get(n));
        new.iter().rev().fold(tail, |tail, i| n.cons(n.pair(n.int(*i), n.string(text(*i))), tail))
    })
}

#[derive(Default)]
struct World {
    roots: Vec<(Root<Entry>, Model)>,
    steps: usize,
}

fn step(rt: &mut Runtime, mix: &mut Mix, world: &mut World, locals: &[(ValueRef<'_, Entry>, Model)], depth: usize) {
    world.steps += 1;
    for (place, model) in locals.iter().rev().take(2) {
        check(rt, place, model);
    }
    let any = |mix: &mut Mix, world: &World| mix.below(world.roots.len().max(1));
    match mix.below(15) {
        0..=2 => {
            let mut model = Vec::new();
            let root = build(rt, mix, &mut model, None).root();
            world.roots.push((root, model));
        }
        3 => {
            let i = any(mix, world);
            if let Some((root, model)) = world.roots.get(i) {
                let mut model = model.clone();
                let longer = build(rt, mix, &mut model, Some(root)).root();
                world.roots.push((longer, model));
            }
        }
        4 => {
            let i = any(mix, world);
            if let Some((root, model)) = world.roots.get_mut(i) {
                let mut new = Vec::new();
                root.set(build(rt, mix, &mut new, None));
                *model = new;
            }
        }
        5 | 6 if world.roots.len() > 20 => {
            let i = any(mix, world);
            let (root, model) = world.roots.swap_remove(i);
            check(rt, &root, &model);
            match mix.below(3) {
                0 => root.drop_ref(rt),
                1 => drop(root),
                _ => drop(std::thread::spawn(|| drop(root)).join()),
            }
        }
        7 => match mix.below(20) {
            0 => rt.full_major().unwrap(),
            1 => rt.compact().unwrap(),
            2..10 => rt.minor_gc(),
            _ => rt.poll().unwrap(),
        },
        8 => {
            let i = any(mix, world);
            let identity = ocaml::identity(rt);
            if let Some((root, model)) = world.roots.get(i) {
                let same = identity.call(rt, (root.as_any(),)).unwrap();
                assert!(same.value().ptr_eq(root.get(same.rt())));
                check(same.rt(), root, model);
            }
            ocaml::garbage(rt).call(rt, (mix.below(200) as i32,)).unwrap().into_rt();
        }
        9 => drop(ocaml::raise_failure(rt).call(rt, ("on purpose",)).unwrap_err()),
        10 if depth < 6 => {
            let steps = mix.below(12);
            rt.frame(|rt, [a, b]| {
                let mut model = Vec::new();
                let a = a.root(build(rt, mix, &mut model, None));
                let mut longer = model.clone();
                let b = b.root(build(rt, mix, &mut longer, Some(a)));
                let mut inner = locals.to_vec();
                inner.extend([(a, model), (b, longer)]);
                for _ in 0..steps {
                    step(rt, mix, world, &inner, depth + 1);
                }
            });
        }
        11 if depth < 6 => {
            // A panic at some position of the steps inside.
            let steps = mix.below(12);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                rt.frame(|rt, [a]| {
                    let mut model = Vec::new();
                    let a = a.root(build(rt, mix, &mut model, None));
                    for _ in 0..steps {
                        step(rt, mix, world, &[(a, model.clone())], depth + 1);
                    }
                    rt.build(mix.below(300), |n| -> Value<'_, Str> {
                        let _lost = n.string("lost");
                        std::panic::resume_unwind(Box::new("on purpose"))
                    });
                })
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"on purpose"));
        }
        12 if depth < 4 => {
            let steps = mix.below(8);
            rt.release(|| attach(|rt| (0..steps).for_each(|_| step(rt, mix, world, locals, depth + 1)))).unwrap();
        }
        13 => {
            if let Some((place, model)) = locals.last() {
                world.roots.push((place.get(rt).root(rt), model.clone()));
            }
        }
        14 if depth < 6 => {
            let (steps, count) = (mix.below(12), mix.below(90));
            rt.locals(|rt, own| {
                let mut inner = locals.to_vec();
                for i in 0..=count {
                    let mut model = Vec::new();
                    inner.push((own.root(build(rt, mix, &mut model, None)), model));
                    if i % (count / steps.max(1) + 1) == 0 {
                        step(rt, mix, world, &inner, depth + 1);
                    }
                }
                inner.iter().for_each(|(place, model)| check(rt, place, model));
            });
        }
        _ => (),
    }
}

fn run(seed: u64) {
    let mut mix = Mix(seed);
    let mut world = World::default();
    attached(|rt| {
        while world.steps < 400 {
            step(rt, &mut mix, &mut world, &[], 0);
        }
        rt.full_major().unwrap();
        for (root, model) in &world.roots {
            check(rt, root, model);
        }
    });
}

#[test]
fn random_programs() {
    random::programs(20, run);
}

// SPDX-License-Identifier: MIT
//! Random programs over wide roots of several widths, beside a model of what each holds.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::random::{self, Mix};
use ocaml_boxroot_testing::{self as ocaml, attached};

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

/// A wide root of some width.
enum Wide {
    One(WideRoot<[Str; 1]>),
    Three(WideRoot<[Str; 3]>),
    Ten(WideRoot<[Str; 10]>),
    Most(WideRoot<[Str; 64]>),
    Tuple(WideRoot<(Str, Str, Int)>),
}

macro_rules! each {
    ($wide:expr, $array:pat => $then:expr, $tuple:pat => $for_tuple:expr) => {
        match $wide {
            Wide::One($array) => $then,
            Wide::Three($array) => $then,
            Wide::Ten($array) => $then,
            Wide::Most($array) => $then,
            Wide::Tuple($tuple) => $for_tuple,
        }
    };
}

impl Wide {
    /// Of `first`, `first + 1`, … and the model of it.
    fn new(rt: &mut Runtime, mix: &mut Mix, first: usize) -> (Wide, Vec<usize>) {
        let wide = match mix.below(9) {
            0 | 1 => Wide::One(numbers(rt, first)),
            2 | 3 => Wide::Three(numbers(rt, first)),
            4 | 5 => Wide::Ten(numbers(rt, first)),
            6 => Wide::Most(numbers(rt, first)),
            _ => {
                let two = numbers::<2>(rt, first);
                Wide::Tuple(WideRoot::new(rt, (two[0].get(rt), two[1].get(rt), int(first as i32 + 2))))
            }
        };
        let width = each!(&wide, root => root.len(), _ => 3);
        (wide, (first..first + width).collect())
    }

    fn read(&self, rt: &Runtime) -> Vec<usize> {
        let number = |place: ValueRef<Str>| text(rt, place).parse().unwrap();
        each!(self, root => root.iter().map(number).collect(), root => {
            let (a, b, c) = root.places();
            vec![number(a), number(b), c.get(rt).to_isize() as usize]
        })
    }

    fn change(&mut self, rt: &mut Runtime, i: usize, number: usize) {
        let v = rt.string(number.to_string());
        each!(self, root => { root.set_at(i, v); }, root => match i {
            0 => _ = root.set::<0>(v),
            1 => root.set_value::<1>(v.rt(), v.value()),
            _ => _ = root.replace::<2>(v.rt(), int(number as i32)),
        })
    }

    fn clone_ref(&self, rt: &Runtime) -> Wide {
        match self {
            Wide::One(root) => Wide::One(root.clone_ref(rt)),
            Wide::Three(root) => Wide::Three(root.clone_ref(rt)),
            Wide::Ten(root) => Wide::Ten(root.clone_ref(rt)),
            Wide::Most(root) => Wide::Most(root.clone_ref(rt)),
            Wide::Tuple(root) => Wide::Tuple(root.clone_ref(rt)),
        }
    }
}

fn run(seed: u64) {
    let mut mix = Mix(seed);
    attached(|rt| {
        let mut live: Vec<(Wide, Vec<usize>)> = Vec::new();
        for _ in 0..if cfg!(feature = "checked") { 150 } else { 1200 } {
            let n = mix.below(10_000);
            match mix.below(16) {
                0..=4 => (0..mix.below(20)).for_each(|i| live.push(Wide::new(rt, &mut mix, n + i))),
                5..=7 if !live.is_empty() => {
                    for _ in 0..mix.below(20) {
                        let at = mix.below(live.len());
                        let (wide, model) = &mut live[at];
                        let i = mix.below(model.len());
                        wide.change(rt, i, n + i);
                        model[i] = n + i;
                        assert_eq!(wide.read(rt), *model);
                    }
                }
                8 | 9 if !live.is_empty() => {
                    for _ in 0..mix.below(live.len().min(40)) {
                        let (wide, model) = live.swap_remove(mix.below(live.len()));
                        assert_eq!(wide.read(rt), model);
                        match mix.below(8) {
                            0 => rt.release(|| drop(wide)),
                            1 => rt.release(|| std::thread::spawn(|| drop(wide)).join().unwrap()),
                            2 => drop(rt.boxed(wide)), // by a finaliser
                            _ => drop(wide),
                        }
                    }
                }
                10 if !live.is_empty() => {
                    let (wide, model) = &live[mix.below(live.len())];
                    let copy = (wide.clone_ref(rt), model.clone());
                    live.push(copy);
                }
                11 | 12 => live.iter().for_each(|(wide, model)| assert_eq!(wide.read(rt), *model)),
                13 | 14 => match mix.below(10) {
                    0 => rt.full_major().unwrap(),
                    1 => rt.compact().unwrap(),
                    _ => rt.minor_gc(),
                },
                _ => ocaml::garbage(rt).call(rt, (n as i32 % 500,)).unwrap().into_rt().poll().unwrap(),
            }
        }
        rt.full_major().unwrap();
        live.iter().for_each(|(wide, model)| assert_eq!(wide.read(rt), *model));
    });
}

#[test]
fn random_programs() {
    random::programs(4, run);
}

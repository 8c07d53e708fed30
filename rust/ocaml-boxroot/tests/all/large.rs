// SPDX-License-Identifier: MIT
//! Values that do not fit in the minor heap: which of their blocks are built there.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};

/// More than any minor heap has words, in blocks of three.
const MANY: usize = 1 << 19;

/// How many cells from the head on are in the minor heap, and how many behind the first that is not.
fn young_cells<T>(rt: &Runtime, list: Value<'_, List<T>>) -> (usize, usize) {
    let (mut in_front, mut behind, mut old) = (0, 0, 0);
    let mut rest = list;
    while let Some((_, tail)) = rest.split_first() {
        match (ocaml::is_young(rt, rest), old) {
            (false, _) => old += 1,
            (true, 0) => in_front += 1,
            (true, _) => behind += 1,
        }
        rest = tail;
    }
    assert_eq!(in_front + behind + old, MANY);
    (in_front, behind)
}

/// A list is built from its end. What exceeds the minor heap is built first, so that no block in the major heap points
/// to one in the minor heap: the next collection would have to follow it.
#[test]
fn what_exceeds_the_minor_heap_is_built_first() {
    attached(|rt| {
        let numbers = List((0..MANY as i64).collect::<Vec<_>>());
        for made in [false, true] {
            let list = match made {
                true => rt.build(MANY * block_words(2), |n| (0..MANY).fold(n.nil(), |list, _| n.cons(n.int(7), list))),
                false => rt.alloc(&numbers).unwrap(),
            };
            let (in_front, behind) = young_cells(list.rt(), list.value());
            assert!(in_front > 500, "only {in_front} cells are in the minor heap");
            assert_eq!(behind, 0, "cells in the minor heap behind others in the major heap");
        }
        assert_eq!(rt.alloc(&numbers).unwrap().to_rust::<List<i64>>().unwrap().0, numbers.0);
    })
}

/// What an array in the major heap holds is built there.
#[test]
fn large_arrays_hold_no_young_values() {
    attached(|rt| {
        let young = rt.string("young").root();
        let words: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        let made = rt.alloc(&words).unwrap();
        let is_young = |i| ocaml::is_young(made.rt(), made.value().get(i).unwrap());
        assert!(!(0..1000).any(is_young));
        assert_eq!(made.to_rust::<Vec<String>>().unwrap(), words);
        made.into_rt();
        // Neighbours are built where they fit.
        let pair = (String::from("small"), words, String::from("small"));
        let made = rt.alloc(&pair).unwrap();
        let (before, array, after) = made.value().to_tuple();
        assert!(ocaml::is_young(made.rt(), before) && ocaml::is_young(made.rt(), after));
        assert!(!ocaml::is_young(made.rt(), array.get(999).unwrap()));
        made.into_rt();
        // Values that were there before are where they are; the collector knows of them.
        let roots: Vec<&Root<Str>> = (0..1000).map(|_| &young).collect();
        let array = rt.alloc(&roots).unwrap().root();
        rt.minor_gc();
        let garbage = ocaml::garbage(rt);
        garbage.call(rt, (5000,)).unwrap().into_rt();
        rt.full_major().unwrap();
        for i in 0..1000 {
            assert_eq!(array.get(rt).get(i).unwrap().to_str(), Ok("young"));
        }
    })
}

/// A conversion that fails, or panics, in the middle of a large array leaves a sound heap, and the nursery as it was.
#[test]
fn large_arrays_that_are_not_finished() {
    struct Bad(usize, String);
    impl Typed for Bad {
        type Type = Str;
    }
    impl Element for Bad {}
    impl ToOCaml for Bad {
        fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Str>, ConvertError> {
            match self.0 {
                0 => Ok(n.try_string(&self.1)?),
                1 => Err(ConvertError::Range { target: "the test" }),
                _ => std::panic::resume_unwind(Box::new("on purpose")),
            }
        }
    }
    attached(|rt| {
        for what in [1, 2] {
            let items: Vec<Bad> = (0..600).map(|i| Bad(if i == 400 { what } else { 0 }, i.to_string())).collect();
            let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                rt.build(100, |n| {
                    let before = n.string("before");
                    let failed = items.to_ocaml(n).map(|_| ()).unwrap_err();
                    assert_eq!(failed, ConvertError::Range { target: "the test" });
                    let after = n.string("after");
                    assert!(ocaml::is_young(n, before) && ocaml::is_young(n, after));
                    n.pair(before, after)
                })
                .root()
            }));
            rt.minor_gc();
            match (what, made) {
                (1, Ok(pair)) => assert_eq!(pair.get(rt).second().to_str(), Ok("after")),
                (2, Err(panic)) => assert_eq!(panic.downcast_ref(), Some(&"on purpose")),
                (what, made) => panic!("{what} has become {made:?}"),
            }
            rt.full_major().unwrap();
            rt.compact().unwrap();
        }
    })
}

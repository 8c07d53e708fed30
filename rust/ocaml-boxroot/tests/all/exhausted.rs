// SPDX-License-Identifier: MIT
//! Memory that is short: the first, the second, … block in the major heap is refused, until the conversion has them
//! all. The checked build can be told to.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Record {
    /// Larger than what is allocated in the minor heap, as the others.
    name: String,
    numbers: Vec<i64>,
    floats: Vec<f64>,
    array: FloatArray,
    bytes: Bytes,
    inner: List<Option<(Vec<u8>, [i8; 300])>>,
}

fn record() -> Record {
    Record {
        name: "n".repeat(3000),
        numbers: (0..400).collect(),
        floats: (0..400).map(f64::from).collect(),
        array: FloatArray((0..400).map(f64::from).collect()),
        bytes: Bytes(vec![7; 3000]),
        inner: List(vec![None, Some((vec![1; 3000], [1; 300])), Some((vec![2; 3000], [2; 300]))]),
    }
}

/// What `f` returns when it gets as many blocks as it wants, and how many errors came before.
fn until_it_succeeds<R, E>(
    rt: &mut Runtime,
    mut f: impl FnMut(&mut Runtime) -> Result<R, E>,
    check: fn(E),
) -> (R, i32) {
    for n in 0.. {
        refuse_after(n);
        let result = f(rt);
        refuse_after(-1);
        match result {
            Ok(r) => return (r, n),
            Err(error) => check(error),
        }
        // What was made before the error is garbage now, and complete.
        rt.full_major().unwrap();
    }
    unreachable!()
}

fn is_alloc(error: ConvertError) {
    assert!(matches!(error, ConvertError::Alloc(error) if error.words() > 256), "{error}");
}

#[test]
fn conversions_that_get_no_memory() {
    alone(conversions_that_get_no_memory, || {
        attached(|rt| {
            let r = record();
            let kept = rt.alloc(&r).unwrap().root();
            let (made, errors) = until_it_succeeds(rt, |rt| rt.alloc(&r).map(ValueGuard::root), is_alloc);
            assert_eq!(errors, 9, "as many blocks are large");
            assert_eq!(made.to_rust::<Record>(rt).as_ref(), Ok(&r));
            assert_eq!(kept.to_rust::<Record>(rt).as_ref(), Ok(&r));
            let (_, errors) = until_it_succeeds(rt, |rt| rt.try_string("x".repeat(3000)).map(drop), |_| {});
            assert_eq!(errors, 1);
        })
    })
}

#[test]
fn blocks_that_find_no_room_in_the_nursery() {
    alone(blocks_that_find_no_room_in_the_nursery, || {
        attached(|rt| {
            // Without a reservation each block is in the major heap.
            let r = [(Int64(1), Some(2.5)), (Int64(2), None)];
            let build = |rt: &mut Runtime| rt.try_build(0, |n| r.to_ocaml(n)).map(ValueGuard::root);
            let (made, errors) = until_it_succeeds(rt, build, |error| assert!(matches!(error, ConvertError::Alloc(_))));
            assert_eq!((made.to_rust(rt), errors), (Ok(r), 7));
        })
    })
}

#[test]
fn arguments_that_get_no_memory() {
    alone(arguments_that_get_no_memory, || {
        attached(|rt| {
            let call = |rt: &mut Runtime| {
                let text = ocaml::greet(rt).call(rt, ("x".repeat(3000), 1))?;
                Ok(text.to_rust::<String>().unwrap())
            };
            let (text, errors) = until_it_succeeds(rt, call, |error: Exception| {
                assert_eq!(error.to_string(), "Out_of_memory");
            });
            assert_eq!((text.len(), errors), (3002, 1));
        })
    })
}

// SPDX-License-Identifier: MIT
//! Conversions: what ocamlopt builds is read, and what Rust builds is the same for OCaml.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

/// Whether the value that `r` becomes is equal to the sample, block for block.
fn same<R: ToOCaml + ?Sized>(rt: &mut Runtime, r: &R, sample: for<'r> fn(&'r Runtime) -> Value<'r, R::Type>) -> bool {
    let ours = rt.alloc(r).unwrap().into_any().root();
    let theirs = sample(rt).into_any().root(rt);
    ocaml::equal(rt).call(rt, (ours, theirs)).unwrap().to_rust().unwrap()
}

/// `r` becomes the sample, and is what the sample is read as.
fn both<R>(rt: &mut Runtime, r: R, sample: for<'r> fn(&'r Runtime) -> Value<'r, R::Type>)
where
    R: ToOCaml + for<'a> FromOCaml<'a> + PartialEq + Debug,
{
    assert!(same(rt, &r, sample), "{r:?}");
    assert_eq!(sample(rt).to_rust::<R>(rt).unwrap(), r);
}

fn describe<T: Typed<Type: OCamlType>>() -> String {
    <T::Type as OCamlType>::describe(&mut Definitions::new())
}

fn range<R: Debug>(r: Result<R, ConvertError>) -> bool {
    matches!(r, Err(ConvertError::Range { .. }))
}

#[test]
fn samples_of_ocamlopt() {
    attached(|rt| {
        let (max, min) = ((1i64 << 62) - 1, -(1i64 << 62));
        both(rt, (max, min, 0u8, -1i8, Char(b'x'), '😀'), ocaml::s_numbers);
        both(rt, (max as u64, min as isize, 0usize, -1i128, Char(b'x'), '😀'), ocaml::s_numbers);
        both(rt, (Int32(i32::MIN), Int64(i64::MAX), Nativeint(isize::MIN)), ocaml::s_boxed);
        both(rt, (vec![0.0f64; 0], List::<i32>(vec![]), String::new(), Bytes(vec![]), None::<i8>), ocaml::s_empty);
        both(rt, List((0..20).map(|n| (0..n).map(|i| 255 - i).collect()).collect::<Vec<Vec<u8>>>()), ocaml::s_strings);
        both(rt, Bytes(b"bytes\0\xff".to_vec()), ocaml::s_bytes);
        both(rt, List(vec![Some(Ok(1)), Some(Err("no".to_owned())), None]), ocaml::s_sums);
        both(rt, List(vec![Some(None), None, Some(Some(()))]), ocaml::s_nested);
        let pairs = vec![(1, "one".to_owned()), (-2, "".into()), (max, "eight by".into()), (min, "seven b".into())];
        both(rt, List(pairs.clone()), ocaml::s_pairs);
        both(rt, pairs.clone(), ocaml::s_array);
        both(rt, VecDeque::from(pairs.clone()), ocaml::s_array);
        both(rt, <[(i64, String); 4]>::try_from(pairs.clone()).unwrap(), ocaml::s_array);
        both(rt, pairs.clone().into_boxed_slice(), ocaml::s_array);
        both(rt, (Rc::new(1), Box::new(2), Arc::new(3), 4, 5, 6, 7, 8, 9, 10, 11, true), ocaml::s_tuple12);
        both(rt, vec![vec![1.0, 2.0], vec![], vec![3.0f32]], ocaml::s_matrix);
        // By reference, and whatever holds them.
        let shared: Vec<Cow<'_, (i64, String)>> = pairs.iter().map(Cow::Borrowed).collect();
        assert!(same(rt, &shared[..], ocaml::s_array) && same(rt, &pairs[..], ocaml::s_array));
        let pairs: List<(i64, &str)> = List(pairs.iter().map(|(n, s)| (*n, &s[..])).collect());
        assert!(same(rt, &pairs, ocaml::s_pairs));
    })
}

#[test]
fn floats() {
    attached(|rt| {
        let floats = vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324, 1.5];
        assert!(same(rt, &floats.iter().map(Box::new).collect::<Vec<_>>(), ocaml::s_floats));
        let bits = |floats: &[f64]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&ocaml::s_floats(rt).to_rust::<Vec<f64>>(rt).unwrap()), bits(&floats));
        assert_eq!(ocaml::s_floats(rt).float(7), Some(1.5));
        assert_eq!(ocaml::s_floats(rt).float(8), None);
        assert!(range(ocaml::s_floats(rt).to_rust::<Vec<f32>>(rt)), "5e-324 is no f32");
        let array = ocaml::s_floatarray(rt);
        assert_eq!((array.len(), array.get(0), array.get(2)), (2, Some(1.0), None));
        assert!(same(rt, &FloatArray(vec![1.0, f64::NAN]), ocaml::s_floatarray));
        assert_eq!(ocaml::s_floatarray(rt).to_rust::<FloatArray>(rt).unwrap().0[0], 1.0);

        // A flat array whose elements are not known to be floats here: roots, and values of unknown type.
        let roots: Vec<Root<Float>> = (0..3).map(|i| rt.float(f64::from(i)).root()).collect();
        assert_eq!(ocaml::sum_floats(rt).call(rt, (&roots,)).unwrap().to_rust(), Ok(3.0));
        let unknown: Vec<Root> = roots.into_iter().map(Root::into_any).collect();
        let array = rt.alloc(&unknown).unwrap();
        // So OCaml's own arrays are, unless the compiler was configured otherwise.
        assert_eq!(array.value().into_any().kind(), ValueKind::FloatArray { len: 3 });
        assert!(matches!(array.value().get(0), Err(ShapeError::Opaque(_))), "an element of it is no value");
        // Read as values, each is boxed.
        let read: Vec<Root> = array.to_rust().unwrap();
        let number = |rt: &Runtime, v: &Root| v.get(rt).to_rust_checked::<f64>(rt);
        assert_eq!(number(array.rt(), &read[2]), Ok(2.0));
        let rt = array.into_rt();
        rt.full_major().unwrap();
        rt.compact().unwrap();
        assert_eq!([0, 1, 2].map(|i| number(rt, &read[i]).unwrap()), [0.0, 1.0, 2.0]);
        let mixed = [rt.float(1.0).into_any().root(), rt.string("x").into_any().root()];
        assert!(matches!(rt.alloc(&mixed).unwrap_err(), ConvertError::Shape(_)), "floats first, then others");
        let mixed: Vec<&Root> = mixed.iter().rev().collect();
        assert_eq!(rt.alloc(&mixed).unwrap().value().into_any().kind(), ValueKind::Block { tag: 0, len: 2 });
    })
}

#[test]
fn numbers_that_do_not_fit() {
    attached(|rt| {
        let max = (1i64 << 62) - 1;
        for n in [max, max - 1, -max - 1, 0] {
            assert_eq!(rt.alloc(&n).unwrap().to_rust(), Ok(n));
        }
        for n in [max + 1, -max - 2, i64::MAX, i64::MIN] {
            assert!(range(rt.alloc(&n)), "{n}");
            assert!(range(rt.alloc(&(n as isize))), "{n}");
            assert!(range(rt.alloc(&i128::from(n))), "{n}");
            assert!(range(rt.alloc(&[(Some(n), 1)])), "{n}");
        }
        assert!(range(rt.alloc(&u64::MAX)) && range(rt.alloc(&(1u64 << 62))) && range(rt.alloc(&u128::MAX)));
        assert!(range(rt.alloc(&i128::MAX)) && range(rt.alloc(&usize::MAX)));
        assert_eq!(rt.alloc(&u32::MAX).unwrap().to_rust(), Ok(u32::MAX));

        let v = Value::int(-129).unwrap();
        assert!(range(v.to_rust::<i8>(rt)) && range(v.to_rust::<u8>(rt)) && range(v.to_rust::<u64>(rt)));
        assert_eq!((v.to_rust::<i16>(rt), v.to_rust::<i128>(rt)), (Ok(-129), Ok(-129)));
        let v = Value::int(1 << 32).unwrap();
        assert!(range(v.to_rust::<i32>(rt)) && range(v.to_rust::<u32>(rt)) && range(v.to_rust::<u16>(rt)));
        assert_eq!(v.to_rust::<u64>(rt), Ok(1 << 32));

        // In a call: what a function of OCaml would raise.
        let error = ocaml::succ(rt).call(rt, (u64::MAX,)).unwrap_err();
        assert_eq!(error.to_string(), r#"Invalid_argument("the number does not fit in OCaml's int")"#);
        assert_eq!(ocaml::succ(rt).call(rt, (41u64,)).unwrap().to_rust(), Ok(42));
    })
}

#[test]
fn strings_are_read_in_place() {
    attached(|rt| {
        for text in ["", "sevenby", "eight by", "nine byte", "grüße"] {
            let s = rt.alloc(text).unwrap();
            let place: &str = s.to_rust().unwrap();
            assert_eq!(place, text);
            assert_eq!(place.as_ptr() as isize, s.value().raw());
            let cow: Cow<'_, str> = s.to_rust().unwrap();
            assert!(matches!(cow, Cow::Borrowed(t) if t == text));
            assert_eq!(s.to_rust::<String>().unwrap(), text);
            assert_eq!(s.to_rust::<Arc<str>>().unwrap(), text.into());
        }
        let s = rt.alloc(&[b'a', 0xff, b'b']).unwrap();
        assert!(matches!(s.to_rust::<&str>(), Err(ConvertError::Utf8(e)) if e.valid_up_to() == 1));
        assert!(matches!(s.to_rust::<String>(), Err(ConvertError::Utf8(_))));
        assert_eq!(s.to_rust::<&[u8]>(), Ok(&[b'a', 0xff, b'b'][..]));
        assert_eq!(s.to_rust::<[u8; 3]>(), Ok([b'a', 0xff, b'b']));
        let length = ShapeError::Length { expected: 4, found: 3 };
        assert_eq!(s.to_rust::<[u8; 4]>(), Err(ConvertError::Shape(length)));
    })
}

#[test]
fn bytes_are_copied() {
    attached(|rt| {
        let b = rt.alloc(&Bytes(b"12345678".to_vec())).unwrap().root();
        let v = b.get(rt);
        assert_eq!((v.len(), v.get(7), v.get(8)), (8, Some(b'8'), None));
        assert!(v.set(rt, 0, b'x') && !v.set(rt, 8, b'x'));
        assert_eq!(v.to_vec(), b"x2345678");
        for len in 0..40 {
            let text: Vec<u8> = (0..len).collect();
            assert_eq!(rt.alloc(&Bytes(text.clone())).unwrap().to_rust(), Ok(Bytes(text)));
        }
    })
}

#[test]
fn values_of_unknown_type() {
    attached(|rt| {
        let v = ocaml::s_sums(rt).into_any();
        let expected = List(vec![Some(Ok(1)), Some(Err("no".to_owned())), None]);
        assert_eq!(v.to_rust_checked(rt), Ok(expected));
        let shape = |r: Result<_, ConvertError>| matches!(r, Err(ConvertError::Shape(_)));
        assert!(shape(v.to_rust_checked::<String>(rt).map(drop)));
        assert!(shape(v.to_rust_checked::<i32>(rt).map(drop)));
        assert!(shape(v.to_rust_checked::<f64>(rt).map(drop)));
        assert!(shape(v.to_rust_checked::<(i32, i32, i32)>(rt).map(drop)));
        assert!(shape(v.to_rust_checked::<Int64>(rt).map(drop)));
        assert!(shape(v.to_rust_checked::<Result<i32, i32>>(rt).map(drop)));
        assert!(shape(ocaml::s_boxed(rt).into_any().to_rust_checked::<(Int64, Int64, Int64)>(rt).map(drop)));
        let succ = ocaml::succ(rt);
        let f = succ.get(rt).into_any();
        assert!(shape(f.to_rust_checked::<Vec<i32>>(rt).map(drop)), "a closure is no array");
        assert!(shape(f.to_rust_checked::<List<i32>>(rt).map(drop)), "a closure is no list");
        assert!(shape(int(2).into_any().to_rust_checked::<List<i32>>(rt).map(drop)));
        assert!(shape(int(2).into_any().to_rust_checked::<bool>(rt).map(drop)));
        assert!(shape(int(1).into_any().to_rust_checked::<Option<i32>>(rt).map(drop)));
        assert!(shape(int(1).into_any().to_rust_checked::<()>(rt).map(drop)));
        assert!(shape(int(1).into_any().to_rust_checked::<Vec<u8>>(rt).map(drop)));
        assert!(range(int(-1).into_any().to_rust_checked::<char>(rt)));
        assert!(range(int(0xd800).into_any().to_rust_checked::<char>(rt)));
        assert!(range(int(256).into_any().to_rust_checked::<Char>(rt)));
        let pair: (Value<'_>, Root) = ocaml::s_array(rt).get(0).unwrap().into_any().to_rust_checked(rt).unwrap();
        assert_eq!(pair.0.kind(), ValueKind::Int(1));
        assert_eq!(pair.1.get(rt).kind(), ValueKind::String { len: 3 });
    })
}

#[test]
fn lists_of_any_length() {
    // A stack of 64 KiB, where a list of a million needs none.
    let run = || {
        attached(|rt| {
            const N: i64 = 1_000_000;
            let numbers = List((0..N).collect::<Vec<_>>());
            let list = rt.alloc(&numbers).unwrap().root();
            assert_eq!(ocaml::sum(rt).call(rt, (&list,)).unwrap().to_rust(), Ok(N * (N - 1) / 2));
            assert_eq!(list.to_rust::<List<i64>>(rt).unwrap(), numbers);
            let theirs = ocaml::int_list(rt).call(rt, (N,)).unwrap().root();
            assert_eq!(theirs.to_rust::<List<i64>>(rt).unwrap(), numbers);
            let circle = ocaml::circle(rt).call(rt, (1,)).unwrap();
            assert_eq!(
                circle.to_rust::<List<i32>>().unwrap_err().to_string(),
                "the OCaml value is not a list that ends"
            );
        })
    };
    std::thread::Builder::new().stack_size(64 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn lazy_values() {
    attached(|rt| {
        let v = ocaml::forced(rt).call(rt, (5,)).unwrap();
        assert_eq!(v.value().forced().unwrap().to_str(), Ok("5"));
        rt.full_major().unwrap();
    })
}

#[test]
fn what_types_are_called() {
    type Event = Fun<(Str, Opt<Int>), Unit>;
    assert_eq!(describe::<Vec<(i32, String)>>(), "(int * string) array");
    assert_eq!(describe::<Option<List<Vec<u8>>>>(), "string list option");
    assert_eq!(describe::<Root<Event>>(), "(string -> int option -> unit)");
    assert_eq!(describe::<Vec<&Root<Event>>>(), "(string -> int option -> unit) array");
    assert_eq!(describe::<Fun<((Int, Int),), Fun<(Unit,), Float>>>(), "((int * int) -> (unit -> float))");
    assert_eq!(describe::<Result<&str, (char, Char)>>(), "(string, (Stdlib.Uchar.t * char)) result");
    assert_eq!(describe::<(Int32, Int64, Nativeint)>(), "(int32 * int64 * nativeint)");
    assert_eq!(describe::<Root<Lazy<Atomic<Ref<Exn>>>>>(), "exn ref Stdlib.Atomic.t Stdlib.Lazy.t");
    assert_eq!(describe::<(FloatArray, Bytes, f32, bool)>(), "(floatarray * bytes * float * bool)");
}

#[test]
fn memory_that_the_heap_refuses() {
    attached(|rt| {
        // As long as an array can be in Rust, whose elements take no room there.
        let huge = [(); usize::MAX];
        let error = rt.alloc(&huge[..]).unwrap_err();
        assert!(matches!(error, ConvertError::Alloc(e) if e.words() == usize::MAX), "{error}");
        let error = rt.alloc(&(1, [&huge[..usize::MAX >> 10]])).unwrap_err();
        assert!(matches!(error, ConvertError::Alloc(_)), "{error}");
        assert_eq!(rt.alloc(&huge[..3]).unwrap().to_rust(), Ok(vec![(); 3]));
    })
}

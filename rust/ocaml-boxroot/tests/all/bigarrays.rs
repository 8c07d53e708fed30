// SPDX-License-Identifier: MIT
//! Bigarrays, and `bytes`.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::own::{self, Counting};
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::fmt::Debug;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn ints(rt: &mut Runtime, list: &[usize]) -> Root<List<Int>> {
    let list: Vec<isize> = list.iter().map(|n| *n as isize).collect();
    rt.build(3 * list.len(), |n| list.iter().rev().fold(n.nil(), |l, i| n.cons(Value::int(*i).unwrap(), l))).root()
}

fn show(rt: &mut Runtime, a: &Root, index: &[usize]) -> String {
    let index = ints(rt, index);
    own::own_show(rt).call(rt, (a, &index)).unwrap().value().to_str().unwrap().to_owned()
}

/// Both ways, for a kind: `x` and `y` as OCaml prints them.
fn kind<E: BigarrayElement + PartialEq + Debug, L: Layout>(
    rt: &mut Runtime,
    layout: L,
    code: i32,
    x: (E, &str),
    y: (E, &str),
) {
    let fortran = Genarray::<E, L>::describe(&mut Definitions::new()).contains("fortran");
    let from = usize::from(fortran);
    // Made by Rust: the second element in memory is the neighbour in the last dimension, or the first one.
    let made = rt.bigarray_from_vec_in(layout, vec![x.0, y.0, x.0, x.0, x.0, y.0], [2, 3]).root();
    let second = if fortran { [from + 1, from] } else { [from, from + 1] };
    let last = [from + 1, from + 2];
    let view = made.view(rt);
    let any = made.clone_ref(rt).into_any();
    rt.full_major().unwrap();
    for (index, expected) in [([from, from], x), (second, y), (last, y)] {
        assert_eq!(show(rt, &any, &index), expected.1);
        assert_eq!(view.get(index), Some(expected.0));
    }
    assert_eq!(view.get([2, 3]).is_some(), fortran);
    assert_eq!(view.get([0, 0]).is_some(), !fortran);
    assert!(
        view.cell([from]).is_none() && view.cell([from, from, from]).is_none() && view.cell([from, from + 3]).is_none()
    );
    assert!(!view.set([from + 2, from], x.0));
    // Written by OCaml, and by Rust.
    let (into, of) = (ints(rt, &[from, from]), ints(rt, &last));
    own::own_copy_element(rt).call(rt, (&any, &of, &into)).unwrap();
    assert_eq!(view.get([from, from]), Some(y.0));
    assert!(view.set(second, x.0));
    assert_eq!(show(rt, &any, &second), x.1);
    assert_eq!(made.to_vec(rt), [y.0, x.0, x.0, x.0, x.0, y.0]);
    assert_eq!(view.as_cells()[5].get(), y.0);

    // Made by OCaml.
    let dims = ints(rt, &[4, 1, 2, 1]);
    let theirs = own::own_create(rt).call(rt, (code, from as i32, &dims)).unwrap().root();
    let theirs: Root<Genarray<E, L>> = own::declared_as(theirs);
    let view = theirs.view(rt);
    assert_eq!(*view.shape(), [4, 1, 2, 1]);
    view.fill(x.0);
    view.as_cells()[7].set(y.0);
    let any = theirs.clone_ref(rt).into_any();
    assert_eq!(show(rt, &any, &[from + 3, from, from + 1, from]), y.1);
    assert_eq!(show(rt, &any, &[from + 2, from, from + 1, from]), x.1);
    assert_eq!(view.copy_from_slice(&[x.0]), Err(ShapeError::Elements { shape: 8, found: 1 }));
    view.copy_from_slice(&[y.0; 8]).unwrap();
    assert_eq!(theirs.to_vec(rt), [y.0; 8]);
}

fn both<E: BigarrayElement + PartialEq + Debug>(rt: &mut Runtime, code: i32, x: (E, &str), y: (E, &str)) {
    kind(rt, CLayout, code, x, y);
    kind(rt, FortranLayout, code, x, y);
}

#[test]
fn kinds() {
    fn complex<F>(re: F, im: F) -> Complex<F> {
        Complex { re, im }
    }
    attached(|rt| {
        both(rt, 0, (1.5_f32, "1.5"), (-2.25, "-2.25"));
        both(rt, 1, (1e300_f64, "1e+300"), (-0.5, "-0.5"));
        both(rt, 2, (-128_i8, "-128"), (127, "127"));
        both(rt, 3, (255_u8, "255"), (1, "1"));
        both(rt, 4, (i16::MIN, "-32768"), (7, "7"));
        both(rt, 5, (u16::MAX, "65535"), (7, "7"));
        both(rt, 6, (i32::MIN, "-2147483648"), (7, "7"));
        both(rt, 7, (i64::MIN, "-9223372036854775808"), (7, "7"));
        let least = Int63::new(-1 << 62).unwrap();
        both(rt, 8, (least, "-4611686018427387904"), (7.into(), "7"));
        both(rt, 9, (isize::MIN, "-9223372036854775808"), (7, "7"));
        both(rt, 10, (complex(1.5_f32, 2.0), "1.5+2i"), (complex(0.0, 0.5), "0+0.5i"));
        both(rt, 11, (complex(1e300_f64, 2.0), "1e+300+2i"), (complex(0.0, 0.5), "0+0.5i"));
        both(rt, 12, (Char(b'x'), "x"), (Char(b'y'), "y"));
        if ocaml::FLOAT16 {
            both(rt, 13, (F16(0x3e00), "1.5"), (F16(0xc000), "-2"));
        } else {
            let (error, vec) = rt.try_bigarray_from_vec(CLayout, vec![F16(0)], [1]).unwrap_err();
            assert_eq!((error, vec.len()), (ShapeError::NoBigarray, 1));
        }
    });
    assert!(Int63::new(1 << 62).is_none() && Int63::new((-1 << 62) - 1).is_none());
}

#[test]
fn dimensions() {
    attached(|rt| {
        let zero = rt.bigarray_from_vec(vec![7_u8], []).root();
        assert_eq!((zero.view(rt).get([]), *zero.view(rt).shape()), (Some(7), []));
        let three = rt.bigarray_from_vec((0..24_u8).collect(), [2, 3, 4]).root();
        assert_eq!(three.view(rt).get([1, 2, 3]), Some(23));
        assert_eq!(three.view(rt).get([1, 0, 2]), Some(14));
        let fortran = rt.bigarray_from_vec_in(FortranLayout, (0..24_u8).collect(), [2, 3, 4]).root();
        assert_eq!(fortran.view(rt).get([2, 1, 3]), Some(13));
        let shape = vec![1; 16];
        let most = rt.bigarray_from_vec(vec![9_i16], shape.clone()).root();
        assert_eq!(*most.view(rt).shape(), shape);
        let dims = own::own_dims(rt).call(rt, (&most.clone_ref(rt).into_any(),)).unwrap();
        assert_eq!(dims.value().iter().count(), 16);
        let rt = dims.into_rt();
        let too_many = rt.try_bigarray_from_vec(CLayout, vec![9_i16], vec![1; 17]).map(|_| ()).unwrap_err();
        assert_eq!(too_many, (ShapeError::Dimensions { expected: 16, found: 17 }, vec![9]));
        let wrong = rt.try_bigarray_from_vec(CLayout, vec![9_i16], [2, 3]).map(|_| ()).unwrap_err();
        assert_eq!(wrong, (ShapeError::Elements { shape: 6, found: 1 }, vec![9]));
        for shape in [[usize::MAX, 2], [1 << 63, 0], [1 << 32, 1 << 32]] {
            assert!(rt.try_bigarray_from_vec(CLayout, Vec::<u8>::new(), shape).is_err());
        }
        let empty = rt.bigarray_from_vec(Vec::<f64>::new(), [0, 5]).root();
        assert_eq!((empty.as_cells(rt).len(), *empty.view(rt).shape()), (0, [0, 5]));
        let part = empty.sub(rt, 0, 0).unwrap();
        assert_eq!(part.as_cells(part.rt()).len(), 0);
        let rt = part.into_rt();
        let dims = ints(rt, &[0]);
        let theirs = own::own_create(rt).call(rt, (1, 0, &dims)).unwrap().root();
        let theirs: Root<Genarray<f64>> = own::declared_as(theirs);
        assert_eq!(theirs.to_vec(rt), []);
    })
}

#[test]
fn types_are_checked() {
    fn refused<T>(rt: &mut Runtime, a: &Root, expected: ShapeError)
    where
        T: Downcast,
    {
        assert_eq!(a.get(rt).downcast::<T>().map(|_| ()), Err(expected));
    }
    attached(|rt| {
        let a = rt.bigarray_from_vec(vec![1_u8; 6], [2, 3]).root().into_any();
        assert!(a.get(rt).downcast::<Array2<u8>>().is_ok() && a.get(rt).downcast::<Genarray<u8>>().is_ok());
        let kind = |expected| ShapeError::BigarrayKind { expected, found: "int8_unsigned" };
        refused::<Array2<i8>>(rt, &a, kind("int8_signed"));
        refused::<Array2<Char>>(rt, &a, kind("char"));
        refused::<Array2<f64>>(rt, &a, kind("float64"));
        refused::<Array2<u8, FortranLayout>>(rt, &a, ShapeError::BigarrayLayout { expected: "fortran_layout" });
        refused::<Array1<u8>>(rt, &a, ShapeError::Dimensions { expected: 1, found: 2 });
        refused::<Array3<u8>>(rt, &a, ShapeError::Dimensions { expected: 3, found: 2 });
        refused::<Boxed<u8>>(rt, &a, ShapeError::Payload { expected: "u8", found: None });
        // As a wrong declaration in OCaml would have it.
        let wrong: Root<Array1<f64>> = own::declared_as(a);
        assert_eq!(wrong.try_view(rt).map(|_| ()), Err(kind("float64")));
        assert_eq!(wrong.sub(rt, 0, 1).map(|_| ()), Err(kind("float64")));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wrong.as_cells(rt).len())).unwrap_err();
        assert_eq!(*panic.downcast::<String>().unwrap(), "a bigarray of kind int8_unsigned, not float64");
        let others = [
            int(3).into_any().root(rt),
            rt.string("a string that is longer than a bigarray is, and has bytes like one").root().into_any(),
            rt.boxed(3_u8).root().into_any(),
            ocaml::custom(rt).call(rt, (1,)).unwrap().root().into_any(),
            ocaml::succ(rt).into_any(),
            rt.block(0, &[&int(1).into_any(), &int(2).into_any()]).unwrap().root(),
        ];
        for other in &others {
            refused::<Array1<u8>>(rt, other, ShapeError::NoBigarray);
        }
    })
}

#[test]
fn names_in_ocaml() {
    fn name<T: OCamlType>() -> String {
        T::describe(&mut Definitions::new())
    }
    assert_eq!(
        name::<Array1<f64>>(),
        "(float, Stdlib.Bigarray.float64_elt, Stdlib.Bigarray.c_layout) Stdlib.Bigarray.Array1.t"
    );
    let fortran =
        "(char, Stdlib.Bigarray.int8_unsigned_elt, Stdlib.Bigarray.fortran_layout) Stdlib.Bigarray.Genarray.t";
    assert_eq!(name::<Genarray<Char, FortranLayout>>(), fortran);
}

/// A vector whose memory is counted.
fn counted() -> Vec<u8> {
    let mut vec = vec![7; Counting::SIZE];
    vec[1] = 8;
    vec
}

#[test]
fn memory_is_shared_and_freed_once() {
    alone(memory_is_shared_and_freed_once, || {
        attached(|rt| {
            let before = ALLOCATOR.live();
            let live = || ALLOCATOR.live() - before;
            let vec = counted();
            let place = vec.as_ptr();
            let whole = rt.bigarray_from_vec(vec, [2, Counting::SIZE / 2]).root();
            assert!(std::ptr::eq(whole.as_cells(rt).as_ptr().cast(), place), "not copied");
            assert_eq!(live(), 1);
            // Parts that Rust makes, that OCaml makes, and that are made of parts.
            let second = whole.sub(rt, 1, 1).unwrap().root();
            let row: Root<Array1<u8>> = whole.slice(rt, &[0]).unwrap().root();
            let any = whole.clone_ref(rt).into_any();
            let theirs = own::own_sub(rt).call(rt, (0, &any, 0, 1)).unwrap().root();
            let theirs: Root<Array2<u8>> = own::declared_as(theirs);
            let element: Root<Array0<u8>> = theirs.slice(rt, &[0, 1]).unwrap().root();
            let copy = own::own_copy(rt).call(rt, (&any,)).unwrap().root();
            assert!(own::own_equal(rt).call(rt, (&any, &copy)).unwrap().value().to_bool());
            drop((whole, any));
            rt.full_major().unwrap();
            assert_eq!(live(), 1);
            row.view(rt).set([1], 9);
            assert_eq!(theirs.view(rt).get([0, 1]), Some(9));
            assert_eq!(element.view(rt).get([]), Some(9));
            assert_eq!(second.view(rt).get([0, 0]), Some(7));
            drop((theirs, row, second));
            rt.full_major().unwrap();
            assert_eq!((live(), element.view(rt).get([])), (1, Some(9)));
            drop(element);
            rt.full_major().unwrap();
            assert_eq!(live(), 0);
            let copy: Root<Array2<u8>> = own::declared_as(copy);
            assert_eq!(copy.view(rt).get([0, 1]), Some(8));
        })
    })
}

#[test]
fn parts_of_bigarrays_of_ocaml() {
    attached(|rt| {
        let dims = ints(rt, &[10, 2]);
        let whole = own::own_create(rt).call(rt, (6, 1, &dims)).unwrap().root();
        let whole: Root<Array2<i32, FortranLayout>> = own::declared_as(whole);
        whole.view(rt).as_cells().iter().enumerate().for_each(|(i, x)| x.set(i as i32));
        let part = whole.sub(rt, 2, 1).unwrap().root();
        let column: Root<Array1<i32, FortranLayout>> = whole.slice(rt, &[2]).unwrap().root();
        let any = column.clone_ref(rt).into_any();
        drop(whole);
        for _ in 0..3 {
            rt.full_major().unwrap();
            rt.bigarray_from_vec(vec![-1_i32; 20], [20]);
        }
        assert_eq!(part.to_vec(rt), (10..20).collect::<Vec<i32>>());
        assert_eq!(column.view(rt).get([1]), Some(10));
        let again = own::own_sub(rt).call(rt, (1, &any, 4, 2)).unwrap().root();
        let again: Root<Array1<i32, FortranLayout>> = own::declared_as(again);
        drop((part, column, any));
        rt.full_major().unwrap();
        assert_eq!(again.to_vec(rt), [13, 14]);

        let bounds = |rt: &mut Runtime, first, len| again.sub(rt, first, len).map(|_| ()).unwrap_err();
        assert_eq!(bounds(rt, 0, 1), ShapeError::Bounds { index: 0, len: 2 });
        assert_eq!(bounds(rt, 2, 2), ShapeError::Bounds { index: 2, len: 2 });
        assert_eq!(bounds(rt, 2, usize::MAX), ShapeError::Bounds { index: 2, len: 2 });
        let slice = |rt: &mut Runtime, index: &[usize]| again.slice::<Dim<0>>(rt, index).map(|_| ());
        assert_eq!(slice(rt, &[2]), Ok(()));
        assert_eq!(slice(rt, &[3]), Err(ShapeError::Bounds { index: 3, len: 2 }));
        assert_eq!(slice(rt, &[]), Err(ShapeError::Dimensions { expected: 0, found: 1 }));
        assert_eq!(slice(rt, &[1, 1]), Err(ShapeError::Dimensions { expected: 2, found: 1 }));
        let none = again.slice::<Dim<0>>(rt, &[1]).unwrap().root();
        assert!(matches!(none.sub(rt, 1, 1), Err(ShapeError::Dimensions { expected: 1, found: 0 })));
    })
}

#[test]
fn mapped_files() {
    attached(|rt| {
        let path = std::env::temp_dir().join(format!("ocaml-boxroot-{}", std::process::id()));
        std::fs::write(&path, (0..40).collect::<Vec<u8>>()).unwrap();
        let name = path.to_str().unwrap();
        let aligned = own::own_map(rt).call(rt, (name, 8)).unwrap().root();
        let odd = own::own_map(rt).call(rt, (name, 1)).unwrap().root();
        std::fs::remove_file(&path).unwrap();
        let aligned: Root<Genarray<i32>> = own::declared_as(aligned);
        assert_eq!(aligned.view(rt).get([0]), Some(i32::from_le_bytes([8, 9, 10, 11])));
        let part = aligned.sub(rt, 3, 1).unwrap().root();
        drop(aligned);
        rt.full_major().unwrap();
        assert_eq!(part.to_vec(rt), [i32::from_le_bytes([20, 21, 22, 23])]);
        drop(part);
        let odd: Root<Genarray<i32>> = own::declared_as(odd);
        assert_eq!(odd.try_view(rt).map(|_| ()).unwrap_err(), ShapeError::Misaligned);
        rt.full_major().unwrap();
    })
}

#[test]
fn elements_are_used_with_the_lock_released() {
    attached(|rt| {
        let root = rt.bigarray_from_vec(vec![Int63::default(); 2], [2]).root();
        let view = root.view(rt);
        let any = root.clone_ref(rt).into_any();
        let writer = std::thread::spawn(move || {
            attached(|rt| {
                own::own_count(rt).call(rt, (&any, 300_000)).unwrap();
            })
        });
        // OCaml writes meanwhile, on another thread.
        let mut seen = 0;
        rt.release(|| {
            while seen < 300_000 {
                let (second, first) = (view.as_cells()[1].get().get(), view.as_cells()[0].get().get());
                assert!(second <= 300_000 && first <= 300_000 && seen <= second);
                seen = second;
            }
            writer.join().unwrap();
        });
        assert_eq!(view.get([1]).map(Int63::get), Some(300_000));
    });
    // A root lends them beyond the lock.
    let root = attached(|rt| rt.bigarray_from_vec(vec![1.5, 2.5], [2]).root());
    let elements = attached(|rt| root.as_cells(rt));
    attached(|rt| rt.full_major().unwrap());
    std::thread::scope(|s| s.spawn(|| elements[0].set(5.5)).join().unwrap());
    assert_eq!(elements[0].get() + elements[1].get(), 8.0);
}

#[test]
fn memory_is_counted() {
    alone(memory_is_counted, || {
        attached(|rt| {
            let before = ALLOCATOR.live();
            let mut most = 0;
            for _ in 0..5_000 {
                rt.bigarray_from_vec(counted(), [Counting::SIZE]);
                most = most.max(ALLOCATOR.live() - before);
            }
            assert!(most < 2000, "{most} vectors at once");
            rt.full_major().unwrap();
            assert_eq!(ALLOCATOR.live(), before);
        })
    })
}

#[test]
fn domains_share_bigarrays() {
    alone(domains_share_bigarrays, || {
        attached(|rt| {
            let before = ALLOCATOR.live();
            let whole = std::sync::Arc::new(rt.bigarray_from_vec(counted(), [Counting::SIZE]).root());
            let dims = ints(rt, &[64]);
            let theirs = own::own_create(rt).call(rt, (3, 0, &dims)).unwrap().root();
            let theirs: std::sync::Arc<Root<Genarray<u8>>> = std::sync::Arc::new(own::declared_as(theirs));
            let mut domains = Vec::new();
            for d in 0..3 {
                let (whole, theirs) = (whole.clone(), theirs.clone());
                domains.extend(rt.spawn_domain(move |rt| {
                    for i in 0..300 {
                        let part = whole.sub(rt, i, 100).unwrap().root();
                        part.view(rt).set([0], d);
                        let part = theirs.sub(rt, i % 60, 4).unwrap();
                        part.view(part.rt()).fill(d);
                        let rt = part.into_rt();
                        if i % 100 == 0 {
                            rt.full_major().unwrap();
                        }
                    }
                }));
            }
            domains.into_iter().for_each(|d| d.join(rt).unwrap());
            assert!(whole.view(rt).get([0]).is_some_and(|x| x < 8));
            drop((whole, theirs));
            rt.full_major().unwrap();
            rt.full_major().unwrap();
            assert_eq!(ALLOCATOR.live(), before);
        })
    })
}

#[test]
fn bytes_are_read_in_place() {
    attached(|rt| {
        let make = own::own_bytes(rt);
        let bytes = make.call(rt, ("zwölf",)).unwrap().root();
        let v = bytes.get(rt);
        assert_eq!((v.as_cells(rt).len(), v.to_utf8(rt).unwrap()), (6, "zwölf".to_owned()));
        v.as_cells(rt)[2].set(b'\xff');
        assert_eq!(v.to_utf8(rt).unwrap_err().utf8_error().valid_up_to(), 2);
        let empty = make.call(rt, ("",)).unwrap();
        assert_eq!(empty.value().as_cells(empty.rt()).len(), 0);
    });
}

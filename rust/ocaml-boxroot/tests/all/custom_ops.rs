// SPDX-License-Identifier: MIT
//! What OCaml's polymorphic operations do with Rust values, and marshalling.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached, own};
use std::cmp::Ordering;

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Version(u32, u32);
impl CustomOps for Version {
    const COMPARE: Option<fn(&Self, &Self) -> Ordering> = Some(Ord::cmp);
    const HASH: Option<fn(&Self) -> u32> = Some(|v| v.0 ^ v.1.rotate_left(16));
    const MARSHAL: Option<Marshal<Self>> = Some(Marshal {
        name: c"ocaml-boxroot.test.version.1",
        write: |v, bytes| {
            bytes.extend(v.0.to_le_bytes());
            bytes.extend(v.1.to_le_bytes());
        },
        read: |bytes| match *bytes {
            [a, b, c, d, e, f, g, h] => {
                let (x, y) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                (x != 13).then_some(Version(x, y))
            }
            _ => None,
        },
    });
    fn memory(&self) -> usize {
        self.0 as usize
    }
}
struct Hashed(u32);
impl CustomOps for Hashed {
    const HASH: Option<fn(&Self) -> u32> = Some(|v| v.0);
}

#[test]
fn polymorphic_operations() {
    attached(|rt| {
        let version = |rt: &mut Runtime, a, b| rt.boxed_custom(Version(a, b)).root().into_any();
        let (a, b, c) = (version(rt, 5, 3), version(rt, 5, 4), version(rt, 5, 4));
        let compare = own::own_compare(rt);
        let mut order = |a: &Root, b: &Root| compare.call(rt, (a, b)).unwrap().value().to_isize();
        assert_eq!((order(&a, &b), order(&b, &a), order(&b, &c), order(&a, &a)), (-1, 1, 0, 0));
        assert!(own::own_equal(rt).call(rt, (&b, &c)).unwrap().value().to_bool());
        assert!(!own::own_equal(rt).call(rt, (&a, &c)).unwrap().value().to_bool());
        let hash = own::own_hash(rt);
        let mut hash = |v: &Root| hash.call(rt, (v,)).unwrap().value().to_isize();
        assert_eq!(hash(&b), hash(&c));
        assert_ne!(hash(&a), hash(&b));

        // Sorted by OCaml, in the middle of its collections.
        let mut list = rt.build(0, |n| n.nil::<Any>()).root();
        for i in 0..1000_u32 {
            let v = version(rt, i * 7919 % 1000, i);
            list.set(rt.cons(&v, &list.clone_ref(rt)));
        }
        let sorted = own::own_sort(rt).call(rt, (&list,)).unwrap();
        let versions = sorted.value().iter().map(|v| v.downcast::<Boxed<Version>>().unwrap().payload(sorted.rt()).0);
        assert!(versions.eq(0..1000));

        // Without operations: as OCaml does with abstract values.
        let plain = rt.boxed(1_u64).root().into_any();
        let other = rt.boxed(1_u64).root().into_any();
        let error = own::own_equal(rt).call(rt, (&plain, &other)).unwrap_err();
        assert_eq!(error.to_string(), "Invalid_argument(\"compare: abstract value\")");
        assert_eq!(own::own_hash(rt).call(rt, (&plain,)).unwrap().value().to_isize(), {
            own::own_hash(rt).call(rt, (&other,)).unwrap().value().to_isize()
        });
        let error = own::own_marshal(rt).call(rt, (&plain,)).unwrap_err();
        assert_eq!(error.to_string(), "Invalid_argument(\"output_value: abstract value (Custom)\")");
        let hashed = rt.boxed_custom(Hashed(3)).root().into_any();
        assert!(own::own_equal(rt).call(rt, (&hashed, &other)).is_err());
        // Of different types: an order, both ways.
        let compare = own::own_compare(rt);
        let mut order = |a: &Root, b: &Root| compare.call(rt, (a, b)).unwrap().value().to_isize();
        assert_eq!(order(&a, &plain), -order(&plain, &a));
        let reverse = rt.boxed_custom(Reverse(1)).root().into_any();
        let mut order = |a: &Root, b: &Root| compare.call(rt, (a, b)).unwrap().value().to_isize();
        assert_eq!(order(&a, &reverse).abs(), 1);
        assert_eq!(order(&a, &reverse), -order(&reverse, &a));
    })
}
struct Reverse(u32);
impl CustomOps for Reverse {
    const COMPARE: Option<fn(&Self, &Self) -> Ordering> = Some(|a, b| b.0.cmp(&a.0));
}

#[test]
fn marshalling() {
    attached(|rt| {
        rt.register_marshalled::<Version>();
        let v = rt.boxed_custom(Version(5, 4)).root().into_any();
        let pair = rt.pair(&v, &v).into_any().root();
        let copy = own::own_copy(rt).call(rt, (&pair,)).unwrap().root();
        drop((pair, v));
        rt.full_major().unwrap();
        let (a, b) = (copy.get(rt).field(0).unwrap(), copy.get(rt).field(1).unwrap());
        assert!(a.ptr_eq(b), "sharing is kept");
        assert_eq!(*a.downcast::<Boxed<Version>>().unwrap().payload(rt), Version(5, 4));

        let refused = rt.boxed_custom(Version(13, 0)).root().into_any();
        let text = own::own_marshal(rt).call(rt, (&refused,)).unwrap().root();
        let unmarshal = own::own_unmarshal(rt);
        for _ in 0..100 {
            let error = unmarshal.call(rt, (&text,)).unwrap_err();
            assert!(error.to_string().contains("a Rust value that cannot be read"), "{error}");
        }
        // In the major heap, where a block whose data are not read yet is swept afterwards.
        let many = ocaml::list(rt).call(rt, (5000,)).unwrap().into_any().root();
        let large = rt.pair(&many, &refused).into_any().root();
        let large = own::own_marshal(rt).call(rt, (&large,)).unwrap().root();
        for _ in 0..10 {
            unmarshal.call(rt, (&large,)).unwrap_err();
            rt.full_major().unwrap();
        }
        {
            // A length that cannot be: memory is not touched.
            let mut bytes = text.get(rt).as_bytes().to_vec();
            let at = bytes.len() - 16;
            bytes[at] = 0x80;
            let text = rt.string(&bytes).root();
            let error = unmarshal.call(rt, (&text,)).unwrap_err();
            assert!(error.to_string().contains("a Rust value of impossible size"), "{error}");
        }
        rt.full_major().unwrap();
    })
}

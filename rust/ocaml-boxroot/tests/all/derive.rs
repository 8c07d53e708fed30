// SPDX-License-Identifier: MIT
//! Derived conversions. The definitions are compiled by ocamlopt, with values written in OCaml; Rust reads these, and
//! makes the same.
#![deny(unused, clippy::all, clippy::undocumented_unsafe_blocks)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing::batch::Batch;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::fmt::Debug;

/// A word and how often it occurs. "Quoted", (* not closed.
///
/// A second paragraph: {|, {id|, {b bold}, 'c', '"', \\, don't.
#[allow(non_snake_case)]
#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Entry {
    /// The word; "open
    word: String,
    #[ocaml(mutable)]
    count: i64,
    r#type: Option<Box<Entry>>,
    #[ocaml(rename = "renamed")]
    Upper: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(unboxed)]
struct Meters(f64);

#[derive(Debug, Clone, Copy, PartialEq, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(unboxed)]
struct Same<A> {
    it: A,
}

type Real = f64;

/// Flat: all of its fields are floats.
#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Flat {
    x: f32,
    y: Real,
    #[ocaml(mutable)]
    z: Meters,
    w: Same<Box<f64>>,
}

/// Not flat, even if `A` is a float.
#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Pair<A, B> {
    a: A,
    b: Vec<B>,
    c: A,
}

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Point(f64, f64);

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Nothing;

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct One((i32, String));

/// A tree.
#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(rename = "tree")]
enum Tree<A> {
    /// No subtrees.
    Leaf,
    Node(Box<Tree<A>>, A, Box<Self>),
    Named {
        name: String,
        r#val: A,
        x: f64,
    },
    Other,
    #[ocaml(rename = "Floats")]
    Floating {
        a: f64,
        b: f64,
    },
    Tuple((i32, i32)),
    Forest(Forest<A>),
}

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Forest<A> {
    trees: List<Tree<A>>,
}

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(polymorphic)]
enum Colour {
    Red,
    #[cfg(any())]
    Green,
    Grey(u8),
    Rgb(u8, u8, u8),
    Mixed((i32, i32)),
    Both(Box<Colour>, Box<Colour>),
}

#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
enum Never {}

/// Borrowed from OCaml's heap.
#[derive(Debug, Clone, PartialEq, OCamlType, ToOCaml, FromOCaml)]
struct Borrowed<'x, const N: usize> {
    text: &'x str,
    bytes: &'x [u8],
    numbers: [i32; N],
}

/// With OCaml's values in it.
#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
struct Handler<A> {
    name: String,
    run: Root<Fun<(A, Int), Str>>,
    state: Root<A>,
}

/// Only described.
#[derive(Debug, OCamlType)]
#[allow(dead_code)]
struct View<A> {
    key: Str,
    values: List<(A, Float)>,
}

#[test]
fn definitions_and_values() {
    let mut batch = Batch::default();
    let inner = Entry { word: "b".into(), count: -1, r#type: None, Upper: false };
    let entry = Entry { word: "a".into(), count: (1 << 62) - 1, r#type: Some(Box::new(inner)), Upper: true };
    batch.add(
        entry.clone(),
        "{ word = \"a\"; count = max_int; renamed = true; type_ = Some { word = \"b\"; count = -1; type_ = None; \
         renamed = false } }",
    );
    batch.add(vec![Meters(1.5), Meters(-0.0)], "[| Meters 1.5; Meters (-0.) |]");
    batch.add(Some(Meters(1.5)), "Some (Meters 1.5)");
    batch.add(vec![Same { it: 2.5 }], "[| { it = 2.5 } |]");
    batch.add(vec![Same { it: "x".to_owned() }], "[| { it = \"x\" } |]");
    let flat = Flat { x: 0.5, y: 1e300, z: Meters(3.0), w: Same { it: Box::new(4.0) } };
    batch.add(flat.clone(), "{ x = 0.5; y = 1e300; z = Meters 3.; w = { it = 4. } }");
    batch.add(Pair { a: 1.0, b: vec![2.0], c: 3.0 }, "{ a = 1.; b = [| 2. |]; c = 3. }");
    batch.add(
        Pair { a: Meters(1.0), b: vec![Some("x".to_owned())], c: Meters(3.0) },
        "{ a = Meters 1.; b = [| Some \"x\" |]; c = Meters 3. }",
    );
    batch.add(Point(1.0, 2.0), "Point (1., 2.)");
    batch.add((Nothing, Nothing), "Nothing, Nothing");
    batch.add(One((1, "x".into())), "One (1, \"x\")");
    let leaf = || Box::new(Tree::Leaf);
    let tree = Tree::Node(leaf(), 1, Box::new(Tree::Node(leaf(), 2, Box::new(Tree::Other))));
    batch.add(tree.clone(), "Node (Leaf, 1, Node (Leaf, 2, Other))");
    batch.add(
        Tree::Named { name: "n".into(), val: Some(entry), x: 1.0 },
        "Named { name = \"n\"; val_ = Some { word = \"a\"; count = max_int; renamed = true; type_ = Some { word = \
         \"b\"; count = -1; type_ = None; renamed = false } }; x = 1. }",
    );
    batch.add(Tree::<f64>::Floating { a: 1.0, b: 2.0 }, "Floats { a = 1.; b = 2. }");
    batch.add(Tree::<bool>::Tuple((1, 2)), "Tuple (1, 2)");
    batch.add(
        Tree::Forest(Forest { trees: List(vec![tree, Tree::Leaf]) }),
        "Forest { trees = [ Node (Leaf, 1, Node (Leaf, 2, Other)); Leaf ] }",
    );
    let colours = || vec![Colour::Red, Colour::Grey(7), Colour::Rgb(1, 2, 3), Colour::Mixed((4, 5))];
    batch.add(colours(), "[| `Red; `Grey 7; `Rgb (1, 2, 3); `Mixed (4, 5) |]");
    batch.add(Colour::Both(Box::new(Colour::Red), Box::new(Colour::Grey(0))), "`Both (`Red, `Grey 0)");
    batch.add(None::<Never>, "None");
    <Handler<Bool> as OCamlType>::describe(&mut batch.definitions);
    <View<Int> as OCamlType>::describe(&mut batch.definitions);
    <Borrowed<'_, 2> as OCamlType>::describe(&mut batch.definitions);
    batch.run(env!("CARGO_TARGET_TMPDIR").as_ref(), "definitions_and_values").unwrap();
}

#[test]
fn groups_of_definitions() {
    let mut definitions = Definitions::new();
    assert_eq!(<Tree<Pair<Int, Flat>> as OCamlType>::describe(&mut definitions), "(int, flat) pair tree");
    let names = |group: &Vec<&Definition>| group.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
    let groups: Vec<Vec<String>> = definitions.groups().iter().map(names).collect();
    let at = |name: &str| groups.iter().position(|group| group.iter().any(|n| n == name)).unwrap();
    assert_eq!(groups[at("tree")], ["tree", "forest"]);
    assert!(at("meters") < at("flat") && at("same") < at("flat"));
    assert_eq!(groups.len(), 5);
}

#[test]
fn borrowed_values() {
    attached(|rt| {
        let ours = Borrowed { text: "grüße", bytes: &[0xff, 0], numbers: [1, 2, 3] };
        let v = rt.alloc(&ours).unwrap();
        let read: Borrowed<'_, 3> = v.to_rust().unwrap();
        assert_eq!(read, ours);
        let start = v.value().raw();
        assert_ne!(read.text.as_ptr() as isize, start);
        let other = ocaml::assume::<Borrowed<'static, 2>>(v.value().into_any());
        let length = ShapeError::Length { expected: 2, found: 3 };
        assert_eq!(other.to_rust::<Borrowed<'_, 2>>(v.rt()), Err(ConvertError::Shape(length)));
    })
}

#[test]
fn structures_that_hold_roots() {
    attached(|rt| {
        let greet = ocaml::greet(rt);
        let name = rt.string("state").root();
        let handler = Handler { name: "h".into(), run: greet, state: name };
        let v = rt.alloc(&handler).unwrap().root();
        drop(handler);
        rt.full_major().unwrap();
        let read: Handler<Str> = v.to_rust(rt).unwrap();
        let answer = read.run.call(rt, (&read.state, 3)).unwrap();
        assert_eq!(answer.to_rust(), Ok("state 3"));
        assert_eq!(read.name, "h");
    })
}

#[test]
fn values_of_other_shapes_are_errors() {
    fn not<R: for<'a> FromOCaml<'a> + Debug>(rt: &mut Runtime, other: impl ToOCaml) {
        let v = rt.alloc(&other).unwrap();
        let read = ocaml::assume::<R::Type>(v.value().into_any()).to_rust::<R>(v.rt());
        assert!(matches!(read, Err(ConvertError::Shape(ShapeError::Not(_)))), "{read:?}");
    }
    attached(|rt| {
        not::<Entry>(rt, 1);
        not::<Entry>(rt, ("a", 1));
        not::<Flat>(rt, (1.0, 2.0, 3.0, 4.0));
        not::<Flat>(rt, vec![1.0; 3]);
        not::<Point>(rt, vec![1.0; 2]);
        not::<Nothing>(rt, 1);
        not::<Tree<i32>>(rt, 2);
        not::<Tree<i32>>(rt, -1);
        not::<Tree<i32>>(rt, ((), 1));
        not::<Colour>(rt, 1);
        not::<Colour>(rt, (1, 1));
        not::<Never>(rt, 0);
        let v = rt.alloc(&(1, 2.0)).unwrap();
        assert!(ocaml::assume::<Point>(v.value().into_any()).to_rust::<Point>(v.rt()).is_err(), "1 is no float");
        let flat = rt.alloc(&[0.1; 4]).unwrap();
        let read = ocaml::assume::<Flat>(flat.value().into_any()).to_rust::<Flat>(flat.rt());
        assert_eq!(read, Err(ConvertError::Range { target: "f32" }));
        assert!(matches!(rt.alloc(&One((1, "x".into()))).map(|v| v.to_rust::<One>()), Ok(Ok(One((1, _))))));
        let big = Pair { a: u64::MAX, b: vec![()], c: 0 };
        assert!(matches!(rt.alloc(&big), Err(ConvertError::Range { .. })));
    })
}

// SPDX-License-Identifier: MIT
//! Random values of many types: what ocamlopt builds from their text is what Rust makes of them, byte for byte when
//! marshalled, and what Rust reads. `SEED=N` repeats them, `ROUNDS=N` says how many of each type. They grow from round
//! to round, and the first difference is reported, so that it is about a small value.

use ocaml_boxroot::*;
use ocaml_boxroot_testing::batch::Batch;
use ocaml_boxroot_testing::random;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::rc::Rc;

struct Mix(u64);
impl Mix {
    fn word(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }
    fn one<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// A type with random values, which are about as large as `size`, and have text in OCaml.
trait Random: Debug {
    fn random(mix: &mut Mix, size: usize) -> Self;
    fn text(&self) -> String;
}

macro_rules! ints {
    ($($t:ident $($edge:expr),*;)*) => {$(
        impl Random for $t {
            fn random(mix: &mut Mix, size: usize) -> Self {
                match mix.below(4) {
                    0 => mix.one(&[$($edge),*]),
                    1 => (mix.word() >> 2) as $t,
                    _ => mix.below(size + 2) as $t,
                }
            }
            fn text(&self) -> String {
                // OCaml has no literal for the least number.
                if *self as i128 == -(1 << 62) { "min_int".into() } else { format!("({self})") }
            }
        }
    )*}
}
ints! {
    i8 i8::MIN, -1, i8::MAX;
    u8 0, u8::MAX;
    i16 i16::MIN, i16::MAX;
    u16 0, u16::MAX;
    i32 i32::MIN, -1, i32::MAX;
    u32 0, u32::MAX;
    i64 -(1 << 62), (1 << 62) - 1, -1, 0;
    u64 0, (1 << 62) - 1;
    isize -(1 << 62), (1 << 62) - 1;
    usize 0, (1 << 62) - 1;
    i128 -(1 << 62), (1 << 62) - 1;
}

macro_rules! boxed_ints {
    ($($t:ident $i:ident $suffix:literal;)*) => {$(
        impl Random for $t {
            fn random(mix: &mut Mix, _: usize) -> Self {
                let any = mix.word() as $i;
                $t(mix.one(&[$i::MIN, $i::MAX, 0, -1, any, any]))
            }
            fn text(&self) -> String {
                format!("({}{})", self.0, $suffix)
            }
        }
    )*}
}
boxed_ints! { Int32 i32 "l"; Int64 i64 "L"; Nativeint isize "n"; }

impl Random for f64 {
    fn random(mix: &mut Mix, size: usize) -> Self {
        let bits = f64::from_bits(mix.word());
        let small = mix.below(size + 1) as f64 / 4.0;
        mix.one(&[bits, small, -small, 0.0, -0.0, f64::NAN, f64::INFINITY, f64::MAX, 5e-324])
    }
    fn text(&self) -> String {
        format!("(Int64.float_of_bits 0x{:x}L)", self.to_bits())
    }
}
impl Random for f32 {
    fn random(mix: &mut Mix, size: usize) -> Self {
        let (small, any) = (mix.below(size + 1) as f32 / 4.0, f32::from_bits(mix.word() as u32));
        // What a NaN carries does not survive the way through the processor's conversions.
        mix.one(&[small, -small, f32::MAX, f32::MIN_POSITIVE, if any.is_nan() { 1.0 } else { any }])
    }
    fn text(&self) -> String {
        f64::from(*self).text()
    }
}
impl Random for bool {
    fn random(mix: &mut Mix, _: usize) -> Self {
        mix.below(2) == 1
    }
    fn text(&self) -> String {
        self.to_string()
    }
}
impl Random for () {
    fn random(_: &mut Mix, _: usize) -> Self {}
    fn text(&self) -> String {
        "()".into()
    }
}
impl Random for char {
    fn random(mix: &mut Mix, _: usize) -> Self {
        let any = char::from_u32(mix.below(0x110000) as u32).unwrap_or('x');
        mix.one(&['\0', 'a', '\u{d7ff}', '\u{e000}', char::MAX, any])
    }
    fn text(&self) -> String {
        format!("(Uchar.of_int 0x{:x})", *self as u32)
    }
}
impl Random for Char {
    fn random(mix: &mut Mix, _: usize) -> Self {
        Char(mix.word() as u8)
    }
    fn text(&self) -> String {
        format!("'\\{:03}'", self.0)
    }
}

fn bytes(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|b| format!("\\{b:03}")).collect();
    format!("\"{}\"", digits.concat())
}
fn random_bytes(mix: &mut Mix, size: usize) -> Vec<u8> {
    let any = mix.below(size * 4 + 1);
    // Around the borders of words, and what is too large for the minor heap.
    let len = mix.one(&[0, 7, 8, 9, any, any, if size > 12 { 2100 } else { 1 }]);
    (0..len).map(|_| mix.word() as u8).collect()
}
impl Random for String {
    fn random(mix: &mut Mix, size: usize) -> Self {
        String::from_utf8_lossy(&random_bytes(mix, size)).into_owned()
    }
    fn text(&self) -> String {
        bytes(self.as_bytes())
    }
}
impl Random for Vec<u8> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        random_bytes(mix, size)
    }
    fn text(&self) -> String {
        bytes(self)
    }
}
impl Random for Bytes {
    fn random(mix: &mut Mix, size: usize) -> Self {
        Bytes(random_bytes(mix, size))
    }
    fn text(&self) -> String {
        format!("(Bytes.of_string {})", bytes(&self.0))
    }
}

fn items<T: Random>(mix: &mut Mix, size: usize) -> Vec<T> {
    let any = mix.below(size + 1);
    let long = if size > 12 && mix.below(8) == 0 { 300 } else { 2 };
    let len = mix.one(&[0, 1, any, any, any, long]);
    (0..len).map(|_| T::random(mix, if len > 20 { 1 } else { size / 2 })).collect()
}
fn texts<'t, T: Random + 't>(items: impl IntoIterator<Item = &'t T>) -> String {
    items.into_iter().map(T::text).collect::<Vec<_>>().join("; ")
}

/// Not `u8`.
trait Item: Random {}
macro_rules! item {
    ($(($($generics:tt)*) $t:ty;)*) => {$(impl<$($generics)*> Item for $t {})*}
}
item! {
    () (); () f32; () f64; () String; () Metres; () Message;
    (T: Random) Option<T>; (T: Random) Box<T>; (T: Random) Rc<T>; (T: Item) Vec<T>; (T: Random) Tree<T>;
    (A: Random, B: Random) Record<A, B>;
}
impl<T: Item> Random for Vec<T> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        items(mix, size)
    }
    fn text(&self) -> String {
        format!("[| {} |]", texts(self))
    }
}
impl<T: Item> Random for VecDeque<T> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        items(mix, size).into()
    }
    fn text(&self) -> String {
        format!("[| {} |]", texts(self))
    }
}
impl<T: Item> Random for [T; 3] {
    fn random(mix: &mut Mix, size: usize) -> Self {
        std::array::from_fn(|_| T::random(mix, size / 2))
    }
    fn text(&self) -> String {
        format!("[| {} |]", texts(self))
    }
}
impl<T: Random> Random for List<T> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        List(items(mix, size))
    }
    fn text(&self) -> String {
        format!("[ {} ]", texts(&self.0))
    }
}
impl Random for FloatArray {
    fn random(mix: &mut Mix, size: usize) -> Self {
        FloatArray(items(mix, size))
    }
    fn text(&self) -> String {
        format!("(Float.Array.of_list [ {} ])", texts(&self.0))
    }
}
impl<T: Random> Random for Option<T> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        (mix.below(3) > 0).then(|| T::random(mix, size / 2))
    }
    fn text(&self) -> String {
        self.as_ref().map_or("None".into(), |x| format!("(Some {})", x.text()))
    }
}
impl<T: Random, E: Random> Random for Result<T, E> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        if mix.below(2) == 0 {
            Ok(T::random(mix, size / 2))
        } else {
            Err(E::random(mix, size / 2))
        }
    }
    fn text(&self) -> String {
        match self {
            Ok(x) => format!("(Ok {})", x.text()),
            Err(e) => format!("(Error {})", e.text()),
        }
    }
}

macro_rules! pointers {
    ($($p:ident)*) => {$(
        impl<T: Random> Random for $p<T> {
            fn random(mix: &mut Mix, size: usize) -> Self {
                $p::new(T::random(mix, size))
            }
            fn text(&self) -> String {
                (**self).text()
            }
        }
    )*}
}
pointers! { Box Rc }

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Random),+> Random for ($($t,)+) {
            fn random(mix: &mut Mix, size: usize) -> Self {
                ($($t::random(mix, size / 2),)+)
            }
            fn text(&self) -> String {
                format!("({})", [$(self.$i.text()),+].join(", "))
            }
        }
    )*}
}
tuples! { (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3, E 4) }

#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
struct Record<A, B> {
    first: A,
    #[ocaml(mutable)]
    second: List<B>,
    third: f64,
}
impl<A: Random, B: Random> Random for Record<A, B> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        Record { first: A::random(mix, size / 2), second: List::random(mix, size / 2), third: f64::random(mix, size) }
    }
    fn text(&self) -> String {
        format!("{{ first = {}; second = {}; third = {} }}", self.first.text(), self.second.text(), self.third.text())
    }
}

#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(unboxed)]
struct Metres(f64);
impl Random for Metres {
    fn random(mix: &mut Mix, size: usize) -> Self {
        Metres(f64::random(mix, size))
    }
    fn text(&self) -> String {
        format!("(Metres {})", self.0.text())
    }
}

#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
struct Flat {
    x: f64,
    y: Metres,
    z: f32,
}
impl Random for Flat {
    fn random(mix: &mut Mix, size: usize) -> Self {
        Flat { x: f64::random(mix, size), y: Metres::random(mix, size), z: f32::random(mix, size) }
    }
    fn text(&self) -> String {
        format!("{{ x = {}; y = {}; z = {} }}", self.x.text(), self.y.text(), self.z.text())
    }
}

#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
enum Tree<A> {
    Leaf,
    Fork(Box<Tree<A>>, A, Box<Tree<A>>),
    Labelled { label: String, weight: f64, below: Box<Tree<A>> },
    Empty,
    Forest(Forest<A>),
}
#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
struct Forest<A>(Vec<Tree<A>>);
impl<A: Random> Random for Tree<A> {
    fn random(mix: &mut Mix, size: usize) -> Self {
        let part = |mix: &mut Mix| Box::new(Tree::random(mix, size / 2));
        match mix.below(if size == 0 { 2 } else { 8 }) {
            0 => Tree::Leaf,
            1 => Tree::Empty,
            2 => {
                let (label, weight) = (String::random(mix, size), f64::random(mix, size));
                Tree::Labelled { label, weight, below: part(mix) }
            }
            3 => Tree::Forest(Forest((0..mix.below(4)).map(|_| Tree::random(mix, size / 2)).collect())),
            _ => Tree::Fork(part(mix), A::random(mix, size / 2), part(mix)),
        }
    }
    fn text(&self) -> String {
        match self {
            Tree::Leaf => "Leaf".into(),
            Tree::Empty => "Empty".into(),
            Tree::Fork(a, x, b) => format!("(Fork ({}, {}, {}))", a.text(), x.text(), b.text()),
            Tree::Labelled { label, weight, below } => format!(
                "(Labelled {{ label = {}; weight = {}; below = {} }})",
                label.text(),
                weight.text(),
                below.text()
            ),
            Tree::Forest(Forest(trees)) => format!("(Forest (Forest [| {} |]))", texts(trees)),
        }
    }
}

#[derive(Debug, OCamlType, ToOCaml, FromOCaml)]
#[ocaml(polymorphic)]
enum Message {
    Quit,
    Key(char),
    Moved(i32, f64),
    Nested(Option<Box<Message>>),
}
impl Random for Message {
    fn random(mix: &mut Mix, size: usize) -> Self {
        match mix.below(4) {
            0 => Message::Quit,
            1 => Message::Key(char::random(mix, size)),
            2 => Message::Moved(i32::random(mix, size), f64::random(mix, size)),
            _ => Message::Nested((size > 0).then(|| Box::random(mix, size / 2))),
        }
    }
    fn text(&self) -> String {
        match self {
            Message::Quit => "`Quit".into(),
            Message::Key(c) => format!("(`Key {})", c.text()),
            Message::Moved(x, y) => format!("(`Moved ({}, {}))", x.text(), y.text()),
            Message::Nested(m) => format!("(`Nested {})", m.text()),
        }
    }
}

#[test]
fn random_values() {
    let seed = random::seed();
    println!("SEED={seed}");
    let mut mix = Mix(seed);
    let mut batch = Batch::default();
    for round in 0..random::number("ROUNDS").unwrap_or(12) {
        let mut add = Add { batch: &mut batch, mix: &mut mix, size: round as usize * 3 / 2 };
        add.one::<(i8, u8, i16, u16, i32)>();
        add.one::<(u32, i64, u64)>();
        add.one::<(isize, usize, i128)>();
        add.one::<(Int32, Int64, Nativeint)>();
        add.one::<(bool, (), Char, char, f64)>();
        add.one::<Vec<f32>>();
        add.one::<(String, Vec<u8>, Bytes)>();
        add.one::<Vec<String>>();
        add.one::<List<(i64, f64)>>();
        add.one::<(FloatArray, Vec<f64>, [f64; 3])>();
        add.one::<Vec<Vec<Option<f64>>>>();
        add.one::<VecDeque<Box<f64>>>();
        add.one::<List<List<Char>>>();
        add.one::<Vec<()>>();
        add.one::<Option<Option<Result<i32, String>>>>();
        add.one::<[Rc<Int64>; 3]>();
        add.one::<Record<f64, u8>>();
        add.one::<Vec<Record<Metres, Record<String, f64>>>>();
        add.one::<Vec<Metres>>();
        add.one::<List<Flat>>();
        add.one::<Tree<i32>>();
        add.one::<Tree<Tree<f64>>>();
        add.one::<Vec<Tree<Message>>>();
        add.one::<Result<Message, Flat>>();
    }
    if let Err(error) = batch.run(env!("CARGO_TARGET_TMPDIR").as_ref(), "random_values") {
        panic!("run again with SEED={seed}: {error}");
    }
}

struct Add<'b> {
    batch: &'b mut Batch,
    mix: &'b mut Mix,
    size: usize,
}

impl Add<'_> {
    fn one<R>(&mut self)
    where
        R: Random + ToOCaml<Type: OCamlType> + for<'a> FromOCaml<'a> + 'static,
    {
        let r = R::random(self.mix, self.size);
        let text = r.text();
        self.batch.add(r, &text);
    }
}

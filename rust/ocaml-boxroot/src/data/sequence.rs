// SPDX-License-Identifier: MIT
//! Arrays and lists. Arrays of floats are flat, unless the compiler was configured otherwise.
use crate::convert::{total, Flat};
use crate::data::number::boxed_float;
use crate::value::{DOUBLE, DOUBLE_ARRAY};
use crate::{
    glue, AllocError, Any, Array, ConvertError, Element, Float, FloatArray, FromAny, FromOCaml, List, Nursery, Runtime,
    ShapeError, ToOCaml, Typed, Value, ValueCell, ValueGuard, ValueRef,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl<T> Value<'_, Array<T>> {
    /// The number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.header().map_or(0, |(_, size)| size)
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a, T> Value<'a, Array<T>> {
    /// Element `i`. An error if there is none, or the array is flat: then no value holds the float.
    #[inline]
    pub fn get(self, i: usize) -> Result<Value<'a, T>, ShapeError> {
        match self.header() {
            // SAFETY: TYPED: an array of so many elements.
            Some((0, len)) if i < len => Ok(unsafe { self.part(i) }),
            Some((0, len)) => Err(ShapeError::Bounds { index: i, len }),
            _ => Err(ShapeError::Opaque(DOUBLE_ARRAY)),
        }
    }
}

impl Value<'_, Array<Float>> {
    /// Float `i`, if it exists. A relaxed load: another domain may write it meanwhile.
    #[inline]
    pub fn float(self, i: usize) -> Option<f64> {
        match self.header() {
            // SAFETY: so many floats; LIVE.
            Some((DOUBLE_ARRAY, len)) if i < len => Some(unsafe { self.float_at(i) }),
            _ => Some(self.get(i).ok()?.to_f64()),
        }
    }
}

impl<T> ValueCell<Array<T>> {
    /// Calls `f` for each element, until an error, which is returned. The element is in a local root, so `f` may
    /// allocate, and assign the elements: it sees what is there when its turn comes. Floats in a flat array are boxed,
    /// one by one. Two local roots in all; to convert an array, [`to_rust`](ValueCell::to_rust) is faster.
    pub fn try_for_each<E>(
        &self,
        rt: &mut Runtime,
        mut f: impl FnMut(&mut Runtime, ValueRef<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        rt.frame(|rt, [array, mut element]| {
            // The place may be assigned meanwhile; the array is the one that is there now.
            let array = array.root_value(rt, self.get(rt));
            for i in 0..array.get(rt).len() {
                let v = array.get(rt);
                let place = if v.header().is_some_and(|(tag, _)| tag == DOUBLE_ARRAY) {
                    // SAFETY: TYPED: T is Float then; a flat array has so many floats. Others may write them, whole
                    // words at a time.
                    unsafe {
                        let x = v.float_at(i);
                        element.set(rt.float(x).cast())
                    }
                } else {
                    // SAFETY: TYPED: an array of so many elements of type T.
                    element.set_value(rt, unsafe { v.part(i) })
                };
                f(rt, place)?;
            }
            Ok(())
        })
    }
}

impl Nursery {
    /// A flat block of floats.
    pub(crate) fn floats(&self, floats: &[f64]) -> Result<Value<'_, Any>, AllocError> {
        if floats.is_empty() {
            // SAFETY: atoms are static.
            return Ok(unsafe { Value::from_raw(glue::obx_atom(0)) });
        }
        let block = self.alloc(floats.len(), DOUBLE_ARRAY)?;
        // SAFETY: a new block of so many words; complete afterwards.
        unsafe {
            block.fields.cast::<f64>().copy_from_nonoverlapping(floats.as_ptr(), floats.len());
            Ok(block.share())
        }
    }
}

/// Whether arrays of floats are flat.
const FLAT: bool = cfg!(flat_float_array);

fn array<'n, 's, R: ToOCaml + 's>(
    n: &'n Nursery,
    mut items: impl ExactSizeIterator<Item = &'s R> + Clone,
) -> Result<Value<'n, Array<R::Type>>, ConvertError> {
    let len = items.len();
    let all = items.clone();
    let Some(first) = items.next() else {
        // SAFETY: the empty array is static.
        return Ok(unsafe { Value::from_raw(glue::obx_atom(0)) });
    };
    let first = if FLAT && first.to_float().is_some() {
        None
    } else {
        // The first element decides, as in OCaml. It need not be known here that the type is `float`: a root may hold
        // one.
        let first = first.to_ocaml(n)?;
        (!FLAT || !matches!(first.header(), Some((DOUBLE, _)))).then_some(first)
    };
    let Some(first) = first else { return flat(n, len, all) };
    let row = n.row(0, len)?;
    let rest = items.map(|item| item.to_ocaml(n).map(|v| v.raw()));
    // SAFETY: `len` values of this nursery, which are elements.
    unsafe { row.fill(first.raw(), rest) }
}

fn words<'s, R: ToOCaml + 's>(items: impl ExactSizeIterator<Item = &'s R> + Clone) -> usize {
    // Larger blocks are not in the minor heap, nor what is made for their fields.
    if items.len() >= glue::PIECE {
        return 0;
    }
    match items.clone().next() {
        Some(first) if FLAT && first.to_float().is_some() => items.len() + 1,
        _ => items.len() + 1 + total(items, 0),
    }
}

fn flat<'n, 's, R: ToOCaml + 's>(
    n: &'n Nursery,
    len: usize,
    items: impl Iterator<Item = &'s R>,
) -> Result<Value<'n, Array<R::Type>>, ConvertError> {
    let block = n.unscanned(DOUBLE_ARRAY, len)?;
    for (i, item) in items.enumerate() {
        let x = match item.to_float() {
            Some(x) => x.number(),
            None => boxed_float(item.to_ocaml(n)?)?,
        };
        // SAFETY: the block has so many words. If this ends early, what is left is any words, in a block that is not
        // scanned.
        unsafe { block.write(i, x.to_bits()) }
    }
    // SAFETY: complete, and a flat array is one of the type that its elements have.
    Ok(unsafe { block.share() })
}

fn vec<'a, R: FromOCaml<'a>>(rt: &'a Runtime, v: Value<'a, Array<R::Type>>) -> Result<Vec<R>, ConvertError> {
    match v.header() {
        // SAFETY: so many fields, which are elements (TYPED).
        Some((0, len)) => collect(len, |i| R::from_ocaml(rt, unsafe { v.part(i) })),
        // SAFETY: so many floats; TYPED: elements of a flat array are of the type of its elements.
        Some((DOUBLE_ARRAY, len)) => collect(len, |i| R::from_float(rt, unsafe { Flat::new(v.float_at(i)) })),
        _ => Err(ShapeError::Not("an array").into()),
    }
}

/// Allocates once, which `Iterator::collect` does not where items can fail.
#[inline]
fn collect<R>(len: usize, item: impl Fn(usize) -> Result<R, ConvertError>) -> Result<Vec<R>, ConvertError> {
    let mut items = Vec::with_capacity(len);
    if core::mem::needs_drop::<R>() {
        for i in 0..len {
            items.push(item(i)?);
        }
        return Ok(items);
    }
    let start: *mut R = items.as_mut_ptr();
    for i in 0..len {
        let item = item(i)?;
        // SAFETY: the vector has room for so many. Those before an error need not be dropped.
        unsafe { start.add(i).write(item) }
    }
    // SAFETY: all of them were written.
    unsafe { items.set_len(len) }
    Ok(items)
}

macro_rules! arrays {
    ($([$($n:tt)*] $t:ty;)*) => {$(
        impl<T: Element + Typed, $($n)*> Typed for $t {
            type Type = Array<T::Type>;
        }
        impl<T, $($n)*> Element for $t {}
        impl<T: Element + ToOCaml, $($n)*> ToOCaml for $t {
            fn words(&self) -> usize {
                words(self.iter())
            }
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
                array(n, self.iter())
            }
        }
    )*}
}
arrays! {
    [] [T];
    [] Vec<T>;
    [] VecDeque<T>;
    [const N: usize] [T; N];
}

macro_rules! owned {
    ($([$($n:tt)*] $t:ty, $from:expr;)*) => {$(
        impl<'a, T: Element + FromOCaml<'a>, $($n)*> FromOCaml<'a> for $t {
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                let from: fn(Vec<T>) -> Result<Self, ConvertError> = $from;
                from(vec(rt, v)?)
            }
        }
        // SAFETY: the tag is tested; elements by T.
        unsafe impl<'a, T: Element + FromAny<'a>, $($n)*> FromAny<'a> for $t {}
    )*}
}
owned! {
    [] Vec<T>, Ok;
    [] VecDeque<T>, |v| Ok(v.into());
    [const N: usize] [T; N], |v| {
        let found = v.len();
        v.try_into().map_err(|_| ShapeError::Length { expected: N, found }.into())
    };
}

macro_rules! shared {
    ($($p:ident)*) => {$(
        impl<'a, T: Element + FromOCaml<'a>> FromOCaml<'a> for $p<[T]> {
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                vec(rt, v).map(Into::into)
            }
        }
    )*}
}
shared! { Box Rc Arc }

impl Value<'_, FloatArray> {
    /// The number of floats.
    #[inline]
    pub fn len(self) -> usize {
        self.header().map_or(0, |(_, size)| size)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Float `i`, if it exists. Another domain may write it meanwhile: a relaxed load.
    #[inline]
    pub fn get(self, i: usize) -> Option<f64> {
        // SAFETY: TYPED: so many floats; LIVE.
        (i < self.len()).then(|| unsafe { self.float_at(i) })
    }
}
impl ToOCaml for FloatArray {
    fn words(&self) -> usize {
        self.0.len() + 1
    }
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, FloatArray>, ConvertError> {
        // SAFETY: a flat array of floats.
        Ok(unsafe { n.floats(&self.0)?.cast() })
    }
}
impl<'a> FromOCaml<'a> for FloatArray {
    fn from_ocaml(_: &'a Runtime, v: Value<'a, FloatArray>) -> Result<Self, ConvertError> {
        match v.header() {
            // SAFETY: LIVE: a flat array has so many floats.
            Some((DOUBLE_ARRAY, len)) => Ok(FloatArray((0..len).map(|i| unsafe { v.float_at(i) }).collect())),
            Some((0, 0)) => Ok(FloatArray::default()),
            _ => Err(ShapeError::Not("a floatarray").into()),
        }
    }
}
// SAFETY: the tag is tested.
unsafe impl FromAny<'_> for FloatArray {}

// --- lists

/// The elements of a list, see [`Value::iter`].
#[derive(Clone, Debug)]
pub struct ListIter<'a, T> {
    rest: Value<'a, List<T>>,
}

impl<'a, T> Iterator for ListIter<'a, T> {
    type Item = Value<'a, T>;
    #[inline]
    fn next(&mut self) -> Option<Value<'a, T>> {
        let (head, tail) = self.rest.split_first()?;
        self.rest = tail;
        Some(head)
    }
}

impl<'a, T> Value<'a, List<T>> {
    /// Head and tail, if the list is not empty.
    #[inline]
    pub fn split_first(self) -> Option<(Value<'a, T>, Value<'a, List<T>>)> {
        // SAFETY: TYPED: a block of two fields, or an immediate.
        (self.raw() & 1 == 0).then(|| unsafe { (self.part(0), self.part(1)) })
    }

    /// The elements, for loops that do not need `&mut Runtime`.
    pub fn iter(self) -> ListIter<'a, T> {
        ListIter { rest: self }
    }
}

impl<T> ValueCell<List<T>> {
    /// Calls `f` for each element, until an error, which is returned. Element and rest are in two local roots, so `f`
    /// may allocate. Without allocation, [`iter`](Value::iter) needs none.
    ///
    /// ```
    /// # use ocaml_boxroot::{self as ocaml, prelude::*};
    /// fn run(rt: &mut Runtime, tasks: ValueRef<'_, ocaml::List<Fun<(Unit,), Unit>>>) -> Result<(), ocaml::Exception> {
    ///     tasks.try_for_each(rt, |rt, task| task.call(rt, ((),)).map(drop))
    /// }
    /// ```
    pub fn try_for_each<E>(
        &self,
        rt: &mut Runtime,
        mut f: impl FnMut(&mut Runtime, ValueRef<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        rt.frame(|rt, [mut element, mut rest]| {
            let mut list = rest.set_value(rt, self.get(rt));
            while let Some((head, tail)) = list.get(rt).split_first() {
                let place = element.set_value(rt, head);
                list = rest.set_value(rt, tail);
                f(rt, place)?;
            }
            Ok(())
        })
    }
}

impl Nursery {
    /// `[]`
    #[inline]
    pub fn nil<T>(&self) -> Value<'_, List<T>> {
        // SAFETY: an immediate.
        unsafe { Value::from_raw(1) }
    }

    /// `head :: tail`
    #[inline]
    pub fn cons<'n, T>(&'n self, head: Value<'n, T>, tail: Value<'n, List<T>>) -> Value<'n, List<T>> {
        self.try_cons(head, tail).unwrap_or_else(|e| e.panic())
    }

    /// `head :: tail`, or an error when memory is short.
    #[inline]
    pub fn try_cons<'n, T>(
        &'n self,
        head: Value<'n, T>,
        tail: Value<'n, List<T>>,
    ) -> Result<Value<'n, List<T>>, AllocError> {
        self.filled(0, [head.raw(), tail.raw()])
    }
}

impl Runtime {
    /// `head :: tail`
    #[inline]
    pub fn cons<T>(&mut self, head: ValueRef<'_, T>, tail: ValueRef<'_, List<T>>) -> ValueGuard<'_, List<T>> {
        self.build(3, |n| n.cons(head.get(n), tail.get(n)))
    }
}

impl Nursery {
    /// The list of these items, from the last to the first.
    pub fn list<'n, R: ToOCaml>(
        &'n self,
        items: impl IntoIterator<Item = R, IntoIter: DoubleEndedIterator>,
    ) -> Result<Value<'n, List<R::Type>>, ConvertError> {
        let mut list = self.nil();
        for item in items.into_iter().rev() {
            list = self.try_cons(item.to_ocaml(self)?, list)?;
        }
        Ok(list)
    }
}

impl<T: ToOCaml> ToOCaml for List<T> {
    fn words(&self) -> usize {
        total(self.0.iter(), 3)
    }
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, List<T::Type>>, ConvertError> {
        n.list(&self.0)
    }
}

impl<'a, T: FromOCaml<'a>> FromOCaml<'a> for List<T> {
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, List<T::Type>>) -> Result<Self, ConvertError> {
        let mut items = Vec::new();
        let mut rest = v;
        // A list may be a circle (`let rec l = 1 :: l`). So one rest is kept, and replaced whenever there are twice as
        // many items: in a circle, the list comes by it again.
        let (mut kept, mut next) = (v, 0);
        while rest.raw() & 1 == 0 {
            if items.len() == next {
                (kept, next) = (rest, (next * 2).max(16));
                items.reserve(next - items.len());
            }
            if rest.header() != Some((0, 2)) {
                return Err(ShapeError::Not("a list").into());
            }
            // SAFETY: the block has two fields; TYPED.
            let (head, tail) = unsafe { (rest.part(0), rest.part(1)) };
            items.push(T::from_ocaml(rt, head)?);
            rest = tail;
            if rest.ptr_eq(kept) {
                return Err(ShapeError::Not("a list that ends").into());
            }
        }
        match rest.raw() {
            1 => Ok(List(items)),
            _ => Err(ShapeError::Not("a list").into()),
        }
    }
}
// SAFETY: each cell is tested; elements by T.
unsafe impl<'a, T: FromAny<'a>> FromAny<'a> for List<T> where List<T>: Typed {}

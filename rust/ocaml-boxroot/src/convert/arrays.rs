// SPDX-License-Identifier: MIT
//! Arrays. Those of floats are flat, unless the compiler was configured otherwise.
use crate::convert::{floats, total, Flat};
use crate::kind::{DOUBLE, DOUBLE_ARRAY};
use crate::{
    glue, Array, ConvertError, Element, FromAny, FromOCaml, Nursery, Runtime, ShapeError, ToOCaml, Typed, Value,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;

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
        // As OCaml does: the first element decides. It need not be known here that the type is `float`, as for roots.
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
            None => floats::boxed(item.to_ocaml(n)?)?,
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

// SPDX-License-Identifier: MIT
//! Lists, from their end to their beginning, and back in a loop: no stack is needed.
use crate::convert::total;
use crate::{ConvertError, FromAny, FromOCaml, List, Nursery, Runtime, ShapeError, ToOCaml, Typed, Value};
use alloc::vec::Vec;

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
        // A list may be a circle (`let rec l = 1 :: l`): then the rest is, some time, the one kept here, which is
        // another one whenever there are twice as many items.
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
            if rest.same(kept) {
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

// SPDX-License-Identifier: MIT
use crate::{List, Runtime, Value, ValueCell, ValueRef};

/// The elements of a list, see [`Value::iter`].
#[derive(Clone, Debug)]
pub struct ListIter<'a, T> {
    rest: Value<'a, List<T>>,
}

impl<'a, T> Iterator for ListIter<'a, T> {
    type Item = Value<'a, T>;
    #[inline]
    fn next(&mut self) -> Option<Value<'a, T>> {
        let (head, tail) = self.rest.uncons()?;
        self.rest = tail;
        Some(head)
    }
}

impl<'a, T> Value<'a, List<T>> {
    /// Head and tail, if the list is not empty.
    #[inline]
    pub fn uncons(self) -> Option<(Value<'a, T>, Value<'a, List<T>>)> {
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
    /// # use ocaml_boxroot::*;
    /// fn run(rt: &mut Runtime, tasks: ValueRef<'_, List<Fun<(Unit,), Unit>>>) -> Result<(), Exception> {
    ///     tasks.try_for_each(rt, |rt, task| task.call(rt, ((),)).map(drop))
    /// }
    /// ```
    pub fn try_for_each<E>(
        &self,
        rt: &mut Runtime,
        mut f: impl FnMut(&mut Runtime, ValueRef<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        rt.frame(|rt, [mut element, mut rest]| {
            let mut list = rest.put(rt, self.get(rt));
            while let Some((head, tail)) = list.get(rt).uncons() {
                let place = element.put(rt, head);
                list = rest.put(rt, tail);
                f(rt, place)?;
            }
            Ok(())
        })
    }
}

// SPDX-License-Identifier: MIT
use crate::{
    bigarray, boxed, inline, Any, Bigarray, BigarrayElement, Boxed, Dimensions, Inline, Layout, ShapeError, Value,
};

/// Types whose values say at run time what they are: [`Boxed`], [`Inline`], [`Bigarray`].
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` do not say what they are",
    note = "only `Boxed`, `Inline` and bigarrays can be told from other values"
)]
pub trait Downcast: sealed::Downcast {}

mod sealed {
    use crate::{Any, ShapeError, Value};
    pub trait Downcast {
        fn check(v: Value<'_, Any>) -> Result<(), ShapeError>;
    }
}

impl<T: 'static> Downcast for Boxed<T> {}
impl<T: 'static> sealed::Downcast for Boxed<T> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        boxed::check::<T>(v)
    }
}

impl<T: 'static> Downcast for Inline<T> {}
impl<T: 'static> sealed::Downcast for Inline<T> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        inline::check::<T>(v)
    }
}

impl<E: BigarrayElement, L: Layout, D: Dimensions> Downcast for Bigarray<E, L, D> {}
impl<E: BigarrayElement, L: Layout, D: Dimensions> sealed::Downcast for Bigarray<E, L, D> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        bigarray::find::<E, L, D>(v).map(drop)
    }
}

impl<'a> Value<'a, Any> {
    /// The same value as one of type `T`, if it is one.
    #[inline]
    pub fn downcast<T: Downcast>(self) -> Result<Value<'a, T>, ShapeError> {
        T::check(self)?;
        // SAFETY: checked just now; neither changes its type.
        Ok(unsafe { self.cast() })
    }
}

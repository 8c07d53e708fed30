// SPDX-License-Identifier: MIT
//! References and owners: the same as what they refer to.
use crate::convert::Flat;
use crate::{ConvertError, Element, FromAny, FromOCaml, Nursery, Runtime, ToOCaml, Typed, Value};
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;

macro_rules! forward {
    ($(($($generics:tt)*) $t:ty, $of:ident;)*) => {$(
        impl<$($generics)*> Typed for $t where $of: Typed {
            type Type = $of::Type;
        }
        impl<$($generics)*> Element for $t {}
        impl<$($generics)*> ToOCaml for $t where $of: ToOCaml {
            #[inline]
            fn words(&self) -> usize {
                (**self).words()
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
                (**self).to_ocaml(n)
            }
            #[inline]
            fn to_float(&self) -> Option<Flat<Self::Type>> {
                (**self).to_float()
            }
        }
    )*}
}
forward! {
    (R: ?Sized) &R, R;
    (R: ?Sized) Box<R>, R;
    (R: ?Sized) Rc<R>, R;
    (R: ?Sized) Arc<R>, R;
    (R: ?Sized + ToOwned) Cow<'_, R>, R;
}

macro_rules! owned {
    ($($p:ident)*) => {$(
        impl<'a, R: FromOCaml<'a>> FromOCaml<'a> for $p<R> {
            #[inline]
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                R::from_ocaml(rt, v).map($p::new)
            }
            #[inline]
            fn from_float(rt: &'a Runtime, x: Flat<Self::Type>) -> Result<Self, ConvertError> {
                R::from_float(rt, x).map($p::new)
            }
        }
        // SAFETY: as R.
        unsafe impl<'a, R: FromAny<'a>> FromAny<'a> for $p<R> {}
    )*}
}
owned! { Box Rc Arc }

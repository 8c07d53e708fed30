// SPDX-License-Identifier: MIT
//! Options, results and tuples.
use crate::convert::good;
use crate::types::for_tuples;
use crate::{
    block_words, ConvertError, Element, FromAny, FromOCaml, Nursery, Opt, Res, Runtime, ShapeError, ToOCaml, Typed,
    Value,
};

impl<T: Typed> Typed for Option<T> {
    type Type = Opt<T::Type>;
}
impl<T> Element for Option<T> {}
impl<T: ToOCaml> ToOCaml for Option<T> {
    #[inline]
    fn words(&self) -> usize {
        self.as_ref().map_or(0, |x| block_words(1) + x.words())
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Opt<T::Type>>, ConvertError> {
        match self {
            None => Ok(n.none()),
            Some(x) => Ok(n.filled(0, [x.to_ocaml(n)?.raw()])?),
        }
    }
}
impl<'a, T: FromOCaml<'a>> FromOCaml<'a> for Option<T> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Opt<T::Type>>) -> Result<Self, ConvertError> {
        match v.header() {
            None if v.raw() == 1 => Ok(None),
            // SAFETY: the block has one field; TYPED.
            Some((0, 1)) => T::from_ocaml(rt, unsafe { v.part(0) }).map(Some),
            _ => Err(ShapeError::Not("an option").into()),
        }
    }
}
// SAFETY: tag and size are tested; the content by T.
unsafe impl<'a, T: FromAny<'a>> FromAny<'a> for Option<T> {}

impl<T: Typed, E: Typed> Typed for Result<T, E> {
    type Type = Res<T::Type, E::Type>;
}
impl<T, E> Element for Result<T, E> {}
impl<T: ToOCaml, E: ToOCaml> ToOCaml for Result<T, E> {
    #[inline]
    fn words(&self) -> usize {
        block_words(1) + self.as_ref().map_or_else(|e| e.words(), |x| x.words())
    }
    #[inline]
    fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
        let (tag, field) = match self {
            Ok(x) => (0, x.to_ocaml(n)?.raw()),
            Err(e) => (1, e.to_ocaml(n)?.raw()),
        };
        Ok(n.filled(tag, [field])?)
    }
}
impl<'a, T: FromOCaml<'a>, E: FromOCaml<'a>> FromOCaml<'a> for Result<T, E> {
    #[inline]
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
        match v.header() {
            // SAFETY: the block has one field; TYPED.
            Some((0, 1)) => T::from_ocaml(rt, unsafe { v.part(0) }).map(Ok),
            // SAFETY: as above.
            Some((1, 1)) => E::from_ocaml(rt, unsafe { v.part(0) }).map(Err),
            _ => Err(ShapeError::Not("a result").into()),
        }
    }
}
// SAFETY: tag and size are tested; the content by T and E.
unsafe impl<'a, T: FromAny<'a>, E: FromAny<'a>> FromAny<'a> for Result<T, E> {}

impl<'a, T, E> Value<'a, Res<T, E>> {
    /// What is in `Ok` or `Error`.
    #[inline]
    pub fn to_result(self) -> Result<Value<'a, T>, Value<'a, E>> {
        // SAFETY: TYPED: a block with one field and tag 0 or 1.
        unsafe {
            match self.header() {
                Some((0, _)) => Ok(self.part(0)),
                _ => Err(self.part(0)),
            }
        }
    }
}

macro_rules! tuples {
    ($($t:ident $i:tt),+) => {
        impl<$($t: ToOCaml),+> ToOCaml for ($($t,)+) {
            #[inline]
            fn words(&self) -> usize {
                1 $(+ 1 + self.$i.words())+
            }
            #[inline]
            fn to_ocaml<'n>(&self, n: &'n Nursery) -> Result<Value<'n, Self::Type>, ConvertError> {
                let fields = [$(good!(self.$i.to_ocaml(n)).raw()),+];
                Ok(n.filled(0, fields)?)
            }
        }
        impl<'a, $($t: FromOCaml<'a>),+> FromOCaml<'a> for ($($t,)+) {
            #[inline]
            fn from_ocaml(rt: &'a Runtime, v: Value<'a, Self::Type>) -> Result<Self, ConvertError> {
                const SIZE: usize = [$($i),+].len();
                match v.header() {
                    // SAFETY: the block has so many fields; TYPED.
                    Some((0, SIZE)) => Ok(($(good!($t::from_ocaml(rt, unsafe { v.part($i) })),)+)),
                    _ => Err(ShapeError::Not(concat!("a tuple of ", stringify!($($t),+))).into()),
                }
            }
        }
        // SAFETY: tag and size are tested; the components by their types.
        unsafe impl<'a, $($t: FromAny<'a>),+> FromAny<'a> for ($($t,)+) {}
        impl<'a, $($t),+> Value<'a, ($($t,)+)> {
            /// The components.
            #[inline]
            pub fn parts(self) -> ($(Value<'a, $t>,)+) {
                // SAFETY: TYPED: a tuple of as many fields.
                unsafe { ($(self.part::<$t>($i),)+) }
            }
        }
    };
}
for_tuples! { tuples }

// SPDX-License-Identifier: MIT
use crate::convert::good;
use crate::{glue, ConvertError, Fun, Nursery, ToOCaml, Typed, ValueCell};

/// What can be passed to an OCaml function for an argument of type `T`: a place (`&root`, `&immediate`, a slot), a
/// constant, or a Rust value, which is converted inside the call: all that is [`ToOCaml`] with that type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to an OCaml function for an argument of type `{T}`",
    note = "pass a reference to a root, a slot or an immediate of that type, or a Rust value that is converted to it"
)]
pub trait Arg<T>: ToOCaml + Typed<Type = T> {}
impl<T, R: ToOCaml + Typed<Type = T>> Arg<T> for R {}

/// The arguments of a call: a tuple of [`Arg`]s for the function's tuple of types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the arguments of an OCaml function that takes `{A}`",
    note = "arguments are passed as a tuple, one by one: references to roots, slots or immediates, or Rust values"
)]
pub trait Args<A>: sealed::Args<A> {}

pub(crate) mod sealed {
    pub trait Args<A> {
        fn words(&self) -> usize;
        /// Calls `closure`, whose value is read when the arguments are there, after the nursery has ended.
        ///
        /// # Safety
        /// This thread holds the lock, and has no other nursery; the place holds a function that takes such arguments.
        unsafe fn call<R>(
            &self,
            closure: &crate::ValueCell<crate::Fun<A, R>>,
            nursery: crate::Nursery,
        ) -> Result<isize, crate::ConvertError>;
    }
}

macro_rules! args {
    ($(($($t:ident $x:ident $i:tt),+) $call:ident)*) => {$(
        impl<$($t, $x: Arg<$t>),+> Args<($($t,)+)> for ($($x,)+) {}
        impl<$($t, $x: Arg<$t>),+> sealed::Args<($($t,)+)> for ($($x,)+) {
            #[inline]
            fn words(&self) -> usize {
                0 $(+ self.$i.words())+
            }
            #[inline]
            unsafe fn call<R>(
                &self,
                closure: &ValueCell<Fun<($($t,)+), R>>,
                nursery: Nursery,
            ) -> Result<isize, ConvertError> {
                let words = [$(good!(self.$i.to_ocaml(&nursery)).raw()),+];
                let closure = closure.get(&nursery).raw();
                drop(nursery);
                // SAFETY: by the caller. All were read after the last collection, and the runtime keeps them from here
                // on.
                Ok(unsafe { glue::$call(closure, words) })
            }
        }
    )*}
}
args! {
    (A0 X0 0) call1
    (A0 X0 0, A1 X1 1) call2
    (A0 X0 0, A1 X1 1, A2 X2 2) call3
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9, A10 X10 10) call_more
    (A0 X0 0, A1 X1 1, A2 X2 2, A3 X3 3, A4 X4 4, A5 X5 5, A6 X6 6, A7 X7 7, A8 X8 8, A9 X9 9, A10 X10 10,
     A11 X11 11) call_more
}

// SPDX-License-Identifier: MIT
use crate::{glue, int, string_words, Bool, Float, Fun, Int, Nursery, Root, Str, Unit, Value, ValueCell};
use alloc::sync::Arc;

/// What can be passed to an OCaml function for an argument of type `T`: a place (`&root`, `&immediate`, a slot), a
/// constant, or a Rust value, which is converted inside the call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to an OCaml function for an argument of type `{T}`",
    note = "pass a reference to a root, a slot or an immediate of that type, or a Rust value that is converted to it"
)]
pub trait Arg<T> {
    /// How many words the conversion takes, see [`Runtime::build`](crate::Runtime::build).
    fn words(&self) -> usize {
        0
    }
    /// The value.
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T>;
}

impl<T> Arg<T> for &ValueCell<T> {
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T> {
        self.get(n)
    }
}

impl<T> Arg<T> for &Root<T> {
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T> {
        self.get(n)
    }
}

impl<T> Arg<T> for Root<T> {
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T> {
        self.get(n)
    }
}

impl<T> Arg<T> for &Arc<Root<T>> {
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T> {
        self.get(n)
    }
}

impl<T> Arg<T> for &Value<'_, T> {
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, T> {
        self.get(n)
    }
}

impl<T> Arg<T> for Value<'static, T> {
    #[inline]
    fn make<'n>(&self, _: &'n Nursery) -> Value<'n, T> {
        *self
    }
}

impl Arg<Str> for &str {
    fn words(&self) -> usize {
        string_words(self.len())
    }
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, Str> {
        n.string(self)
    }
}

impl Arg<Float> for f64 {
    fn words(&self) -> usize {
        2
    }
    #[inline]
    fn make<'n>(&self, n: &'n Nursery) -> Value<'n, Float> {
        n.float(*self)
    }
}

impl Arg<Int> for i32 {
    #[inline]
    fn make<'n>(&self, _: &'n Nursery) -> Value<'n, Int> {
        int(*self)
    }
}

impl Arg<Bool> for bool {
    #[inline]
    fn make<'n>(&self, _: &'n Nursery) -> Value<'n, Bool> {
        (*self).into()
    }
}

impl Arg<Unit> for () {
    #[inline]
    fn make<'n>(&self, _: &'n Nursery) -> Value<'n, Unit> {
        Value::UNIT
    }
}

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
        unsafe fn call<R>(&self, closure: &crate::ValueCell<crate::Fun<A, R>>, nursery: crate::Nursery) -> isize;
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
            unsafe fn call<R>(&self, closure: &ValueCell<Fun<($($t,)+), R>>, nursery: Nursery) -> isize {
                let words = [$(self.$i.make(&nursery).raw()),+];
                let closure = closure.get(&nursery).raw();
                drop(nursery);
                // SAFETY: by the caller. All were read after the last collection, and the runtime keeps them from here
                // on.
                unsafe { glue::$call(closure, words) }
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

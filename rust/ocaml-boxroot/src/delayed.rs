// SPDX-License-Identifier: MIT
use crate::{Any, Exception, Fresh, Fun, Root, Runtime};
use alloc::vec::Vec;
use core::marker::PhantomData;

/// A call of an OCaml function, with its arguments, to be made later, any number of times, on any thread. The types of
/// the arguments are forgotten: so an exported function that is generic for OCaml can give one to a thread, a task or a
/// [`defer`](crate::defer), which cannot have values of its type parameters.
///
/// ```
/// # use ocaml_boxroot::*;
/// /// Calls `f` on a thread of its own.
/// #[export]
/// fn elsewhere<A>(rt: &mut Runtime, f: Root<Fun<(A,), Unit>>, x: Root<A>) {
///     let call = f.delay(rt, x);
///     std::thread::spawn(move || attach(|rt| call.call(rt).map(drop)));
/// }
/// # library! { name = "elsewhere", exports = [elsewhere] }
/// ```
// TYPED: the function takes these arguments, at most four, and returns what R describes.
pub struct Delayed<R> {
    function: Root<Any>,
    arguments: Vec<Root<Any>>,
    _result: PhantomData<fn() -> R>,
}

macro_rules! delays {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<$($t,)+ R> Root<Fun<($($t,)+), R>> {
            /// The call with these arguments, to be made later. Panics when memory is short.
            pub fn delay(&self, rt: &Runtime, $($x: Root<$t>),+) -> Delayed<R> {
                let arguments = alloc::vec![$($x.into_any()),+];
                Delayed { function: self.dup(rt).into_any(), arguments, _result: PhantomData }
            }
        }
    )*}
}
delays! { (A a) (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) }

impl<R> Delayed<R> {
    /// Makes the call.
    pub fn call<'a>(&self, rt: &'a mut Runtime) -> Result<Fresh<'a, R>, Exception> {
        // SAFETY: TYPED, for each: as many arguments, of types that the function takes.
        unsafe {
            match &self.arguments[..] {
                [a] => self.function.cast::<Fun<(Any,), R>>().call(rt, (a,)),
                [a, b] => self.function.cast::<Fun<(Any, Any), R>>().call(rt, (a, b)),
                [a, b, c] => self.function.cast::<Fun<(Any, Any, Any), R>>().call(rt, (a, b, c)),
                [a, b, c, d] => self.function.cast::<Fun<(Any, Any, Any, Any), R>>().call(rt, (a, b, c, d)),
                _ => unreachable!("a call of one to four arguments"),
            }
        }
    }
}

impl<R> core::fmt::Debug for Delayed<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Delayed")
    }
}

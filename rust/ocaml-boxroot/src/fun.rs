// SPDX-License-Identifier: MIT
use crate::{exception, Args, Exception, Fresh, Fun, Nursery, Runtime, ValueCell};

impl<A, R> ValueCell<Fun<A, R>> {
    /// Calls the function. Arguments that are Rust values are converted here, so that calls need not be nested. One
    /// that cannot be converted is an `Invalid_argument`, as if the function had raised it, or `Out_of_memory`.
    ///
    /// ```
    /// # use ocaml_boxroot::*;
    /// fn greet<'a>(rt: &'a mut Runtime, f: &Root<Fun<(Str, Int), Str>>) -> Result<Fresh<'a, Str>, Exception> {
    ///     f.call(rt, ("world", 3))
    /// }
    /// ```
    #[inline]
    pub fn call<'a, X: Args<A>>(&self, rt: &'a mut Runtime, args: X) -> Result<Fresh<'a, R>, Exception> {
        let nursery = Nursery::new(rt, args.words());
        // SAFETY: LOCK, TYPED.
        let result = match unsafe { args.call(self, nursery) } {
            Ok(result) => exception::check(rt, result)?,
            Err(error) => return Err(Exception::of_conversion(rt, error)),
        };
        // SAFETY: the result of the call just now; TYPED.
        Ok(unsafe { Fresh::new(rt, result) })
    }
}

// SPDX-License-Identifier: MIT
//! Functions whose names are those of variables and items in the wrappers, and one that stands in another's body.
use ocaml_boxroot::*;

macro_rules! named {
    ($($name:ident)*) => {$(
        #[export]
        pub fn $name(rt: &mut Runtime, s: ValueRef<'_, Str>, n: isize) -> String {
            rt.minor_gc();
            format!("{} {} {n}", stringify!($name), s.get(rt).to_str().unwrap())
        }
    )*};
}
named! { words lock rt places result x0 a0 w0 body native describe held }

/// Whether this thread, which may be in a blocking section, could take the lock.
#[export]
pub fn attached() -> isize {
    match attach(|rt| rt.minor_gc()) {
        Ok(()) => 0,
        Err(AttachError::Nested) => 1,
        Err(AttachError::NotRegistered) => 2,
        Err(_) => 3,
    }
}

/// An export in the body of a function, and one below it.
#[export]
pub fn outer() -> usize {
    #[export]
    fn inner(words: isize, result: &str) -> String {
        #[export(noalloc)]
        fn innermost(words: isize) -> isize {
            words + 1
        }
        format!("{} {result}", innermost(words))
    }
    inner(1, "x").len()
}

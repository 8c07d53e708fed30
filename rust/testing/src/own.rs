// SPDX-License-Identifier: MIT
//! What own.ml registers.
use ocaml_boxroot::*;

functions! {
    own_compare: (Any, Any) -> Int;
    own_equal: (Any, Any) -> Bool;
    own_hash: (Any) -> Int;
    own_copy: (Any) -> Any;
    own_marshal: (Any) -> Str;
    own_unmarshal: (Str) -> Any;
    own_box: (Any) -> Ref<Any>;
    own_forget: (Ref<Any>) -> Unit;
    own_sort: (List<Any>) -> List<Any>;
}

/// The root with another type, as a wrong declaration in OCaml would give it.
pub fn declared_as<T>(root: Root) -> Root<T> {
    // SAFETY: none: for tests of what happens then. T is a type whose accesses are checked.
    unsafe { root.into_typed() }
}

/// A block like this one, as another copy of the library in the same process would make it: with operations of its own
/// that say the same, and data that mean the same.
pub fn foreign_copy<T>(rt: &mut Runtime, v: ValueRef<'_, T>) -> Root {
    extern "C" {
        fn testing_foreign_copy(v: isize) -> isize;
    }
    // SAFETY: the lock is held; the C function makes a block without a finaliser. The payload stays alive with the
    // test's value.
    unsafe {
        let raw = testing_foreign_copy(v.get(rt).raw());
        Value::<Any>::from_raw(raw).root(rt)
    }
}

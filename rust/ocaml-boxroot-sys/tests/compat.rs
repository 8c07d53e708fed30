// SPDX-License-Identifier: MIT
//! The public items of 0.4.0, with their types. Compiling this file is the test; nothing in it runs.
#![allow(dead_code)]

use core::cell::UnsafeCell;
use core::ffi::c_char;
use ocaml_boxroot_sys::*;

fn items() {
    let _: fn(isize) -> Value = |v| v;
    let _: fn(UnsafeCell<isize>) -> ValueCell = |c| c;
    let _: fn(BoxRoot) -> *const ValueCell = boxroot_get_ref;
    let _: unsafe fn(BoxRoot) -> Value = boxroot_get;
    let _: unsafe extern "C" fn(Value) -> Option<BoxRoot> = boxroot_create;
    let _: unsafe extern "C" fn(BoxRoot) = boxroot_delete;
    let _: unsafe extern "C" fn(*mut BoxRoot, Value) -> bool = boxroot_modify;
    let _: unsafe extern "C" fn() -> bool = boxroot_setup;
    let _: unsafe extern "C" fn() -> *const c_char = boxroot_error_string;
    let _: unsafe extern "C" fn() = boxroot_teardown;
    let _: unsafe extern "C" fn() -> Status = boxroot_status;
    let _: unsafe extern "C" fn() = boxroot_print_stats;
    let _: fn(Status) -> bool =
        |s| matches!(s, Status::NotSetup | Status::Running | Status::ToreDown | Status::Invalid);
    fn traits<T: Copy + Clone + core::fmt::Debug + PartialEq + PartialOrd + Eq>() {}
    traits::<BoxRoot>();
}

/// As in 0.4.0, a root of the raw crate is neither Send nor Sync: crates above rely on it for their own types.
trait NotSend<A> {
    fn test() {}
}
impl<T> NotSend<()> for T {}
struct IsSend;
impl<T: Send> NotSend<IsSend> for T {}
struct IsSync;
impl<T: Sync> NotSend<IsSync> for T {}

#[test]
fn auto_traits() {
    <BoxRoot as NotSend<_>>::test(); // ambiguous, so a compile error, if BoxRoot is Send or Sync
}

// SPDX-License-Identifier: MIT
#[cfg(feature = "std")]
use crate::Marshal;
use core::cmp::Ordering;

/// What OCaml's polymorphic operations do with a Rust value that OCaml owns, see
/// [`Runtime::boxed_custom`](crate::Runtime::boxed_custom).
///
/// Without any of them, as with [`Runtime::boxed`](crate::Runtime::boxed): `==` says whether two are the same value;
/// `=` and `compare` raise `Invalid_argument "compare: abstract value"` (but `compare v v` is 0); `Hashtbl.hash` does
/// not look at them; marshalling raises `Invalid_argument`.
///
/// The functions are called while OCaml's runtime holds pointers into its heap. They get no
/// [`Runtime`](crate::Runtime), and [`attach`](crate::attach) is an error in them. A panic in one ends the process with
/// a message.
///
/// ```
/// # use ocaml_boxroot::*;
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// struct Version(u32, u32);
/// impl CustomOps for Version {
///     const COMPARE: Option<fn(&Self, &Self) -> std::cmp::Ordering> = Some(Ord::cmp);
///     const HASH: Option<fn(&Self) -> u32> = Some(|v| v.0 ^ v.1.rotate_left(16));
/// }
/// fn create(rt: &mut Runtime) -> Fresh<'_, Boxed<Version>> {
///     rt.boxed_custom(Version(5, 4))
/// }
/// ```
pub trait CustomOps: Send + Sync + Sized + 'static {
    /// A total order, for `compare`, `=`, `<`, `Map.Make` and the like.
    const COMPARE: Option<fn(&Self, &Self) -> Ordering> = None;

    /// Equal for equal values, for `Hashtbl.hash`.
    const HASH: Option<fn(&Self) -> u32> = None;

    /// How it is marshalled.
    #[cfg(feature = "std")]
    const MARSHAL: Option<Marshal<Self>> = None;

    /// Whether it is dropped later, outside the collector: at the next [`attach`](crate::attach),
    /// [`poll`](crate::Runtime::poll) or call of an exported function, on any thread, like a closure passed to
    /// [`defer`](crate::defer). For a `Drop` that waits, or attaches.
    ///
    /// A function that holds a mutex while it calls OCaml must expect such drops where OCaml calls Rust again.
    const DEFER_DROP: bool = false;

    /// How many bytes it keeps besides itself, so that the collector works harder when much memory hangs on small
    /// blocks. Asked for once, when OCaml becomes the owner.
    fn memory(&self) -> usize {
        0
    }
}

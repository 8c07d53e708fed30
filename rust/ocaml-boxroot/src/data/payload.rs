// SPDX-License-Identifier: MIT
//! The blocks of [`Boxed`](crate::Boxed), and what OCaml's runtime calls for them.
//!
//! A block has two words: the operations, which say that it is ours, and a pointer to the payload, which begins with a
//! table that says which type it is.
use crate::glue::{self, FixedLength, Operations};
use crate::runtime::defer_drop;
use crate::value::CUSTOM;
use crate::{Any, Value};
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::any::TypeId;
use core::cmp::Ordering;
use core::ffi::c_int;
#[cfg(feature = "std")]
use core::ffi::CStr;
#[cfg(feature = "std")]
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

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
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// struct Version(u32, u32);
/// impl ocaml::CustomOps for Version {
///     const COMPARE: Option<fn(&Self, &Self) -> std::cmp::Ordering> = Some(Ord::cmp);
///     const HASH: Option<fn(&Self) -> u32> = Some(|v| v.0 ^ v.1.rotate_left(16));
/// }
/// fn create(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Version>> {
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
    /// [`poll`](crate::Runtime::poll) or call of an exported function, on any thread, in one order with the closures
    /// passed to [`defer`](crate::defer), and with the lock released. For a `Drop` that waits, or attaches.
    ///
    /// A function that holds a mutex while it calls OCaml must expect such drops where OCaml calls Rust again, on the
    /// same thread. On another thread they may wait for that mutex: they do not hold the lock.
    const DEFER_DROP: bool = false;

    /// How many bytes it keeps besides itself, so that the collector works harder when much memory hangs on small
    /// blocks. Asked for once, when OCaml becomes the owner.
    fn memory(&self) -> usize {
        0
    }
}

/// How a Rust value is marshalled, see [`CustomOps::MARSHAL`]. It becomes bytes, which are read back by a program that
/// called [`register_marshalled`](crate::Runtime::register_marshalled) before.
///
/// `Marshal` trusts its input: bytes that were not written by `write` can crash an OCaml program before `read` sees
/// them.
#[cfg(feature = "std")]
pub struct Marshal<T> {
    /// What the type is called in marshalled data: unique among all libraries of a program. Change it with the format.
    pub name: &'static CStr,
    /// Appends the value's bytes.
    pub write: fn(&T, &mut Vec<u8>),
    /// The value, or `None` to have `Failure` raised.
    pub read: fn(&[u8]) -> Option<T>,
}

#[cfg(feature = "std")]
impl<T> fmt::Debug for Marshal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Marshal({:?})", self.name)
    }
}

/// Appends the value's bytes.
#[cfg(feature = "std")]
pub type Write = unsafe fn(NonNull<Header>, &mut Vec<u8>);

// --- blocks

// PAYLOAD: a custom block whose operations refer to this static was made here, by this copy of the library, and nowhere
// else. Its second word is null or points to a Payload<T> that the block owns, with a table of T's; the word does not
// change. A null word is in blocks that nobody refers to.
pub static OURS: FixedLength = FixedLength { narrow: 4, wide: 8 };

/// The operations by what they offer: bit 0, comparison; bit 1, hashing. OCaml compares identifiers when the functions
/// differ.
pub static OPERATIONS: [Operations; 4] = [
    operations(c"_rust", None, None),
    operations(c"_rust_compare", Some(compare), None),
    operations(c"_rust", None, Some(hash)),
    operations(c"_rust_compare", Some(compare), Some(hash)),
];

const fn operations(
    identifier: &'static core::ffi::CStr,
    compare: Option<extern "C" fn(isize, isize) -> c_int>,
    hash: Option<extern "C" fn(isize) -> isize>,
) -> Operations {
    Operations {
        identifier: identifier.as_ptr(),
        finalize: Some(finalize),
        compare,
        hash,
        serialize: None,
        deserialize: None,
        compare_ext: None,
        fixed_length: &raw const OURS,
    }
}

#[repr(C)]
pub struct Payload<T> {
    pub header: Header,
    pub value: T,
}

pub struct Header {
    pub table: &'static VTable,
}

/// What is known of a payload's type. One type may have several of these tables.
pub struct VTable {
    /// Identities at one address are those of one type, since the functions in them differ. One type may have several.
    pub identity: &'static Identity,
    /// Drops the payload, at once or later.
    drop: unsafe fn(NonNull<Header>),
    compare: Option<Compare>,
    hash: Option<unsafe fn(NonNull<Header>) -> u32>,
    #[cfg(feature = "std")]
    pub marshal: Option<Write>,
}

type Compare = unsafe fn(NonNull<Header>, NonNull<Header>) -> Ordering;

pub struct Identity {
    id: fn() -> TypeId,
    name: fn() -> &'static str,
}

impl Identity {
    /// What the type is called.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }
}

pub struct Type<T>(PhantomData<T>);
impl<T: 'static> Type<T> {
    pub const IDENTITY: &'static Identity = &Identity { id: TypeId::of::<T>, name: core::any::type_name::<T> };
}

/// Types without operations of their own.
pub struct Plain<T>(PhantomData<T>);
impl<T: Send + Sync + 'static> Plain<T> {
    pub const TABLE: &'static VTable = &VTable {
        identity: Type::<T>::IDENTITY,
        drop: drop_now::<T>,
        compare: None,
        hash: None,
        #[cfg(feature = "std")]
        marshal: None,
    };
}

/// Types with operations.
pub struct Custom<T>(PhantomData<T>);
impl<T: CustomOps> Custom<T> {
    pub const TABLE: &'static VTable = &VTable {
        identity: Type::<T>::IDENTITY,
        drop: if T::DEFER_DROP { drop_later::<T> } else { drop_now::<T> },
        compare: if T::COMPARE.is_some() { Some(compare_as::<T>) } else { None },
        hash: if T::HASH.is_some() { Some(hash_as::<T>) } else { None },
        #[cfg(feature = "std")]
        marshal: if T::MARSHAL.is_some() { Some(write_as::<T>) } else { None },
    };
    /// The index in the static [`OPERATIONS`].
    pub const OPERATIONS: usize = T::COMPARE.is_some() as usize | (T::HASH.is_some() as usize) << 1;
}

/// A block for the payload.
///
/// # Safety
/// The lock is held, and may be used for collecting; the payload begins with a table of its type, and is given away.
#[inline]
pub unsafe fn alloc(operations: &'static Operations, payload: *mut Header, bytes: usize) -> isize {
    // SAFETY: by the caller; PAYLOAD.
    unsafe {
        let block = glue::obx_alloc_custom(operations, size_of::<*mut Header>(), bytes);
        (block as *mut *mut Header).add(1).write(payload);
        block
    }
}

/// The payload's header, if the block is ours.
#[inline]
fn header(v: Value<'_, Any>) -> Option<NonNull<Header>> {
    match v.header() {
        // SAFETY: LIVE: a custom block begins with its operations, which are static and have all these fields;
        // PAYLOAD for the second word.
        Some((CUSTOM, _)) => unsafe {
            let operations = *(v.raw() as *const *const Operations);
            ((*operations).fixed_length == &raw const OURS).then(|| data(v.raw())).flatten()
        },
        _ => None,
    }
}

/// # Safety
/// A block of ours.
#[inline]
pub unsafe fn data(block: isize) -> Option<NonNull<Header>> {
    // SAFETY: by the caller.
    NonNull::new(unsafe { *(block as *const *mut Header).add(1) })
}

/// # Safety
/// The header of a payload.
#[inline]
pub unsafe fn table(header: NonNull<Header>) -> &'static VTable {
    // SAFETY: PAYLOAD. No reference to the whole is made, since it may be about to be dropped.
    unsafe { (&raw const (*header.as_ptr()).table).read() }
}

/// # Safety
/// The header of a `Payload<T>`.
#[inline]
pub unsafe fn value<T>(header: NonNull<Header>) -> NonNull<T> {
    // SAFETY: by the caller.
    unsafe { NonNull::new_unchecked(&raw mut (*header.cast::<Payload<T>>().as_ptr()).value) }
}

/// The Rust value, if it is one of type `T` of this copy of the library.
#[inline]
pub fn find<T: 'static>(v: Value<'_, Any>) -> Option<NonNull<T>> {
    let header = header(v)?;
    // SAFETY: PAYLOAD.
    let found = unsafe { table(header) }.identity;
    if core::ptr::eq(found, Type::<T>::IDENTITY) || same(found, TypeId::of::<T>()) {
        // SAFETY: PAYLOAD: its type is T.
        Some(unsafe { value(header) })
    } else {
        None
    }
}

/// Whether it is the same type, although its identity is at another address.
#[cold]
pub fn same(found: &Identity, wanted: TypeId) -> bool {
    (found.id)() == wanted
}

/// The type of the Rust value, if it is one.
pub fn type_name(v: Value<'_, Any>) -> Option<&'static str> {
    // SAFETY: PAYLOAD.
    header(v).map(|header| unsafe { table(header) }.identity.name())
}

// --- what the runtime calls

/// Ends the process when it is dropped, which a panic does.
struct NoPanic(&'static str, &'static Identity);
impl Drop for NoPanic {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        {
            std::eprintln!("ocaml-boxroot: {} of a `{}` panicked inside OCaml's runtime", self.0, self.1.name());
            std::process::abort()
        }
        // A panic during a panic ends the process.
        #[cfg(not(feature = "std"))]
        panic!("ocaml-boxroot: {} of a `{}` panicked inside OCaml's runtime", self.0, self.1.name());
    }
}

/// Runs `f`, in which a panic ends the process.
#[inline]
pub fn no_panic<R>(what: &'static str, identity: &'static Identity, f: impl FnOnce() -> R) -> R {
    let guard = NoPanic(what, identity);
    let result = f();
    core::mem::forget(guard);
    result
}

/// Called when a block dies, by the collector or elsewhere.
extern "C" fn finalize(block: isize) {
    // SAFETY: PAYLOAD: the block is ours, and dead, so the payload is dropped once.
    unsafe {
        if let Some(header) = data(block) {
            let table = table(header);
            (table.drop)(header)
        }
    }
}

unsafe fn drop_now<T: 'static>(header: NonNull<Header>) {
    // SAFETY: PAYLOAD: given away by `alloc`, and T is its type.
    let payload = unsafe { Box::from_raw(header.cast::<Payload<T>>().as_ptr()) };
    if core::mem::needs_drop::<T>() {
        let table = payload.header.table;
        no_panic("the drop", table.identity, || drop(payload))
    }
}

unsafe fn drop_later<T: CustomOps>(header: NonNull<Header>) {
    // SAFETY: as in `drop_now`.
    let payload = unsafe { Box::from_raw(header.cast::<Payload<T>>().as_ptr()) };
    defer_drop(payload);
}

extern "C" fn compare(a: isize, b: isize) -> c_int {
    // SAFETY: PAYLOAD: OCaml compares blocks with the same function, which are ours, and live.
    unsafe {
        let (Some(a), Some(b)) = (data(a), data(b)) else { return 0 };
        let (ta, tb) = (table(a), table(b));
        let order = match (ta.compare, (ta.identity.id)().cmp(&(tb.identity.id)())) {
            (Some(compare), Ordering::Equal) => no_panic("the comparison", ta.identity, || compare(a, b)),
            (_, order) => order,
        };
        order as c_int
    }
}

unsafe fn compare_as<T: CustomOps>(a: NonNull<Header>, b: NonNull<Header>) -> Ordering {
    // SAFETY: both are of type T, and live during the call.
    T::COMPARE.map_or(Ordering::Equal, |compare| unsafe { compare(value(a).as_ref(), value(b).as_ref()) })
}

extern "C" fn hash(block: isize) -> isize {
    // SAFETY: PAYLOAD: the block is ours, and live.
    unsafe {
        let Some(header) = data(block) else { return 0 };
        let table = table(header);
        table.hash.map_or(0, |hash| no_panic("the hash", table.identity, || hash(header) as isize))
    }
}

unsafe fn hash_as<T: CustomOps>(header: NonNull<Header>) -> u32 {
    // SAFETY: of type T, and live during the call.
    T::HASH.map_or(0, |hash| unsafe { hash(value(header).as_ref()) })
}

#[cfg(feature = "std")]
unsafe fn write_as<T: CustomOps>(header: NonNull<Header>, bytes: &mut Vec<u8>) {
    if let Some(marshal) = &T::MARSHAL {
        // SAFETY: by the caller: a payload of type T, live during the call.
        (marshal.write)(unsafe { value::<T>(header).as_ref() }, bytes)
    }
}

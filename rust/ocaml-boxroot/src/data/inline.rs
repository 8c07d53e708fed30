// SPDX-License-Identifier: MIT
//! Rust values that OCaml owns, inside a block.
use crate::data::payload::{self, Identity, Type};
use crate::glue::{self, FixedLength, Operations};
use crate::types::{describe_abstract, ErasedPayload};
use crate::value::{sealed, CUSTOM};
use crate::{
    Any, Definitions, Downcast, Element, OCamlAbstract, OCamlErasable, OCamlType, Runtime, ShapeError, Typed, Value,
    ValueCell, ValueGuard,
};
use alloc::string::String;
use core::any::TypeId;
use core::convert::Infallible;
use core::marker::PhantomData;

/// A Rust value inside a block of OCaml's heap.
///
/// As [`Boxed`](crate::Boxed), which says when it is dropped, but without a box: making one takes no memory but the
/// block, and reading it follows no pointer. The collector moves it with its block, so a reference to it ends with the
/// next thing that may run the collector. For small values such as a root:
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// struct Cell<A>(Root<A>);
/// ocaml_abstract! { Cell<A> = "cell"; }
/// #[export]
/// fn create<A: TypeVar>(rt: &mut Runtime, v: Root<A>) -> ValueGuard<'_, ocaml::Inline<Cell<A>>> {
///     rt.inline_erased(Cell(v))
/// }
/// #[export]
/// fn get<'a, A: TypeVar>(rt: &'a Runtime, cell: ocaml::Value<'a, ocaml::Inline<Cell<A>>>) -> ocaml::Value<'a, A> {
///     cell.payload_erased(rt).0.get(rt)
/// }
/// ```
///
/// It has no operations: as values of [`Boxed`](crate::Boxed) made by [`Runtime::boxed`].
#[derive(Debug)]
pub struct Inline<T> {
    _none: Infallible,
    _of: PhantomData<fn(T) -> T>,
}

// SAFETY: an abstract type of its own, never `float`; its parameters are those of T, which is checked at each access.
unsafe impl<T: OCamlAbstract> OCamlType for Inline<T> {
    /// Panics when the name cannot be a type's.
    fn describe(to: &mut Definitions) -> String {
        describe_abstract::<T>(to)
    }
}

impl<T> Typed for Inline<T> {
    type Type = Self;
}
impl<T> Element for Inline<T> {}

// INLINE: a custom block whose operations refer to this static was made here, by this copy of the library. Its
// operations are the beginning of a Table, and behind the pointer to them is a value of the type that the table tells,
// which the block owns.
static OURS: FixedLength = FixedLength { narrow: 0, wide: 0 };

#[repr(C)]
struct Table {
    operations: Operations,
    identity: &'static Identity,
}

struct Of<T>(PhantomData<T>);
impl<T: Send + Sync + 'static> Of<T> {
    /// One type may have several of these tables.
    const TABLE: &'static Table = &Table {
        operations: Operations {
            identifier: c"_rust_inline".as_ptr(),
            finalize: if core::mem::needs_drop::<T>() { Some(finalize::<T>) } else { None },
            compare: None,
            hash: None,
            serialize: None,
            deserialize: None,
            compare_ext: None,
            fixed_length: &raw const OURS,
        },
        identity: Type::<T>::IDENTITY,
    };
}

/// Called by the collector, when a block is dead.
extern "C" fn finalize<T: Send + Sync + 'static>(block: isize) {
    // SAFETY: INLINE: the block is dead, and the operations are those of T.
    payload::no_panic("the drop", Of::<T>::TABLE.identity, || unsafe { value::<T>(block).drop_in_place() })
}

/// The address of the value in the block.
///
/// # Safety
/// A custom block.
#[inline]
unsafe fn value<T>(block: isize) -> *mut T {
    // SAFETY: by the caller.
    unsafe { (block as *mut *const Table).add(1).cast() }
}

/// The table, if the block is ours.
#[inline]
fn table(v: Value<'_, Any>) -> Option<&'static Table> {
    match v.header() {
        // SAFETY: LIVE: a custom block begins with its operations, which are static; INLINE.
        Some((CUSTOM, _)) => unsafe {
            let table = *(v.raw() as *const *const Table);
            ((*table).operations.fixed_length == &raw const OURS).then(|| &*table)
        },
        _ => None,
    }
}

/// Whether the block contains a value of type `T`.
#[cold]
fn check<T: 'static>(v: Value<'_, Any>) -> Result<(), ShapeError> {
    match table(v).map(|table| table.identity) {
        Some(found) if core::ptr::eq(found, Type::<T>::IDENTITY) || payload::same(found, TypeId::of::<T>()) => Ok(()),
        _ => Err(error::<T>(v)),
    }
}

/// The type of the value, if it is one.
fn type_name(v: Value<'_, Any>) -> Option<&'static str> {
    table(v).map(|table| table.identity.name())
}

/// Why the value is no Rust value of type `T`, whether in a box or inside a block.
#[cold]
#[inline(never)]
pub(crate) fn error<T: 'static>(v: Value<'_>) -> ShapeError {
    ShapeError::Payload { expected: core::any::type_name::<T>(), found: payload::type_name(v).or_else(|| type_name(v)) }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong(error: ShapeError) -> ! {
    panic!("{error}")
}

impl Runtime {
    /// Makes a block that contains `t`, of at most 2000 bytes. Takes OCaml's memory only.
    #[inline]
    pub fn inline<T: Send + Sync + 'static>(&mut self, t: T) -> ValueGuard<'_, Inline<T>> {
        const {
            assert!(size_of::<T>() <= 2000, "a value inside a block has at most 2000 bytes: use `boxed`");
            assert!(align_of::<T>() <= 8, "a value inside a block is aligned on 8 bytes: use `boxed`");
        }
        let operations: *const Table = Of::<T>::TABLE;
        // SAFETY: LOCK; INLINE: the block is new, and has so many bytes behind the operations.
        unsafe {
            let block = glue::caml_alloc_custom(operations.cast(), size_of::<T>(), 0, 1);
            value::<T>(block).write(t);
            ValueGuard::from_raw(self, block)
        }
    }
}

impl Runtime {
    /// As [`inline`](Runtime::inline), in an exported function whose type parameters the value's type has: see
    /// [`TypeVar`](crate::TypeVar).
    #[inline]
    pub fn inline_erased<T: OCamlErasable>(&mut self, t: T) -> ValueGuard<'_, Inline<T>> {
        let block = self.inline(ErasedPayload::new(t));
        // SAFETY: TYPED: ERASED.
        unsafe { block.cast() }
    }
}

impl<'a, T: OCamlErasable> Value<'a, Inline<T>> {
    /// As [`payload`](Value::payload), of what [`inline_erased`](Runtime::inline_erased) has made.
    #[inline]
    pub fn payload_erased(self, rt: &Runtime) -> &'a T {
        match self.try_payload_erased(rt) {
            Ok(t) => t,
            Err(error) => wrong(error),
        }
    }

    /// As [`try_payload`](Value::try_payload), of what [`inline_erased`](Runtime::inline_erased) has made.
    #[inline]
    pub fn try_payload_erased(self, rt: &Runtime) -> Result<&'a T, ShapeError> {
        // SAFETY: the same block; its type is looked at.
        let whole: Value<'a, Inline<ErasedPayload<T::Whole>>> = unsafe { self.cast() };
        whole.try_payload(rt).map(ErasedPayload::get)
    }
}

impl<T: OCamlErasable> ValueCell<Inline<T>> {
    /// As [`payload`](ValueCell::payload), of what [`inline_erased`](Runtime::inline_erased) has made.
    #[inline]
    pub fn payload_erased<'r>(&self, rt: &'r Runtime) -> &'r T {
        self.get(rt).payload_erased(rt)
    }
}

impl<'a, T: Send + Sync + 'static> Value<'a, Inline<T>> {
    /// The Rust value, for as long as nothing is collected. Panics when the block holds another type.
    #[inline]
    pub fn payload(self, rt: &Runtime) -> &'a T {
        match self.try_payload(rt) {
            Ok(t) => t,
            Err(error) => wrong(error),
        }
    }

    /// The Rust value, or an error when the block holds another type.
    #[inline]
    pub fn try_payload(self, rt: &Runtime) -> Result<&'a T, ShapeError> {
        let _ = rt;
        // SAFETY: LIVE: a custom block begins with its operations. A type may have several tables.
        let own = self.header().is_some_and(|(tag, _)| tag == CUSTOM)
            && core::ptr::eq(unsafe { *(self.raw() as *const *const Table) }, Of::<T>::TABLE);
        if !own {
            check::<T>(self.into_any())?;
        }
        // SAFETY: INLINE: its type is T; LIVE: nothing moves it during 'a.
        Ok(unsafe { &*value::<T>(self.raw()) })
    }
}

impl<T: Send + Sync + 'static> ValueCell<Inline<T>> {
    /// The Rust value that the place holds now, for as long as nothing is collected. Panics when the block holds
    /// another type.
    #[inline]
    pub fn payload<'r>(&self, rt: &'r Runtime) -> &'r T {
        self.get(rt).payload(rt)
    }

    /// As [`payload`](ValueCell::payload), or an error when the block holds another type.
    #[inline]
    pub fn try_payload<'r>(&self, rt: &'r Runtime) -> Result<&'r T, ShapeError> {
        self.get(rt).try_payload(rt)
    }
}

impl<T: 'static> Downcast for Inline<T> {}
impl<T: 'static> sealed::Downcast for Inline<T> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        check::<T>(v)
    }
}

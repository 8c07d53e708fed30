// SPDX-License-Identifier: MIT
//! Rust values that OCaml owns, in a box.
use crate::data::inline::{error, wrong};
use crate::data::payload::{self, Custom, Header, Payload, Plain, VTable};
use crate::glue::Operations;
use crate::types::{describe_abstract, ErasedPayload};
use crate::value::sealed;
use crate::{
    Any, CustomOps, Definitions, Downcast, Element, OCamlAbstract, OCamlErasable, OCamlType, Runtime, ShapeError,
    Typed, Value, ValueCell, ValueGuard,
};
use alloc::boxed::Box;
use alloc::string::String;
use core::convert::Infallible;
use core::marker::PhantomData;

/// A Rust value that OCaml owns: a block that points to a `T` outside OCaml's heap.
/// [`ocaml_abstract!`](crate::ocaml_abstract) says what the type is called in OCaml.
///
/// Rust sees it by shared reference only, since OCaml's threads and domains share it; mutexes and atomics change it.
/// The reference does not end with the next collection: it lasts as long as the place that holds the block.
///
/// ```
/// # use ocaml_boxroot::prelude::*;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// struct Counter(AtomicUsize);
/// fn create(rt: &mut Runtime) -> ValueGuard<'_, Boxed<Counter>> {
///     rt.boxed(Counter(AtomicUsize::new(0)))
/// }
/// fn next(rt: &mut Runtime, c: ValueRef<'_, Boxed<Counter>>) -> usize {
///     let counter: &Counter = c.payload(rt);
///     rt.minor_gc();
///     counter.0.fetch_add(1, Relaxed)
/// }
/// ```
///
/// # When it is dropped
/// When the collector finds that the block is unreachable, on the thread that collects, which may belong to another
/// domain. Nothing else runs in that domain then, and other domains may be waiting. So a `Drop` must not wait for
/// anything that another thread holds, or this thread below it: a mutex, a channel. It has no [`Runtime`], and
/// [`attach`](crate::attach) is an error; dropping roots is fine, and so is [`defer`](crate::defer). A type with such a
/// `Drop` asks to be dropped later: [`CustomOps::DEFER_DROP`]. A panic in a `Drop` inside the collector ends the
/// process with a message.
///
/// What is reachable when the program ends is not dropped: references to it may be left.
///
/// # What is checked
/// Each access compares a type identifier that the value carries, so a block of another type (which only wrong OCaml
/// declarations or an unsafe cast can bring) is an error. Values of another copy of this library in the same process
/// are of another type.
#[derive(Debug)]
pub struct Boxed<T> {
    _none: Infallible,
    _of: PhantomData<fn(T) -> T>,
}

// SAFETY: an abstract type of its own, never `float`; its parameters are those of T, which is checked at each access.
unsafe impl<T: OCamlAbstract> OCamlType for Boxed<T> {
    /// Panics when the name cannot be a type's.
    fn describe(to: &mut Definitions) -> String {
        describe_abstract::<T>(to)
    }
}

impl<T> Typed for Boxed<T> {
    type Type = Self;
}
impl<T> Element for Boxed<T> {}

impl Runtime {
    /// Makes OCaml the owner of `t`. Takes a box from Rust's allocator and three words of OCaml's heap, which learns of
    /// the box's size; [`boxed_custom`](Runtime::boxed_custom) can tell it more. Aborts when memory is short, as `Box`
    /// does.
    #[inline]
    pub fn boxed<T: Send + Sync + 'static>(&mut self, t: T) -> ValueGuard<'_, Boxed<T>> {
        self.own(t, Plain::<T>::TABLE, &payload::OPERATIONS[0], 0)
    }

    /// Makes OCaml the owner of `t`, with the operations of [`CustomOps`]. Cost and failures as for
    /// [`boxed`](Runtime::boxed); the first value of a type that can be marshalled also registers it.
    #[inline]
    pub fn boxed_custom<T: CustomOps>(&mut self, t: T) -> ValueGuard<'_, Boxed<T>> {
        let memory = t.memory();
        let usual = &payload::OPERATIONS[Custom::<T>::OPERATIONS];
        #[cfg(feature = "std")]
        let operations = crate::data::marshal::operations_of::<T>(self).unwrap_or(usual);
        #[cfg(not(feature = "std"))]
        let operations = usual;
        self.own(t, Custom::<T>::TABLE, operations, memory)
    }

    /// As [`boxed`](Runtime::boxed), in an exported function whose type parameters the payload's type has. Such a
    /// payload can be lent by exported functions with type parameters only, or by
    /// [`payload_erased`](Value::payload_erased): see [`TypeVar`](crate::TypeVar).
    #[inline]
    pub fn boxed_erased<T: OCamlErasable>(&mut self, t: T) -> ValueGuard<'_, Boxed<T>> {
        let boxed = self.boxed(ErasedPayload::new(t));
        // SAFETY: TYPED: ERASED.
        unsafe { boxed.cast() }
    }

    #[inline]
    fn own<T>(
        &mut self,
        t: T,
        table: &'static VTable,
        operations: &'static Operations,
        memory: usize,
    ) -> ValueGuard<'_, Boxed<T>> {
        let payload = Box::into_raw(Box::new(Payload { header: Header { table }, value: t }));
        let bytes = memory.saturating_add(size_of::<Payload<T>>());
        // SAFETY: LOCK; PAYLOAD: the box is given to the block, whose finaliser knows its type by the table.
        unsafe {
            let block = payload::alloc(operations, payload.cast(), bytes);
            ValueGuard::from_raw(self, block)
        }
    }
}

impl<'a, T: 'static> Value<'a, Boxed<T>> {
    /// The Rust value, for as long as nothing is collected. Panics when the block holds another type.
    #[inline]
    pub fn payload(self, rt: &Runtime) -> &'a T {
        let _ = rt;
        match self.into_any().payload_of::<T>() {
            Some(t) => t,
            None => wrong(error::<T>(self.into_any())),
        }
    }

    /// The Rust value, or an error when the block holds another type.
    #[inline]
    pub fn try_payload(self, rt: &Runtime) -> Result<&'a T, ShapeError> {
        let _ = rt;
        self.into_any().payload_of::<T>().ok_or_else(|| error::<T>(self.into_any()))
    }
}

impl<'a, T: OCamlErasable> Value<'a, Boxed<T>> {
    /// As [`payload`](Value::payload), of what [`boxed_erased`](Runtime::boxed_erased) has made.
    #[inline]
    pub fn payload_erased(self, rt: &Runtime) -> &'a T {
        let _ = rt;
        match self.into_any().payload_of::<ErasedPayload<T::Whole>>() {
            Some(t) => t.get(),
            None => wrong(error::<ErasedPayload<T::Whole>>(self.into_any())),
        }
    }

    /// As [`try_payload`](Value::try_payload), of what [`boxed_erased`](Runtime::boxed_erased) has made.
    #[inline]
    pub fn try_payload_erased(self, rt: &Runtime) -> Result<&'a T, ShapeError> {
        let _ = rt;
        let payload = self.into_any().payload_of::<ErasedPayload<T::Whole>>();
        payload.map(ErasedPayload::get).ok_or_else(|| error::<ErasedPayload<T::Whole>>(self.into_any()))
    }
}

impl<T: OCamlErasable> ValueCell<Boxed<T>> {
    /// As [`payload`](ValueCell::payload), of what [`boxed_erased`](Runtime::boxed_erased) has made.
    #[inline]
    pub fn payload_erased<'x>(&'x self, rt: &Runtime) -> &'x T {
        // SAFETY: KEPT.
        unsafe { &*core::ptr::from_ref(self.get(rt).payload_erased(rt)) }
    }

    /// As [`try_payload`](ValueCell::try_payload), of what [`boxed_erased`](Runtime::boxed_erased) has made.
    #[inline]
    pub fn try_payload_erased<'x>(&'x self, rt: &Runtime) -> Result<&'x T, ShapeError> {
        // SAFETY: KEPT.
        self.get(rt).try_payload_erased(rt).map(|t| unsafe { &*core::ptr::from_ref(t) })
    }
}

impl<'a> Value<'a, Any> {
    #[inline]
    fn payload_of<T: 'static>(self) -> Option<&'a T> {
        // SAFETY: PAYLOAD: the block owns it, and LIVE.
        payload::find::<T>(self).map(|t| unsafe { t.as_ref() })
    }
}

/// Whether the value is a Rust value of type `T`.
fn check_boxed<T: 'static>(v: Value<'_, Any>) -> Result<(), ShapeError> {
    payload::find::<T>(v).map(drop).ok_or_else(|| error::<T>(v))
}

impl<T: 'static> ValueCell<Boxed<T>> {
    /// The Rust value, for as long as the place is borrowed: across collections, with the lock released, and after
    /// OCaml's end, if the place is a root. Panics when the block holds another type.
    ///
    /// The reference is to the value that the place holds now. A place that may be given another value while it is
    /// borrowed (a field of a block) is borrowed for a time without collections only; a root or a slot cannot be
    /// assigned while it is borrowed.
    #[inline]
    pub fn payload<'x>(&'x self, rt: &Runtime) -> &'x T {
        // SAFETY: KEPT: what the place holds now lives as long as the place is borrowed, and does not move.
        unsafe { &*core::ptr::from_ref(self.get(rt).payload(rt)) }
    }

    /// As [`payload`](ValueCell::payload), or an error when the block holds another type.
    #[inline]
    pub fn try_payload<'x>(&'x self, rt: &Runtime) -> Result<&'x T, ShapeError> {
        // SAFETY: KEPT.
        self.get(rt).try_payload(rt).map(|t| unsafe { &*core::ptr::from_ref(t) })
    }
}

impl<T: 'static> Downcast for Boxed<T> {}
impl<T: 'static> sealed::Downcast for Boxed<T> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        check_boxed::<T>(v)
    }
}

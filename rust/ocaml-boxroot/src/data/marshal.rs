// SPDX-License-Identifier: MIT
//! Marshalling of Rust values that OCaml owns.
use crate::data::payload::{self, no_panic, Custom, Header, Payload};
use crate::glue::{self, Operations};
use crate::{CustomOps, Runtime};
use core::any::TypeId;
use core::cell::Cell;
use core::ffi::c_void;
use std::sync::Mutex;

glue::glue_functions! {
    fn obx_register_operations(operations: *const Operations) -> bool;
}

extern "C" {
    // These raise when memory is short, or the input ends. Nothing is to be dropped in the frames they are called from.
    fn caml_serialize_int_8(n: i64);
    fn caml_serialize_block_1(data: *const c_void, len: isize);
    fn caml_deserialize_uint_8() -> u64;
    fn caml_deserialize_block_1(data: *mut c_void, len: isize);
}

/// The operations of the types that can be marshalled.
static REGISTERED: Mutex<Vec<(TypeId, &'static Operations)>> = Mutex::new(Vec::new());

fn registered(id: TypeId) -> Option<&'static Operations> {
    let list = REGISTERED.lock().unwrap_or_else(|error| error.into_inner());
    list.iter().find(|(other, _)| *other == id).map(|(_, operations)| *operations)
}

impl Runtime {
    /// Tells OCaml's runtime how values of type `T` are read from marshalled data, if [`CustomOps::MARSHAL`] says it:
    /// before the first such value is read. Making a value does the same. Panics when memory is short.
    pub fn register_marshalled<T: CustomOps>(&self) {
        operations_of::<T>(self);
    }
}

/// `None` for types that are not marshalled.
pub fn operations_of<T: CustomOps>(rt: &Runtime) -> Option<&'static Operations> {
    let marshal = T::MARSHAL.as_ref()?;
    let id = TypeId::of::<T>();
    if let Some(operations) = registered(id) {
        return Some(operations);
    }
    let _ = rt;
    let usual = &payload::OPERATIONS[Custom::<T>::OPERATIONS];
    let operations: &'static Operations = Box::leak(Box::new(Operations {
        identifier: marshal.name.as_ptr(),
        serialize: Some(serialize),
        deserialize: Some(read_as::<T>),
        ..*usual
    }));
    {
        let mut list = REGISTERED.lock().unwrap_or_else(|error| error.into_inner());
        if let Some((_, other)) = list.iter().find(|(other, _)| *other == id) {
            return Some(other);
        }
        list.push((id, operations));
    }
    // SAFETY: LOCK; the operations are never freed, and read_as keeps to PAYLOAD.
    assert!(unsafe { obx_register_operations(operations) }, "no memory for a type that is marshalled");
    Some(operations)
}

thread_local! {
    /// The bytes that are marshalled now, or were last. They are kept here since the runtime's functions may raise, and
    /// nothing would free them.
    static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Replaces the bytes by those that `fill` writes. Returns their address, valid until the next call on this thread, and
/// their number; the address is null when `fill` fails, or the thread is ending.
fn replace(fill: impl FnOnce(&mut Vec<u8>) -> bool) -> (*mut u8, usize) {
    let replaced = BYTES.try_with(|cell| {
        let mut bytes = cell.take();
        bytes.clear();
        let filled = fill(&mut bytes);
        let place = if filled { bytes.as_mut_ptr() } else { core::ptr::null_mut() };
        let len = bytes.len();
        cell.set(bytes);
        (place, len)
    });
    replaced.unwrap_or((core::ptr::null_mut(), 0))
}

extern "C" fn serialize(block: isize, narrow: *mut usize, wide: *mut usize) {
    // SAFETY: PAYLOAD: a live block of ours. The bytes stay where they are, since nothing else happens on this thread.
    // Nothing in this frame is to be dropped when the runtime's functions raise.
    unsafe {
        let (place, len) = bytes_of(block);
        caml_serialize_int_8(len as i64);
        caml_serialize_block_1(place.cast(), len as isize);
        *narrow = payload::OURS.narrow as usize;
        *wide = payload::OURS.wide as usize;
    }
}

/// # Safety
/// A live block of ours.
unsafe fn bytes_of(block: isize) -> (*mut u8, usize) {
    // SAFETY: by the caller.
    unsafe {
        let Some(header) = payload::data(block) else { return (core::ptr::null_mut(), 0) };
        let table = payload::table(header);
        replace(|bytes| {
            if let Some(write) = table.marshal {
                no_panic("marshalling", table.identity, || write(header, bytes));
            }
            true
        })
    }
}

extern "C" fn read_as<T: CustomOps>(data: *mut c_void) -> usize {
    let data = data.cast::<*mut Header>();
    // SAFETY: the data of a new block, one word: null (PAYLOAD) until there is a value. Nothing in this frame is to be
    // dropped when the runtime's functions raise; the bytes stay where they are as in `serialize`.
    unsafe {
        data.write(core::ptr::null_mut());
        let len = caml_deserialize_uint_8() as usize;
        let (place, room) = replace(|bytes| {
            let fits = isize::try_from(len).is_ok() && bytes.try_reserve_exact(len).is_ok();
            if fits {
                bytes.resize(len, 0);
            }
            fits
        });
        if place.is_null() || room != len {
            glue::obx_refuse_data(c"a Rust value of impossible size".as_ptr());
        }
        caml_deserialize_block_1(place.cast(), len as isize);
        let payload = value_from::<T>(core::slice::from_raw_parts(place, len));
        if payload.is_null() {
            glue::obx_refuse_data(c"a Rust value that cannot be read".as_ptr());
        }
        data.write(payload);
    }
    payload::OURS.wide as usize
}

/// The payload, or null.
fn value_from<T: CustomOps>(bytes: &[u8]) -> *mut Header {
    let table = Custom::<T>::TABLE;
    let value = T::MARSHAL.as_ref().and_then(|m| no_panic("unmarshalling", table.identity, || (m.read)(bytes)));
    match value {
        Some(value) => Box::into_raw(Box::new(Payload { header: Header { table }, value })).cast(),
        None => core::ptr::null_mut(),
    }
}

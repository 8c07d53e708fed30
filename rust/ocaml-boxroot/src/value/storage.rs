// SPDX-License-Identifier: MIT
//! Roots that are dropped together.
use super::root::fail;
use crate::{Any, RootError, Runtime, Value, ValueCell, ValueGuard, ValueRef};
use core::ffi::{c_char, CStr};
use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ocaml_boxroot_sys::{self as sys, BoxRoot, BoxRootStorage};

/// A set of roots that are dropped together, without a visit to each: those of a connection, a session, a plug-in.
///
/// A root in it ends when it is [deleted](StorageRoot::delete), when the storage is [cleared](Storage::clear), and when
/// the storage is dropped; not when the [`StorageRoot`] goes out of scope. As a `StorageRoot` borrows the storage, the
/// compiler refuses to clear or drop that while one can be used:
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// fn total(rt: &mut Runtime, text: &str) -> usize {
///     let mut storage = ocaml::Storage::new(rt, "words");
///     let words: Vec<ocaml::StorageRoot<Str>> = text.split(' ').map(|word| storage.root(rt.string(word))).collect();
///     rt.minor_gc();
///     let total = words.iter().map(|word| word.get(rt).as_bytes().len()).sum();
///     storage.clear(rt); // `words` cannot be used any more
///     total
/// }
/// ```
///
/// A structure that owns a storage and refers to roots in it has [`StorageKey`]s, which borrow nothing, and which the
/// storage tests.
///
/// `Send + Sync`: threads and domains may make, use and delete roots in one storage at the same time. It may be dropped
/// anywhere, as a [`Root`](crate::Root) may; with the lock of a domain at hand its memory there comes back at once, and
/// otherwise when the domains next collect. A storage takes 5 KB, and 16 KB of address space for each domain that makes
/// roots in it, and each minor collection of such a domain looks at it, for a tenth of a microsecond.
// SET: the storage is not deleted, and nobody else clears or deletes it. `generation` is that of no other storage, nor
// of this one before it was last cleared.
pub struct Storage {
    storage: BoxRootStorage,
    generation: u64,
}

// SAFETY: a shared borrow makes roots, which needs a Runtime, so the lock, of any domain. It may be dropped on any
// thread, which needs no lock (boxroot_storage_delete). Clearing and counting need an exclusive borrow, so that nobody
// else uses it or a root in it, and a Runtime.
unsafe impl Send for Storage {}
// SAFETY: as for Send.
unsafe impl Sync for Storage {}

/// The bytes of a name that the C library keeps.
const NAME: usize = 47;

/// A number that was never returned before.
fn new_generation() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed)
}

impl Storage {
    /// A storage without roots. The name, for reports, ends after 47 bytes, or before a NUL. Never runs the collector.
    /// Panics when memory is short.
    ///
    /// Cost: an allocation and a system call, unless one that was dropped is used again.
    pub fn new(rt: &Runtime, name: &str) -> Storage {
        match Storage::try_new(rt, name) {
            Ok(storage) => storage,
            Err(error) => fail(error),
        }
    }

    /// A storage without roots, or an error when memory is short.
    pub fn try_new(rt: &Runtime, name: &str) -> Result<Storage, RootError> {
        let _ = rt;
        let mut text = [0; NAME + 1];
        let mut end = 0;
        for c in name.chars().take_while(|c| *c != '\0') {
            if end + c.len_utf8() > NAME {
                break;
            }
            end += c.encode_utf8(&mut text[end..]).len();
        }
        // SAFETY: LOCK; a C string, which is copied.
        match unsafe { sys::boxroot_storage_create(text.as_ptr().cast::<c_char>()) } {
            Some(storage) => Ok(Storage { storage, generation: new_generation() }),
            None => Err(RootError::last()),
        }
    }

    /// A root in this storage that holds `v`. Never runs the collector. Panics when memory is short, and in a domain
    /// that has ended, that is, in a finaliser that runs at its end.
    ///
    /// Cost: a call, and that of [`Root::new`](crate::Root::new).
    #[inline]
    pub fn root_value<T>(&self, rt: &Runtime, v: Value<'_, T>) -> StorageRoot<'_, T> {
        match self.try_root_value(rt, v) {
            Ok(root) => root,
            Err(error) => fail(error),
        }
    }

    /// A root in this storage that holds `v`, or an error where [`root_value`](Storage::root_value) panics.
    #[inline]
    pub fn try_root_value<T>(&self, rt: &Runtime, v: Value<'_, T>) -> Result<StorageRoot<'_, T>, RootError> {
        let _ = rt;
        // SAFETY: SET; LOCK; LIVE for the value.
        match unsafe { sys::boxroot_storage_add(self.storage, v.raw()) } {
            Some(root) => Ok(StorageRoot { root, _storage: PhantomData, _type: PhantomData }),
            None => Err(RootError::last_in_storage()),
        }
    }

    /// A root in this storage that holds the value just made. Panics as [`root_value`](Storage::root_value) does.
    #[inline]
    pub fn root<T>(&self, v: ValueGuard<'_, T>) -> StorageRoot<'_, T> {
        self.root_value(v.rt(), v.value())
    }

    /// A root in this storage that holds `v`, by a key, which does not borrow the storage. Panics as
    /// [`root_value`](Storage::root_value) does.
    #[inline]
    pub fn insert<T>(&self, rt: &Runtime, v: Value<'_, T>) -> StorageKey<T> {
        match self.try_insert(rt, v) {
            Ok(key) => key,
            Err(error) => fail(error),
        }
    }

    /// A root in this storage that holds `v`, by a key, or an error where [`root_value`](Storage::root_value) panics.
    #[inline]
    pub fn try_insert<T>(&self, rt: &Runtime, v: Value<'_, T>) -> Result<StorageKey<T>, RootError> {
        // TICKET holds of the key: HELD, and the root is of this generation.
        let root = self.try_root_value(rt, v)?.root;
        Ok(StorageKey { root, generation: self.generation, _type: PhantomData })
    }

    /// The place of the root that the key stands for. `None` when the key is of another storage, or the storage was
    /// cleared since. Cost: a comparison.
    #[inline]
    pub fn get<'a, T>(&'a self, key: &'a StorageKey<T>) -> Option<ValueRef<'a, T>> {
        // SAFETY: TICKET, with the same generation: the root is live as long as the key, which cannot be consumed, and
        // the storage, which cannot be cleared, are borrowed. Only the collector writes the cell meanwhile.
        (key.generation == self.generation).then(|| unsafe { place(key.root) })
    }

    /// The root that the key stands for; the key is given up. `None` as for [`get`](Storage::get). Cost: a comparison.
    #[inline]
    pub fn take<T>(&self, key: StorageKey<T>) -> Option<StorageRoot<'_, T>> {
        // TICKET, with the same generation, is HELD.
        (key.generation == self.generation).then_some(StorageRoot {
            root: key.root,
            _storage: PhantomData,
            _type: PhantomData,
        })
    }

    /// Drops all roots in this storage, which is as new. Never runs the collector. After the C library was torn down,
    /// which drops all roots, there is nothing to drop.
    ///
    /// Cost: a step for each domain that has used the storage, and for each 16 KB of roots that this domain has made.
    pub fn clear(&mut self, rt: &Runtime) {
        let _ = rt;
        // Before: should it fail, the roots stay, and no key leads to them.
        self.generation = new_generation();
        // SAFETY: SET; LOCK. No StorageRoot, and no place in this storage, is used any more, since self is borrowed
        // exclusively; a StorageKey has another generation.
        let _ = unsafe { sys::boxroot_storage_clear(self.storage) };
    }

    /// How many roots this storage has that this domain has made, or taken over from one that has ended. Roots that
    /// other threads and domains have deleted may still count, and those whose deletion waits for the collector; with
    /// the feature `checked` also those that were deleted lately.
    ///
    /// Cost: a step for each 16 KB of roots, and for each place in them that is free.
    pub fn count(&mut self, rt: &Runtime) -> usize {
        let _ = rt;
        // SAFETY: SET; LOCK; nobody else uses it, or a root in it, since self is borrowed exclusively.
        unsafe { sys::boxroot_storage_count(self.storage) }
    }

    /// The name that it was given, as far as it was kept.
    pub fn name(&self) -> &str {
        // SAFETY: SET: a C string that lasts as long as the storage, and never changes.
        let name = unsafe { CStr::from_ptr(sys::boxroot_storage_name(self.storage)) };
        name.to_str().unwrap_or("")
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: SET; it is not used any more, nor is a root in it: a StorageRoot borrows it, a StorageKey is of no
        // use without it. The call needs no lock.
        unsafe { sys::boxroot_storage_delete(self.storage) }
    }
}

impl core::fmt::Debug for Storage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Storage").field(&self.name()).finish()
    }
}

/// # Safety
/// The root is live, and nobody modifies it, for all of `'a`; it holds a value of the type that `T` describes.
#[inline]
unsafe fn place<'a, T>(root: BoxRoot) -> ValueRef<'a, T> {
    // SAFETY: by the caller: PLACE. Both are one word.
    unsafe { &*sys::boxroot_get_ref(root).cast() }
}

// --- roots

/// A root in a [`Storage`], which it borrows. Pointer-sized, with a niche; `Send + Sync` for every `T`; passed by
/// reference it is a [`ValueRef`](crate::ValueRef), as a [`Root`](crate::Root) is.
///
/// When it goes out of scope, or is forgotten, nothing happens: the root lives until the storage is cleared or dropped.
/// [`delete`](StorageRoot::delete) and [`drop_ref`](StorageRoot::drop_ref) end it earlier.
// HELD: the root is live, in the storage that is borrowed, nobody else deletes or modifies it, and it holds a value of
// the type that T describes.
#[repr(transparent)]
pub struct StorageRoot<'s, T = Any> {
    root: BoxRoot,
    _storage: PhantomData<&'s Storage>,
    _type: PhantomData<fn() -> T>,
}

// SAFETY: all that can be done without a Runtime is to delete it, which any thread may do (boxroot_delete), and to name
// the place. Reading needs a Runtime, so the lock; modifying needs that and an exclusive borrow.
unsafe impl<T> Send for StorageRoot<'_, T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for StorageRoot<'_, T> {}

impl<'s, T> StorageRoot<'s, T> {
    /// Makes this root hold `v`, in the same storage. Panics when memory is short.
    #[inline]
    pub fn set_value(&mut self, rt: &Runtime, v: Value<'_, T>) {
        if let Err(error) = self.try_set_value(rt, v) {
            fail(error)
        }
    }

    /// Makes this root hold `v`, in the same storage; on an error it holds its old value.
    #[inline]
    pub fn try_set_value(&mut self, rt: &Runtime, v: Value<'_, T>) -> Result<(), RootError> {
        let _ = rt;
        // SAFETY: HELD, and no reference to the old cell is left, since self is borrowed exclusively; LOCK; LIVE.
        match unsafe { sys::boxroot_modify(&mut self.root, v.raw()) } {
            true => Ok(()),
            false => Err(RootError::last_in_storage()),
        }
    }

    /// Makes this root hold the value just made, instead of a new root. Panics when memory is short.
    #[inline]
    pub fn set(&mut self, v: ValueGuard<'_, T>) -> &ValueCell<T> {
        self.set_value(v.rt(), v.value());
        self
    }

    /// Ends this root alone. Needs no lock, and may be called wherever a [`Root`](crate::Root) may be dropped.
    #[inline]
    pub fn delete(self) {
        // SAFETY: HELD; it is not used any more, and has no Drop.
        unsafe { sys::boxroot_delete(self.root) }
    }

    /// Ends this root alone, with the lock at hand, which is a little faster.
    #[inline]
    pub fn drop_ref(self, rt: &Runtime) {
        // SAFETY: HELD; it is not used any more, and has no Drop; LOCK.
        unsafe { sys::boxroot_delete_in(rt.domain(), self.root) }
    }

    /// The place of this root, for as long as the storage is borrowed: it cannot be modified or deleted by itself any
    /// more.
    #[inline]
    pub fn into_ref(self) -> ValueRef<'s, T> {
        // SAFETY: HELD for all of 's, since self is given up: nobody deletes or modifies the root, and the storage is
        // not cleared or dropped.
        unsafe { place(self.root) }
    }
}

impl<T> Deref for StorageRoot<'_, T> {
    type Target = ValueCell<T>;
    #[inline]
    fn deref(&self) -> &ValueCell<T> {
        // SAFETY: HELD: the root cannot be modified or deleted as long as self is borrowed.
        unsafe { place(self.root) }
    }
}

impl<T> core::fmt::Debug for StorageRoot<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("StorageRoot")
    }
}

// --- keys

/// What stands for a root in a [`Storage`] without borrowing it, for structures that own the storage, too. Two words;
/// `Send + Sync` for every `T`; no other key stands for the same root.
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// # use std::collections::HashMap;
/// struct Session {
///     storage: ocaml::Storage,
///     handlers: HashMap<String, ocaml::StorageKey<Fun<(Str,), Unit>>>,
/// }
///
/// impl Session {
///     fn on(&mut self, rt: &Runtime, event: &str, handler: ocaml::Value<'_, Fun<(Str,), Unit>>) {
///         let key = self.storage.insert(rt, handler);
///         if let Some(old) = self.handlers.insert(event.to_owned(), key) {
///             self.storage.take(old).unwrap().drop_ref(rt);
///         }
///     }
///     fn fire(&self, rt: &mut Runtime, event: &str, text: &str) -> Result<(), ocaml::Exception> {
///         match self.handlers.get(event).and_then(|key| self.storage.get(key)) {
///             Some(handler) => handler.call(rt, (text,)).map(drop),
///             None => Ok(()),
///         }
///     }
/// }
/// ```
///
/// When it goes out of scope nothing happens: the root lives until the storage is cleared or dropped.
// TICKET: as long as a storage has this generation, the root is live, in that storage, nobody else deletes or modifies
// it, and it holds a value of the type that T describes.
pub struct StorageKey<T = Any> {
    root: BoxRoot,
    generation: u64,
    _type: PhantomData<fn() -> T>,
}

// SAFETY: by itself it can only be dropped, which does nothing. With the storage it is what StorageRoot is.
unsafe impl<T> Send for StorageKey<T> {}
// SAFETY: as for Send.
unsafe impl<T> Sync for StorageKey<T> {}

impl<T> core::fmt::Debug for StorageKey<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("StorageKey")
    }
}

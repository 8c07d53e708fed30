// SPDX-License-Identifier: MIT
//! Local roots: what keeps values alive while a function runs.
use super::root::fail;
use crate::glue::{self, RootsBlock};
use crate::{Any, RootError, Runtime, Value, ValueCell, ValueGuard, ValueRef};
use alloc::alloc::{alloc, dealloc, Layout};
use core::marker::PhantomData;
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::Ordering::Relaxed;
#[cfg(ocaml5)]
use ocaml_boxroot_sys as sys;

/// A local root of a [`frame`](Runtime::frame), to be filled.
// SLOT: the cell is a local root for all of 'f, and belongs to this slot alone.
pub struct Slot<'f> {
    cell: &'f ValueCell<Any>,
}

impl<'f> Slot<'f> {
    pub(crate) fn new(cell: &'f ValueCell<Any>) -> Slot<'f> {
        Slot { cell }
    }

    /// Keeps the value for the rest of the frame.
    #[inline]
    pub fn root<T>(self, v: ValueGuard<'_, T>) -> ValueRef<'f, T> {
        self.root_value(v.rt(), v.value())
    }

    /// Keeps the value for the rest of the frame, and gives the runtime back for as long as it was lent.
    #[inline]
    pub fn root_and_rt<'a, T>(self, v: ValueGuard<'a, T>) -> (ValueRef<'f, T>, &'a mut Runtime) {
        (self.root_value(v.rt(), v.value()), v.into_rt())
    }

    /// Keeps the value for the rest of the frame.
    #[inline]
    pub fn root_value<T>(self, rt: &Runtime, v: Value<'_, T>) -> ValueRef<'f, T> {
        let _ = rt;
        self.cell.word().store(v.raw(), Relaxed);
        // SAFETY: SLOT: nothing else is stored in it any more, since self is gone.
        unsafe { self.cell.cast() }
    }

    /// Keeps the value until the slot is used again.
    #[inline]
    pub fn set_value<T>(&mut self, rt: &Runtime, v: Value<'_, T>) -> ValueRef<'_, T> {
        let _ = rt;
        self.cell.word().store(v.raw(), Relaxed);
        // SAFETY: SLOT: nothing else is stored in it as long as self is borrowed.
        unsafe { self.cell.cast() }
    }

    /// Keeps the value just made until the slot is used again.
    #[inline]
    pub fn set<T>(&mut self, v: ValueGuard<'_, T>) -> ValueRef<'_, T> {
        self.set_value(v.rt(), v.value())
    }
}

impl core::fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Slot")
    }
}

/// A block in the runtime's list of local roots.
// LINKED: from `link` to `drop` the block is in the list, in front of those that were linked before, and points to
// cells that hold values. Frames end in the reverse order, since each lasts as long as a call of `frame`.
struct Frame<const N: usize> {
    block: RootsBlock,
    list: *mut *mut RootsBlock,
    cells: [ValueCell<Any>; N],
}

impl Runtime {
    /// Runs `f` with `N` local roots on the stack. The slots cannot leave `f`, and end with it, also by a panic or an
    /// early return.
    ///
    /// What `f` returns may borrow the runtime, so a value made last needs no root:
    ///
    /// ```
    /// # use ocaml_boxroot::prelude::*;
    /// fn hello(rt: &mut Runtime) -> ValueGuard<'_, (Str, Str)> {
    ///     rt.frame(|rt, [a, b]| {
    ///         let a = a.root(rt.string("hello"));
    ///         let b = b.root(rt.string("world"));
    ///         rt.pair(a, b)
    ///     })
    /// }
    /// ```
    #[inline]
    pub fn frame<'a, const N: usize, R>(
        &'a mut self,
        f: impl for<'f> FnOnce(&'a mut Runtime, [Slot<'f>; N]) -> R,
    ) -> R {
        // SAFETY: immediates.
        let mut frame = Frame::new([const { unsafe { ValueCell::new(1) } }; N]);
        let unlink = frame.link(self);
        let mut i = 0;
        let slots = [(); N].map(|()| {
            i += 1;
            // SAFETY: the cells last as long as 'f, which ends with this call of `f`; each becomes one slot. All access
            // is by pointers that come from one raw pointer, as the collector writes too.
            Slot::new(unsafe { &*(&raw const (*unlink.0).cells).cast::<ValueCell<Any>>().add(i - 1) })
        });
        f(self, slots)
    }

    /// Runs `f` with these words, valid values, in places that are local roots.
    #[inline]
    pub(crate) fn with_places<const N: usize, R>(
        &mut self,
        words: [isize; N],
        f: impl FnOnce(&mut Runtime, &[ValueCell<Any>; N]) -> R,
    ) -> R {
        // SAFETY: by the caller, now; LINKED afterwards.
        let mut frame = Frame::new(words.map(|word| unsafe { ValueCell::new(word) }));
        let unlink = frame.link(self);
        // SAFETY: the cells last until after `f`, and all access is by pointers from one raw pointer.
        f(self, unsafe { &(*unlink.0).cells })
    }
}

impl<const N: usize> Frame<N> {
    #[inline(always)]
    fn new(cells: [ValueCell<Any>; N]) -> Self {
        let block = RootsBlock { next: null_mut(), tables: 1, items: N as isize, table: [null_mut(); 5] };
        Frame { block, list: null_mut(), cells }
    }

    /// From here on the frame is not moved, until what is returned is dropped.
    #[inline(always)]
    fn link(&mut self, rt: &mut Runtime) -> Unlink<N> {
        let frame = &raw mut *self;
        // SAFETY: LOCK. LINKED from here on.
        unsafe {
            (*frame).list = local_roots(rt);
            (*frame).block.table[0] = (&raw mut (*frame).cells).cast();
            (*frame).block.next = *(*frame).list;
            *(*frame).list = &raw mut (*frame).block;
        }
        Unlink(frame)
    }
}

/// The beginning of the list, in the state of the domain.
#[cfg(ocaml5)]
#[inline(always)]
fn local_roots(rt: &Runtime) -> *mut *mut RootsBlock {
    // SAFETY: LOCK: it is the record of this thread's domain, which OCaml 5 identifies by the address of its state.
    unsafe { sys::domain_state(rt.domain()).byte_add(glue::obx_local_roots).cast() }
}

#[cfg(not(ocaml5))]
#[inline(always)]
fn local_roots(_: &Runtime) -> *mut *mut RootsBlock {
    // SAFETY: LOCK: the word is set when OCaml starts; the offset is that of the field.
    unsafe { glue::Caml_state.load(Relaxed).byte_add(glue::obx_local_roots).cast() }
}

/// Unlinks a frame that stays where it is.
struct Unlink<const N: usize>(*mut Frame<N>);
impl<const N: usize> Drop for Unlink<N> {
    fn drop(&mut self) {
        // SAFETY: LINKED. The lock is held, on the thread that linked it.
        unsafe { *(*self.0).list = (*self.0).block.next }
    }
}

// --- any number of them

/// The cells that a [`locals`](Runtime::locals) has on the stack.
const FIRST: usize = 8;
/// A block has tables of one size: so many, and so many sizes.
const TABLES: usize = 5;
const SIZES: [usize; TABLES] = [64, 512, 8192, 1 << 18, 1 << 22];

/// Local roots in any number, see [`locals`](Runtime::locals).
// GROWING: `frame` is linked (LINKED), and stays where it is as long as a reference to this can be used. Only the
// thread that linked it has one.
pub struct Locals {
    frame: *mut Tables,
    _local: PhantomData<*mut ()>,
}

impl Locals {
    /// A new local root, to be filled: see [`Slot`]. Panics when memory is short.
    #[inline]
    pub fn slot(&self, rt: &Runtime) -> Slot<'_> {
        match self.try_slot(rt) {
            Ok(slot) => slot,
            Err(error) => fail(error),
        }
    }

    /// A new local root, or an error when memory is short, or 22 million are in use.
    #[inline]
    pub fn try_slot(&self, rt: &Runtime) -> Result<Slot<'_>, RootError> {
        let _ = rt;
        // SAFETY: GROWING. LOCK: nobody looks at the list meanwhile.
        let cell = unsafe { Tables::take(self.frame)? };
        // SAFETY: the cell is a local root as long as self can be borrowed, and is handed out once. All access is by
        // pointers that come from the table's, as the collector writes too.
        Ok(Slot::new(unsafe { &*cell }))
    }

    /// Keeps the value just made until the end of the call of `locals`. Panics when memory is short.
    #[inline]
    pub fn root<T>(&self, v: ValueGuard<'_, T>) -> ValueRef<'_, T> {
        self.slot(v.rt()).root(v)
    }

    /// As [`root`](Locals::root), and gives the runtime back for as long as it was lent.
    #[inline]
    pub fn root_and_rt<'a, T>(&self, v: ValueGuard<'a, T>) -> (ValueRef<'_, T>, &'a mut Runtime) {
        self.slot(v.rt()).root_and_rt(v)
    }

    /// Keeps the value until the end of the call of `locals`. Panics when memory is short.
    #[inline]
    pub fn root_value<T>(&self, rt: &Runtime, v: Value<'_, T>) -> ValueRef<'_, T> {
        self.slot(rt).root_value(rt, v)
    }
}

impl core::fmt::Debug for Locals {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Locals")
    }
}

/// What is linked: a block with cells on the stack, and behind it those of `more` that are in use, each with tables of
/// its size from Rust's allocator. All blocks are here, in one object on the stack: when OCaml code catches an
/// exception, the runtime takes those off the list that are at addresses below the handler's stack.
// FULL: what is in use of a table is what the runtime sees of it, and holds values. The cells from `next` to `end` were
// not handed out; they hold immediates.
struct Tables {
    block: RootsBlock,
    more: [RootsBlock; TABLES],
    /// How many tables there are; table i belongs to block i / TABLES of `more`.
    tables: usize,
    next: *mut ValueCell<Any>,
    end: *mut ValueCell<Any>,
    list: *mut *mut RootsBlock,
    /// What was the first on the list before.
    before: *mut RootsBlock,
    cells: [ValueCell<Any>; FIRST],
}

impl Tables {
    /// A cell that was not handed out yet.
    ///
    /// # Safety
    /// The frame is linked, and the lock held.
    #[inline]
    unsafe fn take(this: *mut Tables) -> Result<*mut ValueCell<Any>, RootError> {
        // SAFETY: by the caller; FULL.
        unsafe {
            if (*this).next == (*this).end {
                Tables::grow(this)?;
            }
            let cell = (*this).next;
            (*this).next = cell.add(1);
            Ok(cell)
        }
    }

    /// # Safety
    /// As for `take`.
    #[cold]
    #[inline(never)]
    unsafe fn grow(this: *mut Tables) -> Result<(), RootError> {
        // SAFETY: by the caller: nobody looks at the blocks meanwhile.
        unsafe {
            let (kind, table) = ((*this).tables / TABLES, (*this).tables % TABLES);
            if kind == SIZES.len() {
                return Err(RootError::OutOfMemory);
            }
            let cells = alloc(layout(kind)).cast::<ValueCell<Any>>();
            if cells.is_null() {
                return Err(RootError::OutOfMemory);
            }
            for i in 0..SIZES[kind] {
                cells.add(i).write(ValueCell::new(1));
            }
            let block = addr_of_mut!((*this).more).cast::<RootsBlock>().add(kind);
            (*block).table[table] = cells.cast();
            (*block).tables = table as isize + 1;
            if table == 0 {
                // FULL holds of the block. It comes right behind the first.
                (*block).items = SIZES[kind] as isize;
                (*block).next = (*this).block.next;
                (*this).block.next = block;
            }
            (*this).tables += 1;
            (*this).next = cells;
            (*this).end = cells.add(SIZES[kind]);
        }
        Ok(())
    }
}

fn layout(kind: usize) -> Layout {
    Layout::array::<ValueCell<Any>>(SIZES[kind]).expect("32 MiB at most")
}

/// Unlinks the frame, and frees its tables.
struct UnlinkTables(*mut Tables);
impl Drop for UnlinkTables {
    fn drop(&mut self) {
        let this = self.0;
        // SAFETY: LINKED. The lock is held, on the thread that linked it. No slot is left, so the tables are ours.
        unsafe {
            *(*this).list = (*this).before;
            for i in 0..(*this).tables {
                dealloc((*this).more[i / TABLES].table[i % TABLES].cast(), layout(i / TABLES));
            }
        }
    }
}

impl Runtime {
    /// Runs `f` with local roots in any number, which are made while it runs. They cannot leave `f`, and end with it,
    /// also by a panic or an early return. For a number that is known [`frame`](Runtime::frame) is faster.
    ///
    /// The first eight are on the stack, further ones in tables. A local root costs a comparison and two stores, and
    /// each collection looks at all of the room that there is. They are never given up one by one: a
    /// [`Slot`] that is used again with [`set`](Slot::set) needs no further room.
    ///
    /// Calls may be nested, and functions that are called may make local roots in the `Locals` of their caller, to
    /// hand values to it:
    ///
    /// ```
    /// # use ocaml_boxroot::{self as ocaml, prelude::*};
    /// fn words<'f>(rt: &mut Runtime, text: &str, locals: &'f ocaml::Locals) -> Vec<ValueRef<'f, Str>> {
    ///     text.split(' ').map(|word| locals.root(rt.string(word))).collect()
    /// }
    /// fn last(rt: &mut Runtime, text: &str) -> Option<Root<Str>> {
    ///     rt.locals(|rt, locals| {
    ///         let words = words(rt, text, locals);
    ///         rt.minor_gc();
    ///         words.last().map(|word| word.get(rt).root(rt))
    ///     })
    /// }
    /// ```
    #[inline]
    pub fn locals<'a, R>(&'a mut self, f: impl for<'f> FnOnce(&'a mut Runtime, &'f Locals) -> R) -> R {
        const NONE: RootsBlock = RootsBlock { next: null_mut(), tables: 0, items: 0, table: [null_mut(); 5] };
        let mut tables = Tables {
            block: RootsBlock { tables: 1, items: FIRST as isize, ..NONE },
            more: [NONE; TABLES],
            tables: 0,
            next: null_mut(),
            end: null_mut(),
            list: local_roots(self),
            before: null_mut(),
            // SAFETY: immediates.
            cells: [const { unsafe { ValueCell::new(1) } }; FIRST],
        };
        let frame = &raw mut tables;
        // SAFETY: LOCK. LINKED and FULL from here on; `tables` is not moved, and used by way of `frame` alone.
        let unlink = unsafe {
            let cells = (&raw mut (*frame).cells).cast::<ValueCell<Any>>();
            (*frame).next = cells;
            (*frame).end = cells.add(FIRST);
            (*frame).block.table[0] = cells.cast();
            (*frame).before = *(*frame).list;
            (*frame).block.next = (*frame).before;
            *(*frame).list = &raw mut (*frame).block;
            UnlinkTables(frame)
        };
        let locals = Locals { frame: unlink.0, _local: PhantomData };
        f(self, &locals)
    }
}

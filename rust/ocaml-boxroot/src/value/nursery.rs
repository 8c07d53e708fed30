// SPDX-License-Identifier: MIT
//! Blocks made without a collection: the reserved part of the minor heap, and what is filled step by step.
use crate::glue::{self, Reserve, PIECE};
use crate::value::{ABSTRACT, FIRST_SPECIAL_TAG, NO_SCAN};
use crate::{AllocError, Any, Runtime, ShapeError, Value, ValueGuard};
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::null_mut;

/// A scope without collections, see [`Runtime::build`]. It derefs to [`Runtime`], for reading roots.
// QUIET: while it exists, nobody can use the Runtime for writing, so no collection happens.
// CARVED: the words from `at` to `piece_end` are ours, in the minor heap, inside one block for the runtime; all other
// words from there to `end` are whole such blocks, of PIECE words. All that was carved are complete blocks. Dropping it
// fills the rest.
pub struct Nursery {
    pub(crate) at: Cell<*mut usize>,
    pub(crate) piece_end: Cell<*mut usize>,
    end: *mut usize,
    color: usize,
    /// About how many words are to be allocated in the major heap, before the reserved ones are used.
    pub(crate) surplus: Cell<usize>,
    rt: *const Runtime,
    _local: PhantomData<*mut ()>,
}

/// The words of a block with so many fields, for [`Runtime::build`].
pub const fn block_words(fields: usize) -> usize {
    fields + 1
}

/// The words of a string with so many bytes, for [`Runtime::build`].
pub const fn string_words(bytes: usize) -> usize {
    bytes / 8 + 2
}

impl Runtime {
    /// Builds a value from any number of blocks, all alive at once and none rooted, since no collection can happen
    /// inside `f`.
    ///
    /// `words` is how much the blocks take, headers included ([`block_words`], [`string_words`]): so much is reserved
    /// in the minor heap. What exceeds it is allocated in the major heap, so a wrong estimate costs time only. A block
    /// costs some instructions in the minor heap, and 15 to 20 ns in the major heap. Panics of `f` pass through, and
    /// leave a sound heap.
    ///
    /// ```
    /// # use ocaml_boxroot::{self as ocaml, prelude::*};
    /// fn numbered<'a>(rt: &'a mut Runtime, words: &[&str]) -> ValueGuard<'a, ocaml::List<(Int, Str)>> {
    ///     let size = words.iter().map(|word| 2 * ocaml::block_words(2) + ocaml::string_words(word.len())).sum();
    ///     rt.build(size, |n| {
    ///         let pairs = words.iter().enumerate().rev();
    ///         pairs.fold(n.nil(), |list, (i, word)| n.cons(n.pair(n.int(i as i32), n.string(word)), list))
    ///     })
    /// }
    /// ```
    pub fn build<'a, T>(
        &'a mut self,
        words: usize,
        f: impl for<'n> FnOnce(&'n Nursery) -> Value<'n, T>,
    ) -> ValueGuard<'a, T> {
        let nursery = Nursery::new(self, words);
        let raw = f(&nursery).raw();
        drop(nursery);
        // SAFETY: no collection happened since it was made (QUIET), nor while filling the rest.
        unsafe { ValueGuard::from_raw(self, raw) }
    }

    /// As [`build`](Runtime::build), for closures that can fail; their error is returned, and what they built is
    /// garbage.
    pub fn try_build<'a, T, E>(
        &'a mut self,
        words: usize,
        f: impl for<'n> FnOnce(&'n Nursery) -> Result<Value<'n, T>, E>,
    ) -> Result<ValueGuard<'a, T>, E> {
        let nursery = Nursery::new(self, words);
        let raw = f(&nursery)?.raw();
        drop(nursery);
        // SAFETY: as in `build`.
        Ok(unsafe { ValueGuard::from_raw(self, raw) })
    }
}

/// A block that is to be filled at once.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) fields: *mut isize,
    pub(crate) young: bool,
}

impl Nursery {
    /// The caller does not use `rt` for writing while the nursery exists, except through it: not expressed by a
    /// lifetime, so that the callers of this module can take `rt` back after dropping it.
    #[inline]
    pub(crate) fn new(rt: &mut Runtime, words: usize) -> Nursery {
        let mut r = Reserve { at: null_mut(), piece_end: null_mut(), end: null_mut(), color: 0, surplus: 0 };
        if words > 0 {
            // SAFETY: LOCK.
            unsafe { glue::obx_reserve(words, &mut r) };
        }
        Nursery::at(rt, r)
    }

    /// For few blocks that are made without `&mut Runtime`: all are in the major heap.
    pub(crate) fn in_major_heap(rt: &Runtime) -> Nursery {
        Nursery::at(rt, Reserve { at: null_mut(), piece_end: null_mut(), end: null_mut(), color: 0, surplus: 0 })
    }

    #[inline]
    fn at(rt: *const Runtime, r: Reserve) -> Nursery {
        Nursery {
            at: Cell::new(r.at),
            piece_end: Cell::new(r.piece_end),
            end: r.end,
            color: r.color,
            surplus: Cell::new(r.surplus),
            rt,
            _local: PhantomData,
        }
    }

    /// The words left in this piece.
    #[inline(always)]
    fn room(&self) -> usize {
        // Both pointers may be null.
        (self.piece_end.get() as usize - self.at.get() as usize) / 8
    }

    /// A block of `size` fields that hold nothing yet. `size` > 0.
    #[inline]
    pub(crate) fn alloc(&self, size: usize, tag: u8) -> Result<Block, AllocError> {
        let at = self.at.get();
        if size < self.room() {
            // SAFETY: CARVED: size + 1 words are ours.
            unsafe {
                at.write((size << 10) | self.color | usize::from(tag));
                self.at.set(at.add(size + 1));
                Ok(Block { fields: at.add(1).cast(), young: true })
            }
        } else {
            self.alloc_slow(size, tag)
        }
    }

    #[cold]
    fn alloc_slow(&self, size: usize, tag: u8) -> Result<Block, AllocError> {
        if self.next_piece(size) {
            return self.alloc(size, tag);
        }
        // SAFETY: QUIET: the lock is held; the function does not run the collector.
        match unsafe { glue::obx_alloc_major(size, tag.into()) } {
            0 => Err(AllocError { words: size }),
            block => Ok(Block { fields: block as *mut isize, young: false }),
        }
    }

    /// Goes on with the next piece, if there is one, and a block of so many fields fits in it.
    ///
    /// What exceeds the minor heap comes first. Most blocks point to earlier ones, and pointers from the major heap to
    /// the minor heap cost more: a minor collection follows them also if all of it is dead.
    fn next_piece(&self, size: usize) -> bool {
        let surplus = self.surplus.get();
        if size < PIECE && surplus > 0 {
            self.surplus.set(surplus.saturating_sub(size + 1));
            return false;
        }
        let more = size < PIECE && self.piece_end.get() != self.end;
        if more {
            self.fill();
            let next = self.piece_end.get();
            self.at.set(next);
            // SAFETY: CARVED: whole pieces follow.
            self.piece_end.set(unsafe { next.add(PIECE) });
        }
        more
    }

    /// Makes a block of what is left of this piece.
    fn fill(&self) {
        let left = (self.piece_end.get() as usize - self.at.get() as usize) / 8;
        if left > 0 {
            // SAFETY: CARVED.
            unsafe { self.at.get().write(((left - 1) << 10) | self.color | usize::from(ABSTRACT)) };
            self.at.set(self.piece_end.get());
        }
    }

    /// A scanned block with these fields.
    #[inline]
    pub(crate) fn filled<T, const N: usize>(&self, tag: u8, fields: [isize; N]) -> Result<Value<'_, T>, AllocError> {
        let at = self.at.get();
        let raw = if N < self.room() {
            // SAFETY: CARVED: N + 1 words are ours.
            unsafe {
                at.write((N << 10) | self.color | usize::from(tag));
                self.at.set(at.add(N + 1));
                let place = at.add(1);
                place.cast::<[isize; N]>().write(fields);
                place as isize
            }
        } else {
            // The slow path gets a copy, so that the fields of the fast one stay in registers: written to memory one by
            // one and read again as a vector, they would hold up the processor longer than all else here takes.
            let copy = fields;
            self.filled_slow(tag, &copy)?
        };
        // SAFETY: complete, and LIVE by QUIET: the callers pass fields that live as long as the nursery. They say which
        // type it has.
        Ok(unsafe { Value::from_raw(raw) })
    }

    #[cold]
    #[inline(never)]
    fn filled_slow(&self, tag: u8, fields: &[isize]) -> Result<isize, AllocError> {
        let size = fields.len();
        if self.next_piece(size) {
            let block = self.alloc(size, tag)?;
            // SAFETY: a new block of so many fields, in the minor heap.
            unsafe { block.fields.copy_from_nonoverlapping(fields.as_ptr(), size) };
            return Ok(block.fields as isize);
        }
        // SAFETY: QUIET: the lock is held; the function does not run the collector.
        match unsafe { glue::obx_alloc_major_filled(size, tag.into(), fields.as_ptr()) } {
            0 => Err(AllocError { words: size }),
            block => Ok(block),
        }
    }

    /// A block of `size` > 0 fields, units at first.
    pub(crate) fn scanned(&self, tag: u8, size: usize) -> Result<Block, AllocError> {
        debug_assert!(tag < NO_SCAN);
        let block = self.alloc(size, tag)?;
        for i in 0..size {
            // SAFETY: a new block of so many fields.
            unsafe { block.fields.add(i).write(1) };
        }
        Ok(block)
    }

    /// A block of `size` > 0 words that hold anything at first, and are not scanned.
    pub(crate) fn unscanned(&self, tag: u8, size: usize) -> Result<Block, AllocError> {
        debug_assert!(tag >= NO_SCAN);
        self.alloc(size, tag)
    }

    /// A block to be filled step by step, whose fields are units at first. Refuses tags with a meaning of their own,
    /// and no fields.
    pub fn block_builder(&self, tag: u8, size: usize) -> Result<BlockBuilder<'_>, ShapeError> {
        if tag >= FIRST_SPECIAL_TAG {
            return Err(ShapeError::Tag(tag));
        }
        if size == 0 {
            return Err(ShapeError::Bounds { index: 0, len: 0 });
        }
        let block = self.scanned(tag, size).map_err(ShapeError::Alloc)?;
        // SAFETY: a new block of so many fields, all units (BUILDING afterwards).
        Ok(unsafe { BlockBuilder::new(block.fields, size, block.young) })
    }
}

impl Block {
    /// Sets a word of a block that is not scanned.
    ///
    /// # Safety
    /// The block has that word.
    #[inline]
    pub(crate) unsafe fn write(self, i: usize, word: u64) {
        // SAFETY: by the caller.
        unsafe { self.fields.cast::<u64>().add(i).write(word) }
    }

    /// The block as a value.
    ///
    /// # Safety
    /// It is complete, is of the type that `T` describes, and 'n is that of its nursery.
    #[inline]
    pub(crate) unsafe fn share<'n, T>(self) -> Value<'n, T> {
        // SAFETY: by the caller; LIVE by QUIET.
        unsafe { Value::from_raw(self.fields as isize) }
    }
}

impl Deref for Nursery {
    type Target = Runtime;
    #[inline]
    fn deref(&self) -> &Runtime {
        // SAFETY: QUIET: the Runtime that it was made with is not used for writing while self exists.
        unsafe { &*self.rt }
    }
}

impl Drop for Nursery {
    #[inline]
    fn drop(&mut self) {
        self.fill()
    }
}

impl core::fmt::Debug for Nursery {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Nursery")
    }
}

// --- blocks filled from the first field to the last

/// While it exists, its nursery makes blocks in the major heap.
// CARVED: nothing is carved meanwhile; dropping it gives the nursery its words back.
struct InMajor<'n> {
    nursery: &'n Nursery,
    at: *mut usize,
    piece_end: *mut usize,
    surplus: usize,
}

impl Drop for InMajor<'_> {
    fn drop(&mut self) {
        self.nursery.at.set(self.at);
        self.nursery.piece_end.set(self.piece_end);
        self.nursery.surplus.set(self.surplus);
    }
}

/// A block that is filled from the first field to the last, and where those before `next` are values. Dropping it makes
/// the others units.
///
/// Where the block is in the major heap, what is made for its fields is there too: in the minor heap it would cost less
/// now, but the next collection would copy all of it, even if it were dead by then.
pub(crate) struct Row<'n> {
    start: *mut isize,
    next: *mut isize,
    end: *mut isize,
    /// Where young values are that the collector must be told of: nowhere, if the block is young itself.
    young: core::ops::Range<usize>,
    _major: Option<InMajor<'n>>,
}

impl Nursery {
    fn in_major(&self) -> InMajor<'_> {
        InMajor {
            nursery: self,
            at: self.at.replace(null_mut()),
            piece_end: self.piece_end.replace(null_mut()),
            surplus: self.surplus.replace(usize::MAX),
        }
    }

    /// A block of `size` > 0 fields.
    pub(crate) fn row(&self, tag: u8, size: usize) -> Result<Row<'_>, AllocError> {
        debug_assert!(tag < NO_SCAN);
        let Block { fields, young } = self.alloc(size, tag)?;
        let (young, major) = match young {
            true => (0..0, None),
            false => {
                // SAFETY: LOCK. Until the next collection (QUIET) the minor heaps stay where they are.
                let range = unsafe { glue::obx_young() };
                (range.start..range.end, Some(self.in_major()))
            }
        };
        // SAFETY: the end of a block of so many fields.
        Ok(Row { start: fields, next: fields, end: unsafe { fields.add(size) }, young, _major: major })
    }
}

impl<'n> Row<'n> {
    /// The block with these fields, of type `T`; or the first error.
    ///
    /// # Safety
    /// The fields are live values, and together have the type that `T` describes. If there are fewer than the block
    /// has, the others may be units.
    #[inline]
    pub(crate) unsafe fn fill<T, E>(
        mut self,
        first: isize,
        rest: impl Iterator<Item = Result<isize, E>>,
    ) -> Result<Value<'n, T>, E> {
        // Not in `self`, which is in memory: after an error or a panic all fields become units.
        let mut next = self.next;
        let mut put = |v: isize| {
            // SAFETY: there is this field. The collector is told of pointers from the major heap to the minor heap.
            unsafe {
                if v & 1 == 1 || !self.young.contains(&(v as usize)) {
                    next.write(v)
                } else {
                    glue::obx_initialize(next, v)
                }
                next = next.add(1);
            }
            next < self.end
        };
        let mut room = put(first);
        for v in rest {
            let v = v?;
            if !room {
                break;
            }
            room = put(v);
        }
        self.next = next;
        let raw = self.start as isize;
        drop(self);
        // SAFETY: complete now, and of that type by the caller; LIVE by QUIET.
        Ok(unsafe { Value::from_raw(raw) })
    }
}

impl Drop for Row<'_> {
    #[inline]
    fn drop(&mut self) {
        while self.next < self.end {
            // SAFETY: a field of a new block.
            unsafe {
                self.next.write(1);
                self.next = self.next.add(1);
            }
        }
    }
}

// --- blocks filled in any order

/// A block under construction: nobody else can read it. It is linear, and complete at any time: fields that were not
/// set hold units. [`finish`](BlockBuilder::finish) makes it a value.
// BUILDING: the block is new and scanned, of `len` fields that are valid values; no other reference to it exists; 'n as
// in Nursery.
#[must_use = "a block that is not finished is lost"]
pub struct BlockBuilder<'n> {
    fields: *mut isize,
    len: usize,
    young: bool,
    _marker: PhantomData<Value<'n>>,
}

impl<'n> BlockBuilder<'n> {
    /// # Safety
    /// BUILDING. `young`: the block is in the minor heap.
    pub(crate) unsafe fn new(fields: *mut isize, len: usize, young: bool) -> Self {
        BlockBuilder { fields, len, young, _marker: PhantomData }
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a field. Panics when there is no such field.
    pub fn set<T>(&mut self, i: usize, v: Value<'n, T>) {
        assert!(i < self.len, "field {i} of a block of {} fields", self.len);
        // SAFETY: BUILDING. The collector need not know of fields in the minor heap; of others caml_modify tells it.
        unsafe {
            let field = self.fields.add(i);
            if self.young {
                field.write(v.raw())
            } else {
                glue::obx_modify(field, v.raw())
            }
        }
    }

    /// The field as it is now. Panics when there is no such field.
    pub fn get(&self, i: usize) -> Value<'n, Any> {
        assert!(i < self.len, "field {i} of a block of {} fields", self.len);
        // SAFETY: BUILDING: all fields are valid values.
        unsafe { Value::from_raw(self.fields.add(i).read()) }
    }

    /// The finished block.
    pub fn finish(self) -> Value<'n, Any> {
        // SAFETY: BUILDING: it is a complete block, alive during 'n.
        unsafe { Value::from_raw(self.fields as isize) }
    }
}

impl core::fmt::Debug for BlockBuilder<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BlockBuilder({} fields)", self.len)
    }
}

// SPDX-License-Identifier: MIT
use crate::glue::{self, Reserve, PIECE};
use crate::kind::{ABSTRACT, CUSTOM, DOUBLE, DOUBLE_ARRAY, FIRST_SPECIAL_TAG, NO_SCAN, STRING};
use crate::{
    int, AllocError, Any, Atomic, Float, Fresh, Int, List, Opt, Ref, Runtime, ShapeError, Str, Unit, Value,
    ValueUnshared,
};
use core::cell::Cell;
use core::ffi::c_void;
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
    /// About how many words are to be allocated in the major heap first.
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
    /// # use ocaml_boxroot::*;
    /// fn numbered<'a>(rt: &'a mut Runtime, words: &[&str]) -> Fresh<'a, List<(Int, Str)>> {
    ///     let size = words.iter().map(|word| 2 * block_words(2) + string_words(word.len())).sum();
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
    ) -> Fresh<'a, T> {
        let nursery = Nursery::new(self, words);
        let raw = f(&nursery).raw();
        drop(nursery);
        // SAFETY: no collection happened since it was made (QUIET), nor while filling the rest.
        unsafe { Fresh::new(self, raw) }
    }

    /// As [`build`](Runtime::build), for closures that can fail; their error is returned, and what they built is
    /// garbage.
    pub fn try_build<'a, T, E>(
        &'a mut self,
        words: usize,
        f: impl for<'n> FnOnce(&'n Nursery) -> Result<Value<'n, T>, E>,
    ) -> Result<Fresh<'a, T>, E> {
        let nursery = Nursery::new(self, words);
        let raw = f(&nursery)?.raw();
        drop(nursery);
        // SAFETY: as in `build`.
        Ok(unsafe { Fresh::new(self, raw) })
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
            // Of a copy, so that the fields stay in registers: written one by one and read again as a vector, they
            // would hold up the processor longer than all else here takes.
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

    /// A float, or an error when memory is short.
    #[inline]
    pub fn try_float(&self, x: f64) -> Result<Value<'_, Float>, AllocError> {
        let block = self.alloc(1, DOUBLE)?;
        // SAFETY: a new block of one word; complete afterwards.
        unsafe {
            block.write(0, x.to_bits());
            Ok(block.share())
        }
    }

    /// A flat block of floats.
    pub(crate) fn floats(&self, floats: &[f64]) -> Result<Value<'_, Any>, AllocError> {
        if floats.is_empty() {
            // SAFETY: atoms are static.
            return Ok(unsafe { Value::from_raw(glue::obx_atom(0)) });
        }
        let block = self.alloc(floats.len(), DOUBLE_ARRAY)?;
        // SAFETY: a new block of so many words; complete afterwards.
        unsafe {
            block.fields.cast::<f64>().copy_from_nonoverlapping(floats.as_ptr(), floats.len());
            Ok(block.share())
        }
    }

    /// A custom block of one word.
    ///
    /// # Safety
    /// The operations have no finaliser, and are those of the type T for such a word.
    #[inline]
    pub(crate) unsafe fn custom<T>(&self, operations: *const c_void, word: isize) -> Result<Value<'_, T>, AllocError> {
        let block = self.alloc(2, CUSTOM)?;
        // SAFETY: a new block of two words; complete afterwards.
        unsafe {
            block.write(0, operations as u64);
            block.write(1, word as u64);
            Ok(block.share())
        }
    }

    /// `()`
    pub fn unit(&self) -> Value<'_, Unit> {
        Value::UNIT
    }

    /// An integer of at most 32 bits; for others see [`Value::int`].
    pub fn int(&self, n: i32) -> Value<'_, Int> {
        int(n)
    }

    /// A float.
    #[inline]
    pub fn float(&self, x: f64) -> Value<'_, Float> {
        self.try_float(x).unwrap_or_else(|e| e.panic())
    }

    /// A string. Panics when memory is short.
    pub fn string(&self, s: impl AsRef<[u8]>) -> Value<'_, Str> {
        self.try_string(s).unwrap_or_else(|e| e.panic())
    }

    /// A string, or an error when memory is short.
    pub fn try_string(&self, s: impl AsRef<[u8]>) -> Result<Value<'_, Str>, AllocError> {
        let bytes = s.as_ref();
        let words = bytes.len() / 8 + 1;
        let block = self.alloc(words, STRING)?;
        // SAFETY: a new block of so many words; complete afterwards: the last byte says how many of the last word do
        // not count.
        unsafe {
            block.fields.add(words - 1).write(0);
            let start = block.fields.cast::<u8>();
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            start.add(words * 8 - 1).write((words * 8 - 1 - bytes.len()) as u8);
            Ok(Value::from_raw(block.fields as isize))
        }
    }

    /// A pair.
    #[inline]
    pub fn pair<'n, A, B>(&'n self, a: Value<'n, A>, b: Value<'n, B>) -> Value<'n, (A, B)> {
        self.filled(0, [a.raw(), b.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// A triple.
    #[inline]
    pub fn triple<'n, A, B, C>(&'n self, a: Value<'n, A>, b: Value<'n, B>, c: Value<'n, C>) -> Value<'n, (A, B, C)> {
        self.filled(0, [a.raw(), b.raw(), c.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `[]`
    #[inline]
    pub fn nil<T>(&self) -> Value<'_, List<T>> {
        // SAFETY: an immediate.
        unsafe { Value::from_raw(1) }
    }

    /// `head :: tail`
    #[inline]
    pub fn cons<'n, T>(&'n self, head: Value<'n, T>, tail: Value<'n, List<T>>) -> Value<'n, List<T>> {
        self.try_cons(head, tail).unwrap_or_else(|e| e.panic())
    }

    /// `head :: tail`, or an error when memory is short.
    #[inline]
    pub fn try_cons<'n, T>(
        &'n self,
        head: Value<'n, T>,
        tail: Value<'n, List<T>>,
    ) -> Result<Value<'n, List<T>>, AllocError> {
        self.filled(0, [head.raw(), tail.raw()])
    }

    /// `None`
    #[inline]
    pub fn none<T>(&self) -> Value<'_, Opt<T>> {
        // SAFETY: an immediate.
        unsafe { Value::from_raw(1) }
    }

    /// `Some v`
    #[inline]
    pub fn some<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Opt<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `ref v`
    #[inline]
    pub fn reference<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Ref<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// `Atomic.make v`
    #[inline]
    pub fn atomic<'n, T>(&'n self, v: Value<'n, T>) -> Value<'n, Atomic<T>> {
        self.filled(0, [v.raw()]).unwrap_or_else(|e| e.panic())
    }

    /// A block to be filled step by step, whose fields are units at first. Refuses tags with a meaning of their own,
    /// and no fields.
    pub fn unshared(&self, tag: u8, size: usize) -> Result<ValueUnshared<'_>, ShapeError> {
        if tag >= FIRST_SPECIAL_TAG {
            return Err(ShapeError::Tag(tag));
        }
        if size == 0 {
            return Err(ShapeError::Bounds { index: 0, len: 0 });
        }
        let block = self.scanned(tag, size).map_err(ShapeError::Alloc)?;
        // SAFETY: a new block of so many fields, all units (UNSHARED afterwards).
        Ok(unsafe { ValueUnshared::new(block.fields, size, block.young) })
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

// SPDX-License-Identifier: MIT
use crate::glue::{self, RootsBlock};
use crate::{Any, Runtime, Slot, ValueCell};
use core::ptr::null_mut;
#[cfg(not(ocaml5))]
use core::sync::atomic::Ordering::Relaxed;
#[cfg(ocaml5)]
use ocaml_boxroot_sys as sys;

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
    /// # use ocaml_boxroot::*;
    /// fn hello(rt: &mut Runtime) -> Fresh<'_, (Str, Str)> {
    ///     rt.frame(|rt, [a, b]| {
    ///         let a = a.set(rt.string("hello"));
    ///         let b = b.set(rt.string("world"));
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

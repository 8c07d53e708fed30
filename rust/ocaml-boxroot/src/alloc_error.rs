// SPDX-License-Identifier: MIT
use core::fmt;

/// OCaml's heap could not give a block of this size: memory is short, or no block can be so large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    pub(crate) words: usize,
}

impl AllocError {
    /// The size in words.
    pub fn words(self) -> usize {
        self.words
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OCaml's heap has no block of {} words", self.words)
    }
}

impl core::error::Error for AllocError {}

/// For tests, in the checked build: the next `blocks` blocks in the major heap are allocated on this thread, the one
/// after them is refused as if memory were short. Negative: none is.
#[cfg(feature = "checked")]
#[doc(hidden)]
pub fn refuse_after(blocks: i32) {
    // SAFETY: the function needs nothing.
    unsafe { crate::glue::obx_refuse_after(blocks.into()) }
}

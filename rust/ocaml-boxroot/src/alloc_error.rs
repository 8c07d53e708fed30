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

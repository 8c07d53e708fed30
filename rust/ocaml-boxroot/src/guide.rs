// SPDX-License-Identifier: MIT
//! The guide: how to use this crate, by subject.

#[doc = include_str!("../guide/first.md")]
pub mod first {}
#[doc = include_str!("../guide/kinds.md")]
pub mod kinds {}
#[doc = include_str!("../guide/rooting.md")]
pub mod rooting {}
#[doc = include_str!("../guide/threads.md")]
pub mod threads {}
#[doc = include_str!("../guide/errors.md")]
pub mod errors {}
#[doc = include_str!("../guide/speed.md")]
pub mod speed {}
#[doc = include_str!("../guide/limits.md")]
pub mod limits {}
#[doc = include_str!("../guide/migration.md")]
pub mod migration {}

/// What is on the crate's page is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}

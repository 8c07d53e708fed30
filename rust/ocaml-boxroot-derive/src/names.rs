// SPDX-License-Identifier: MIT
//! Names in C.

/// What stands in front of the C names of a crate.
pub fn crate_prefix() -> String {
    std::env::var("CARGO_CRATE_NAME").unwrap_or_else(|_| "rust".into())
}

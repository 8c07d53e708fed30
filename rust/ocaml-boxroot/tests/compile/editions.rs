// SPDX-License-Identifier: MIT
//! What the derives write compiles in crates of every edition that rename this crate, forbid unsafe code and deny every
//! lint.

use crate::project;

/// `alloc`, `core`, `std`, `Result` and so on are other things here.
const SOURCE: &str = r#"//! Types.
#![forbid(unsafe_code)]
#![deny(warnings, unused, nonstandard_style, future_incompatible, rust_2018_idioms, missing_docs)]
#![deny(single_use_lifetimes, trivial_casts, unreachable_pub, unused_lifetimes, unused_qualifications)]
#![deny(clippy::all, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]
#![allow(dead_code)]

use oxr::{FromOCaml, OCamlType, ToOCaml};

mod names {
    pub(crate) mod core {}
    pub(crate) mod alloc {}
    pub(crate) mod std {}
    pub(crate) struct Result;
    pub(crate) struct Option;
    pub(crate) struct String;
    pub(crate) struct Ok;
    pub(crate) struct Some;
    pub(crate) trait Typed {}
    pub(crate) trait Into {}
}
#[allow(unused_imports)]
use names::*;

/// A record.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr)]
pub struct Record<'x, A, B, const N: usize> {
    /// Text.
    pub text: &'x str,
    first: A,
    #[ocaml(mutable)]
    second: ::std::vec::Vec<B>,
    third: [i32; N],
    root: oxr::Root<oxr::Fun<(oxr::Int,), oxr::Unit>>,
    n: i32,
    rt: i32,
    v: i32,
    field: i32,
    to: i32,
}

/// A flat one.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = ::oxr)]
pub struct Flat {
    x: f64,
    y: f64,
}

/// Unboxed.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr, unboxed)]
pub struct Unboxed<A>(A);

/// Constructors.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr)]
pub enum Shape<A> {
    /// None.
    Nothing,
    /// One.
    One(A, Box<Self>),
    /// With names.
    Named {
        /// A field.
        x: f64,
    },
}

/// Polymorphic ones.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr, polymorphic)]
pub enum Colour {
    /// Red.
    Red,
    /// Another.
    Rgb(u8, u8, u8),
    /// Grey.
    Grey(f32),
}

/// None.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr)]
pub enum Never {}

/// A handler.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(crate = oxr)]
pub struct Handler<A> {
    state: oxr::Root<A>,
}
"#;

#[test]
fn derives_in_every_edition() {
    let project = project::empty("editions");
    let editions = ["2018", "2021", "2024"];
    for edition in editions {
        project
            .add(&format!("{edition}/Cargo.toml"), &project::manifest(&format!("edition-{edition}"), edition, "oxr"));
        project.add(&format!("{edition}/src/lib.rs"), SOURCE);
    }
    let workspace = format!("[workspace]\nmembers = {editions:?}\nresolver = \"2\"\n{}", project::PROFILE);
    project.add("Cargo.toml", &workspace);
    let has_clippy = project.cargo(&["clippy", "--version"]).status.success();
    let output = project.cargo(&[if has_clippy { "clippy" } else { "check" }, "--offline", "--color=never"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

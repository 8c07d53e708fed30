// SPDX-License-Identifier: MIT
//! Types whose definitions must not be joined: OCaml has to know the first before it sees the second.
use ocaml_boxroot::*;

/// A `float` for OCaml.
#[derive(OCamlType, ToOCaml, FromOCaml)]
#[ocaml(unboxed)]
pub struct Metres(f64);

/// So this record is flat.
#[derive(OCamlType, ToOCaml, FromOCaml)]
pub struct Room {
    width: Metres,
    length: Metres,
    height: f64,
}

#[export]
pub fn volume(room: Room) -> f64 {
    room.width.0 * room.length.0 * room.height
}

#[export]
pub fn cube(side: f64) -> Room {
    Room { width: Metres(side), length: Metres(side), height: side }
}

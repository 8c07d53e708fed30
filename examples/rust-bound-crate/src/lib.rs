// SPDX-License-Identifier: MIT
//! The crate flate2 for OCaml: data are bigarrays, options and results records, errors exceptions, and other OCaml
//! threads run while it works.
#![forbid(unsafe_code)]

use flate2::read::{ZlibDecoder, ZlibEncoder};
use flate2::Compression;
use ocaml_boxroot::{self as ocaml, prelude::*};
use std::fmt;
use std::io::{self, Read};

/// Bytes outside OCaml's heap.
type Data = ocaml::Array1<u8>;

/// How hard to try.
#[derive(OCamlType, FromOCaml)]
enum Level {
    Fast,
    Best,
    /// From 0 to 9.
    Level(u32),
}

/// What is wrong with options or data: an exception of its own in OCaml.
#[derive(Debug, OCamlException)]
struct ZlibError(String);

impl fmt::Display for ZlibError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ZlibError {}
impl From<io::Error> for ZlibError {
    fn from(error: io::Error) -> ZlibError {
        ZlibError(error.to_string())
    }
}

/// Compressed data, and what that saved.
#[derive(OCamlType, ToOCaml)]
struct Compressed {
    data: Root<Data>,
    input: usize,
    output: usize,
    /// Output by input.
    ratio: f64,
}

/// Reads a bigarray: byte by byte, since other threads may write it meanwhile.
struct Bytes<'a>(&'a [ocaml::RelaxedCell<u8>]);

impl Read for Bytes<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (now, later) = self.0.split_at(to.len().min(self.0.len()));
        now.iter().zip(to).for_each(|(from, to)| *to = from.get());
        self.0 = later;
        Ok(now.len())
    }
}

/// Compresses data, in zlib's format.
#[export]
fn compress(rt: &mut Runtime, level: Level, data: ValueRef<'_, Data>) -> Result<Compressed, ZlibError> {
    let level = match level {
        Level::Fast => Compression::fast(),
        Level::Best => Compression::best(),
        Level::Level(n @ 0..=9) => Compression::new(n),
        Level::Level(n) => return Err(ZlibError(format!("there is no level {n}"))),
    };
    let elements = data.as_cells(rt);
    let mut result = Vec::new();
    rt.release(|| ZlibEncoder::new(Bytes(elements), level).read_to_end(&mut result))?;
    let (input, output) = (elements.len(), result.len());
    let data = rt.bigarray_from_vec(result, [output]).root(); // not copied
    Ok(Compressed { data, input, output, ratio: output as f64 / input as f64 })
}

/// The data that were compressed. What is not in zlib's format is an error.
#[export]
fn decompress<'a>(rt: &'a mut Runtime, data: ValueRef<'_, Data>) -> Result<ValueGuard<'a, Data>, ZlibError> {
    let elements = data.as_cells(rt);
    let mut result = Vec::new();
    rt.release(|| ZlibDecoder::new(Bytes(elements)).read_to_end(&mut result))?;
    let size = result.len();
    Ok(rt.bigarray_from_vec(result, [size]))
}

library! {
    /// Compression in zlib's format. Other threads run meanwhile.
    name = "deflate",
    exports = [compress, decompress],
    exceptions = [ZlibError],
}

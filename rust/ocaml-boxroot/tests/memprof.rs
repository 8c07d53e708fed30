// SPDX-License-Identifier: MIT
//! Builds while OCaml's memory profiler follows every block. A process of its own, since it slows everything down.
#![forbid(unsafe_code)]

use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};

#[test]
fn reserved_blocks_may_be_followed() {
    attached(|rt| {
        ocaml::memprof(rt).call(rt, (1.0,)).unwrap();
        let is_list = ocaml::is_list(rt);
        for count in [1, 10, 31, 32, 33, 100, 500] {
            for words in [4, 100, 257, 258, 600, 4000] {
                // Numbers of words that do not divide a piece, so that blocks could lie across borders.
                let list = rt.build(words, |n| {
                    (0..count).rev().fold(n.nil(), |tail, i| n.cons(n.pair(n.int(i), n.string(i.to_string())), tail))
                });
                let root = list.root();
                rt.poll().unwrap();
                rt.minor_gc();
                rt.poll().unwrap();
                assert!(is_list.call(rt, (&root, count)).unwrap().value().to_bool());
            }
        }
        rt.full_major().unwrap();
    })
}

// SPDX-License-Identifier: MIT
//! Builds while OCaml's memory profiler follows every block. A process of its own, since it slows everything down.

use crate::process::alone;
use ocaml_boxroot_testing::{self as ocaml, attached};

#[test]
fn reserved_blocks_may_be_followed() {
    alone(reserved_blocks_may_be_followed, || {
        attached(|rt| {
            ocaml::memprof(rt).call(rt, (1.0,)).unwrap();
            let is_list = ocaml::is_list(rt);
            // The profiler takes a zero in place of a header for a block that was moved.
            let zeros = [0; 90 * 8];
            for _ in 0..20 {
                let list = rt.build(2000, |n| (0..20).fold(n.nil(), |tail, _| n.cons(n.string(zeros), tail))).root();
                rt.minor_gc();
                rt.poll().unwrap();
                assert!(list.get(rt).iter().all(|s| s.as_bytes() == zeros));
                rt.full_major().unwrap();
            }
            for count in [1, 10, 31, 32, 33, 100, 500] {
                for words in [4, 101, 257, 258, 601, 1000, 1001] {
                    // Numbers of words that do not divide a piece, so that blocks could lie across borders.
                    let list = rt.build(words, |n| {
                        (0..count)
                            .rev()
                            .fold(n.nil(), |tail, i| n.cons(n.pair(n.int(i), n.string(i.to_string())), tail))
                    });
                    let root = list.root();
                    if words % 2 == 0 {
                        rt.poll().unwrap();
                    }
                    rt.minor_gc();
                    rt.poll().unwrap();
                    assert!(is_list.call(rt, (&root, count)).unwrap().value().to_bool());
                }
            }
            rt.full_major().unwrap();
        })
    })
}

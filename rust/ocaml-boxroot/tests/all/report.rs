// SPDX-License-Identifier: MIT
//! Reports of who holds OCaml values.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::attached;
use std::ffi::CString;
use std::fs;

#[inline(never)]
fn keeps(rt: &mut Runtime, count: i32) -> Vec<Root<Str>> {
    (0..count).map(|i| rt.string(i.to_string()).root()).collect()
}

#[test]
fn roots_and_their_creators_are_reported() {
    alone(roots_and_their_creators_are_reported, || {
        let file = std::env::temp_dir().join(format!("report-{}", std::process::id()));
        let name = CString::new(file.to_str().unwrap()).unwrap();
        let mut roots = Vec::new();
        attached(|rt| {
            sample(1).unwrap();
            rt.minor_gc();
            roots = keeps(rt, 200);
            report(Some(&name)).unwrap();
            roots.truncate(50);
            report(Some(&name)).unwrap();
        });
        report(Some(&name)).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let by_keeps: Vec<_> = text.lines().filter(|line| line.contains("keeps")).collect();
        assert!(by_keeps.len() >= 3, "{text}");
        assert!(by_keeps[0].contains(" 200 "), "{text}");
        assert!(by_keeps[1].contains(" 50      -150 "), "{text}");
        assert!(text.contains("cells that are registered"), "{text}");
        assert!(text.contains("cells are left out"), "{text}");
        sample(0).unwrap();
        report(Some(c"/nowhere/report")).unwrap_err();
    });
}

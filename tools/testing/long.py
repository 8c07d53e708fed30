# SPDX-License-Identifier: MIT
"""Tests that take twenty seconds to two minutes each, and are for `make test-all`: with them `make test` would take
longer than the ten minutes that it may. What they test is tested otherwise too, in another flavour or by another
program, or seldom changes; `make lint` is for those who change the sources. They also run when they are asked for by
name or part (-k, -m)."""

from __future__ import annotations

import re

LONG = re.compile(
    "|".join(
        (
            # other builds of the C library
            r"build/(two-copies|two-copies-crossed|beside-0\.4\.0.*|link-styles-\w+|mismatch-is-a-link-error)$",
            r"build/(unknown-version|library-switches|embedded-in-shared-object)$",
            r"^lint\[",
            # bytecode, and the debug runtime
            r"blocks-of-c-are-blocks/bytecode-\w+$",
            r"-debug\] (marking/kinds-\w+|variant/(storm|adaptive,-storm))$",
            # roots under the variant: domains stay, and all of it under the stock runtime
            r"\+outheap-release\] model/alone$",
            # regions: each part with the release runtime stays
            r"-(debug|stock)\] region/(deep|damaged|domains|beside|many|large|obstacles|churn|random)$",
            # documents line by line: installation with dune and ocamlfind stays
            r"^docs\[(Outheap|Rust|OCaml)\] ",
            # trees and installations of other shapes
            r"test_a_path_with_spaces$",
            r"test_a_tree_that_is_not_written_to$",
            r"test_installed_outheap_build_finds_ocaml_src$",
            # Rust: rust-dune stays
            r"rust-(handlers|queue|bound-crate|async|cargo|new\b.*|dune-in-a-sandbox)$",
            r"errors-raise-in-programs-that-abort-on-panics$",
            # the safe layer in other circumstances: in the usual ones all of it stays
            r"(safe-layer-with-a-small-minor-heap|safe-layer-in-a-program-without-systhreads)",
            r"(two-hundred-exports|macros-in-editions-and-renamed|crate-tests-with-calls-in-place)",
            r"what-is-inline/(dynamic-tls|checked)",
            # benchmarks in Rust: of every rival, one program
            r"test_rust.py::test_every_implementation_gives_the_same_results\[(?!conversion)",
            r"(libraries-of-ocaml|of-the-packages-themselves|\] package|a-library-that-is-loaded-later)$",
        )
    )
)


def is_long(nodeid: str) -> bool:
    return LONG.search(nodeid.partition("@")[0]) is not None

# SPDX-License-Identifier: MIT
"""What tools/layers finds in a crate of Rust: uses of higher modules, however they are written, and no more. And of
C: headers of the system's in other modules than those they are left to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from testing.run import ROOT

CRATE = {
    "LAYERS": "@rust\nlow low/inner\nmiddle\nhigh/one high/two\n",
    "lib.rs": "mod low; mod middle; mod high { pub(crate) mod one; mod two; pub use one::Raised; }\n"
    "pub use low::Low;\npub use high::one::{High, Other as Renamed};\npub use other_crate::library;\n",
    "low/mod.rs": "mod inner; pub struct Low;\n",
    "low/inner.rs": "pub struct Inner;\n",
    "middle.rs": "use crate::Low;\nuse crate::library;\nfn f(_: super::low::inner::Inner, _: Low) {}\n"
    "// crate::high::one::High\n/* use crate::High; */\n"
    "const S: &str = \"crate::High\"; const R: &str = r#\"crate::High\"#;\n"
    "fn quoted() { quote!({ crate::High }) }\n"
    "fn lifetime<'a>(c: &'a char) -> bool { *c == '\"' }\n"
    "#[cfg(test)]\nmod tests { use crate::High; fn g() { crate::high::one::f() } }\n",
    "high/one.rs": "use crate::{middle, Low};\npub struct High; pub struct Other; pub struct Raised; pub fn f() {}\n",
    "high/two.rs": "use crate::low::{self, inner::Inner};\n",
}


def layers(folder: Path, files: dict[str, str]) -> tuple[int, str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, str(ROOT / "tools/layers"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_layers_rust_downwards(tmp_path: Path) -> None:
    code, said = layers(tmp_path, CRATE)
    assert code == 0, said
    assert "5 modules, 6 arrows, all downwards" in said


@pytest.mark.parametrize(
    "use",
    [
        "use crate::High;",
        "use crate::{Low, High as H};",
        "use crate::Renamed;",
        "use super::high::one;",
        "use crate::high::Raised;",
        "use crate::high::one::*;",
        "fn g() { crate::high::one::f() }",
        "mod inside { use super::super::High; }",
        "macro_rules! m { () => { $crate::High } }",
        "#[cfg(test)] use crate::Low; use crate::High;",
    ],
)
def test_layers_rust_upwards(tmp_path: Path, use: str) -> None:
    code, said = layers(tmp_path, CRATE | {"middle.rs": use + "\n"})
    assert code == 1 and "middle.rs: uses high/one, of a higher layer" in said, said


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        ({"low/mod.rs": "fn f() { inner::g() }\n"}, "low/mod.rs: uses low/inner, of the same layer (inner::g)"),
        ({"high/two.rs": "use super::one::f;\n"}, "two.rs: uses high/one, of the same layer (super::one::f)"),
        ({"extra.rs": ""}, "extra.rs: is not listed in LAYERS"),
        ({"LAYERS": CRATE["LAYERS"] + "gone\n"}, "LAYERS: gone has no file"),
        ({"middle.rs": "use crate::Nothing;\n"}, "middle.rs: uses crate::Nothing, which is in no module"),
        ({"middle.rs": "use super::*;\n"}, "middle.rs: uses super::*, which is in no module"),
    ],
)
def test_layers_rust_findings(tmp_path: Path, files: dict[str, str], finding: str) -> None:
    code, said = layers(tmp_path, CRATE | files)
    assert code == 1 and finding in said, said


def test_layers_headers_of_the_system(tmp_path: Path) -> None:
    rules = "@prefix x_\n@text\n@system sys/* low\nlow\nhigh\n"
    files = {"LAYERS": rules, "low.h": "#include <sys/stat.h>\n", "high.h": '#include "low.h"\n#include <errno.h>\n'}
    code, said = layers(tmp_path, files)
    assert code == 0, said
    code, said = layers(tmp_path, {"high.h": "#include <sys/mman.h>\n"})
    assert code == 1 and "high.h: includes sys/mman.h, which is left to low" in said, said
    code, said = layers(tmp_path, {"LAYERS": rules.replace("* low", "* lower")})
    assert code == 2 and "lower" in said, said

# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def compiler():
    from runner.compiler import Compiler

    if prefix := os.environ.get("OCAML_PREFIX"):
        return Compiler(Path(prefix))
    done = subprocess.run([ROOT / "tools" / "toolchain", "--default"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no OCaml compiler")
    return Compiler(Path(done.stdout.strip()))

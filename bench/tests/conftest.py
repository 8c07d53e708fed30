# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "bench/tests", "outheap/tool")]


@pytest.fixture(scope="session")
def compiler():
    from runner.compiler import Compiler

    if prefix := os.environ.get("OCAML_PREFIX"):
        return Compiler(Path(prefix))
    done = subprocess.run([ROOT / "tools" / "toolchain", "--default"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no OCaml compiler")
    return Compiler(Path(done.stdout.strip()))

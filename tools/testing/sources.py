# SPDX-License-Identifier: MIT
"""Programs over the sources of Debian's archive, which a script fetches, patches and builds."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from testing.compilers import NOT_THERE
from testing.run import environment


def built(words: Sequence[str | Path], log: Path) -> Path:
    """Runs such a script, which prints the folder of what it has built; skips where there is no way to the sources.
    `log` gets its messages."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as messages:
        done = subprocess.run(
            [*words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            env=environment(),
            check=False,
        )
    said = log.read_text().splitlines()
    if done.returncode == NOT_THERE:
        pytest.skip(said[-1] if said else "the sources cannot be had")
    assert done.returncode == 0, "\n".join(said[-5:])
    return Path(done.stdout.strip())

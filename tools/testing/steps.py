# SPDX-License-Identifier: MIT
"""Build steps: done once for all workers of a run, and again only when what they are made from has changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from testing import spent
from testing.run import MOST, environment

JOBS = int(os.environ.get("JOBS") or os.cpu_count() or 2)
RUN = "BOXROOT_TEST_RUN"  # names this run of pytest, so that its workers do not repeat a build that failed


class BuildFailed(Exception):
    """Says which command failed, and the end of what it printed."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(files: Iterable[Path], words: Iterable[object]) -> str:
    known = hashlib.sha256()
    for word in words:
        known.update(f"{word}\0".encode())
    for file in sorted(files):
        known.update(f"{file}\0".encode() + file.read_bytes())
    return known.hexdigest()


def step(folder: Path, files: Iterable[Path], words: Iterable[object], build: Callable[[], None]) -> Path:
    """Calls `build` in an empty `folder`, unless that was done from the same files and words before."""
    key, built, failed = digest(files, words), folder / "built", folder / "failed"
    with locked(folder.with_name(folder.name + ".lock")):
        if built.exists() and built.read_text() == key:
            return folder
        this_run = f"{key} {os.environ.get(RUN, '')}\n"
        if failed.exists() and failed.read_text().startswith(this_run):
            raise BuildFailed(failed.read_text().removeprefix(this_run))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            with spent.building():
                build()
        except BuildFailed as error:
            failed.write_text(f"{this_run}{error}")
            raise
        built.write_text(key)
    return folder


def command(
    words: Sequence[str | Path], folder: Path, settings: dict[str, str] | None = None, limit: float = 1200
) -> str:
    """Runs a command of a build; its output, or BuildFailed."""
    texts = [str(word) for word in words]
    try:
        done = subprocess.run(
            texts,
            cwd=folder,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit * MOST,  # what hangs is found, however busy the machine is
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{shlex.join(texts)}\n{error}") from error
    with (folder / "build.log").open("a") as log:
        log.write(f"+ {shlex.join(texts)}\n{done.stdout}{done.stderr}")
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise BuildFailed(f"in {folder}: {shlex.join(texts)}\n{last}")
    return done.stdout


def commands(all_words: Iterable[Sequence[str | Path]], folder: Path) -> None:
    """Runs commands that do not depend on each other, several at a time."""
    with ThreadPoolExecutor(JOBS) as pool:
        for _ in pool.map(lambda words: command(words, folder), all_words):
            pass

# SPDX-License-Identifier: MIT
"""Reads how long the runtime of OCaml 5 stopped its program, from the events that every such program can write.

With OCAML_RUNTIME_EVENTS_START in its environment, a program of OCaml 5 keeps a file PID.events: a ring of words for
each domain, with an entry whenever the runtime enters or leaves one of its phases. The program needs not be built for
that, and the stock runtime and the variant write the same. A pause is the time from entering the outermost phase to
leaving it: a minor collection with its waiting for other domains, a slice of marking or sweeping, a compaction.

The layout is that of OCaml 5.1 to 5.5 (version 1 of the format, which the file names; another one is refused). The
rings are read while the program runs, and what was overwritten before it was read is counted as lost. A word is read
whole, since it is aligned; a part of a ring is copied first and then used only as far as the ring's first entry, read
after the copy, says that it was not overwritten meanwhile."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path

FORMAT = 1
LOG_WORDS = 17  # of a ring: 1 MiB for each domain that ran
ENTERED, LEFT = 2, 3  # kinds of entries
# Waiting for a condition is the program's own doing. The number of that phase is 38 up to OCaml 5.2 and 42 later; with
# these numbers the other versions mean parts of a minor collection and of a compaction, whose leaving out changes
# nothing, since they are never outermost.
WAITING = (38, 42)


def settings(folder: Path, inherited: dict[str, str]) -> dict[str, str]:
    """Variables with which a program of OCaml 5 writes its events to the folder, and leaves them there at exit."""
    params = inherited.get("OCAMLRUNPARAM", "")
    return {
        "OCAML_RUNTIME_EVENTS_START": "1",
        "OCAML_RUNTIME_EVENTS_PRESERVE": "1",
        "OCAML_RUNTIME_EVENTS_DIR": str(folder),
        "OCAMLRUNPARAM": f"{params},e={LOG_WORDS}" if params else f"e={LOG_WORDS}",
    }


@dataclass
class Ring:
    """Of one domain, and of those that get its place after it."""

    header: int  # index of the word with the position of its first entry; the next word has that of its end
    data: int  # index of its first word
    position: int = 0  # up to which it was read
    depth: int = 0  # of phases that were entered and not left
    since: int = 0  # when the outermost was entered


@dataclass
class Process:
    """The file of one process."""

    path: Path
    found: list[float]  # pauses in seconds, shared by all processes
    rings: list[Ring] = field(default_factory=list)
    size: int = 0  # words of a ring
    lost: int = 0  # words that were overwritten before they were read
    words: memoryview | None = None

    def open(self) -> bool:
        """False as long as the program has not written the head of the file."""
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < 64:
                return False
            self.words = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("Q")
        version, domains, header, _, self.size, headers, data, names = self.words[:8].tolist()
        if version == 0 or names == 0:
            return self.close()
        if version != FORMAT:
            self.close()
            raise ValueError(f"runtime events of format {version}; {FORMAT} is known")
        for domain in range(domains):
            self.rings.append(Ring((headers + domain * header) // 8, data // 8 + domain * self.size))
        return True

    def close(self) -> bool:
        if self.words is not None:
            self.words.release()
        self.words = None
        return False

    def skip(self, ring: Ring, to: int) -> None:
        self.lost += to - ring.position
        ring.position, ring.depth = to, 0

    def read(self) -> None:
        if self.words is None and not self.open():
            return
        words, mask = self.words, self.size - 1
        assert words is not None
        for ring in self.rings:
            end = words[ring.header + 1]
            if end < ring.position:  # the process became another program, which began again
                ring.position, ring.depth = 0, 0
            if ring.position < words[ring.header]:
                self.skip(ring, words[ring.header])
            if end <= ring.position:
                continue
            first, last = ring.position & mask, end & mask
            if first < last:
                copy = words[ring.data + first : ring.data + last].tolist()
            else:
                copy = words[ring.data + first : ring.data + self.size].tolist()
                copy += words[ring.data : ring.data + last].tolist()
            begin = ring.position
            if begin < words[ring.header]:
                self.skip(ring, min(end, words[ring.header]))
            self.entries(ring, copy, ring.position - begin)
            ring.position = end

    def entries(self, ring: Ring, copy: list[int], at: int) -> None:
        while at < len(copy):
            entry = copy[at]
            length = entry >> 54
            kind = entry >> 49 & 31  # with the bit of the user's events, which are left out
            if kind in (ENTERED, LEFT) and (entry >> 36 & 0x1FFF) not in WAITING:
                if kind == ENTERED:
                    if ring.depth == 0:
                        ring.since = copy[at + 1]
                    ring.depth += 1
                elif ring.depth > 0:
                    ring.depth -= 1
                    if ring.depth == 0:
                        self.found.append((copy[at + 1] - ring.since) / 1e9)
            if length == 0:  # no entry: what was read is not a ring
                self.lost += len(copy) - at
                ring.depth = 0
                return
            at += length


class Reader:
    """Of all processes that write to a folder. `poll` is to be called often while they run, and once after they have
    ended; it costs microseconds where nothing happened, and about a microsecond for each entry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pauses: list[float] = []
        self.processes: dict[str, Process] = {}

    def poll(self) -> None:
        for name in os.listdir(self.folder):
            if name.endswith(".events") and name not in self.processes:
                self.processes[name] = Process(self.folder / name, self.pauses)
        for process in self.processes.values():
            process.read()

    @property
    def lost(self) -> int:
        return sum(process.lost for process in self.processes.values())

    def close(self) -> None:
        for process in self.processes.values():
            process.close()
            process.path.unlink(missing_ok=True)


def figures(pauses: list[float]) -> dict[str, float]:
    """In seconds; of no pauses, zeros."""
    ordered = sorted(pauses)
    if not ordered:
        return {"longest pause": 0.0, "pauses, 99th percentile": 0.0, "all pauses": 0.0}
    return {
        "longest pause": ordered[-1],
        "pauses, 99th percentile": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        "all pauses": sum(ordered),
    }

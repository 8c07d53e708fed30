# SPDX-License-Identifier: MIT
"""The steps of outheap-build: compiler, sources, rules, libraries, the test, installation."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import rules
from overlay import Overlay

from build import HOME, Stop, say, selftest
from build.compiler import Compiler
from build.libraries import BACKENDS, FLAVOURS, Build, Flavour, with_backend, with_defaults
from build.sources import sources_of

DEFAULT = "release debug pic bytecode bytecode-debug count"
VALUES = {  # options with a value, and what that is
    "--ocaml": "prefix or command", "--sources": "folder", "--accept": "units", "--self-test": "seconds",
    "--output": "folder", "--flavours": "flavours", "--backend": "mmap or sbrk", "--cc": "command", "--jobs": "number",
    "--defaults": "settings",
}  # fmt: skip


class Options:
    """The arguments; --help is not among them."""

    def __init__(self, words: list[str], flavours: Iterable[Flavour]) -> None:
        given: dict[str, str] = {}
        self.verbose = self.record = False
        while words:
            word, *words = words
            word = "--flavours" if word == "--flavors" else word
            if word in VALUES:
                if not words:
                    raise Stop(2, f"{word}: {VALUES[word]}")
                given[word], *words = words
            elif word == "--verbose":
                self.verbose = True
            elif word == "--record-digests":  # for maintainers, after the overlay was checked against new sources
                self.record = True
            else:
                raise Stop(2, f"unknown argument {word} (see --help)")
        self.ocaml, self.sources = given.get("--ocaml", ""), given.get("--sources", "")
        self.accept, self.output, self.cc = (given.get(f"--{n}", "") for n in ("accept", "output", "cc"))
        self.seconds = self._number(given, "--self-test", None)
        self.jobs = self._number(given, "--jobs", os.cpu_count() or 2)
        known = {f.name: f for f in flavours}
        names = given.get("--flavours", DEFAULT).replace(",", " ").split()
        unknown = [name for name in names if name not in known]
        if unknown:
            raise Stop(2, f"unknown flavour {unknown[0]}")
        self.backend = given.get("--backend", "mmap")
        if self.backend not in BACKENDS:
            raise Stop(2, f"--backend: {VALUES['--backend']}, not {self.backend}")
        defaults = given.get("--defaults", "")
        if not re.fullmatch(r"[\w.=,:%+/-]*", defaults, re.ASCII):
            raise Stop(2, f"--defaults: {defaults} is no list of settings")
        self.flavours = [with_defaults(with_backend(known[name], self.backend), defaults) for name in names]

    @staticmethod
    def _number(given: dict[str, str], name: str, otherwise: int | None) -> int | None:
        text = given.get(name)
        if text is not None and not text.isdigit():
            raise Stop(2, f"{name}: not a number: {text}")
        return otherwise if text is None else int(text)


def _checked(overlay: Overlay, compiler: Compiler, sources: Path, options: Options) -> bool:
    """Are these sources of a version that was checked, unchanged? If not, but they keep the rules, says so."""
    digests = HOME / "runtime/overlay/digests"
    if options.record:
        rules.record_digests(overlay, sources, compiler.base, digests)
        say(f"recorded the units of {compiler.base}")
    try:
        differ = rules.differing_units(overlay, sources, compiler.base, digests, options.accept)
    except rules.Rejected as rejected:
        raise Stop(3, *rejected.lines) from None
    if differ:
        say(f"OCaml {compiler.version} keeps the rules; its sources differ from all that were checked in: "
            f"{' '.join(differ)}")  # fmt: skip
    return not differ


def _test(build: Build, flavours: list[Flavour], seconds: int, threads: bool) -> None:
    flavours = [f for f in flavours if f.tested]
    if seconds == 0 or not flavours:
        return
    if build.compiler.thread_sanitizer:
        say("this compiler is for ThreadSanitizer: what was built is not tested here")
        return
    try:
        selftest.test(build.compiler, build.staging, flavours, seconds, threads)
    except selftest.Failed as failed:
        raise Stop(4, str(failed), "the runtime that was built fails its test: nothing was installed") from None


def _run(options: Options, work: Path) -> None:
    compiler = Compiler(options.ocaml, options.cc)
    output = Path(options.output) if options.output else compiler.prefix / "lib/outheap"
    sources = sources_of(compiler, options.sources, work)
    overlays, known = {}, True
    for over, since in sorted({(f.over, f.since) for f in options.flavours} | {("", (4, 14))}):
        if compiler.release < since:
            continue
        overlay = Overlay(HOME / f"runtime/overlay/ocaml{compiler.generation}{f'-{over}' if over else ''}")
        known = _checked(overlay, compiler, sources, options) and known
        edited = work / f"edited{over}"
        edited.mkdir()
        rules.write_edited(overlay, sources, edited)
        overlays[over] = (overlay, edited)
    output.mkdir(parents=True, exist_ok=True)
    output = output.resolve()
    staging = Path(tempfile.mkdtemp(prefix=".new.", dir=output))
    try:
        build = Build(compiler, overlays, sources, work, staging, output, options.jobs or 1, options.verbose)
        built = []
        for number, flavour in enumerate(options.flavours, 1):
            say(f"building {flavour.name}, {number} of {len(options.flavours)}")
            if build.library(flavour):
                built.append(flavour)
        for header in sorted((HOME / "include").glob("outheap*.h")):
            shutil.copy(header, staging)
        seconds = (20 if known else 60) if options.seconds is None else options.seconds
        _test(build, built, seconds, options.backend == "mmap")
        for file in sorted(staging.iterdir()):
            os.replace(file, output / file.name)
            if file.suffix == ".a" or file.name.startswith("ocamlrun_"):
                say(file.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    variant = "_outheap" if options.backend == "mmap" else f"_outheap_{options.backend}"
    say(f"link with:  ocamlfind ocamlopt -I {output} -runtime-variant {variant} …")


def main(help_text: str, flavours: Iterable[Flavour] = FLAVOURS, words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    if "-h" in words or "--help" in words:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        print(help_text.strip("\n"))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and what was begun is removed
    try:
        with tempfile.TemporaryDirectory(prefix="outheap-build-") as work:
            _run(Options(words, flavours), Path(work))
    except Stop as stop:
        for line in stop.lines:
            say(line)
        return stop.code
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0

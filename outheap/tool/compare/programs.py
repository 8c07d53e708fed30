# SPDX-License-Identifier: MIT
"""The two programs that are compared: found, or built both ways."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from compare import HOME, IN_CLONE, WAYS, Wrong, progress, say


def compiler(*words: str) -> str:
    for command in (["ocamlfind", "ocamlopt"], ["ocamlopt"], ["ocamlc"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, *words], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout.strip()
    raise Wrong("there is no OCaml compiler in PATH", 2)


def library(options: argparse.Namespace, variant: str = "_outheap") -> Path:
    """Where the variant's libraries are. The folder that the user names needs no compiler."""
    has = lambda folder: bool(list(folder.glob(f"lib*run{variant}.a")))  # noqa: E731
    if options.library and has(Path(options.library)):
        return Path(options.library).resolve()
    try:
        version = compiler("-version")
    except Wrong:
        version = ""
    if options.library:
        places = [Path(options.library), Path(options.library) / version]
    elif not version:
        raise Wrong("there is no OCaml compiler in PATH: name the folder of the variant with --library", 2)
    else:
        built = [folder / "_build/outheap" / version for folder in (Path.cwd(), *Path.cwd().parents)]
        places = [Path(compiler("-where")).parent / "outheap", *built]
        if IN_CLONE:
            own = Path(os.environ.get("BUILD") or HOME.parent / "_build")
            places.insert(0, own / "outheap" / version)
    for folder in places:
        if has(folder):
            say(f"the variant of OCaml {version} in {folder}")
            return folder.resolve()
    make = "run outheap-build (in a clone: make outheap), or name the folder with --library"
    if variant != "_outheap":
        make = f"run outheap-build --flavours '{options.flavours}', or name the folder with --library"
    title = f"{variant}{f' for OCaml {version}' * bool(version)}"
    raise Wrong(f"no libraries of the variant {title} in {places[0]}: {make}", 2)


def is_bytecode(program: Path) -> bool:
    with program.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 12))
        return file.read(12).startswith(b"Caml1999X")


def quietly(title: str, options: argparse.Namespace, settings: dict[str, str], log: Path) -> tuple[int, list[str]]:
    """Runs the build behind one line; its exit code, and the end of what it printed."""
    begin = time.monotonic()
    progress.show(title, at_once=True)
    with log.open("wb") as file:
        out = sys.stderr if options.verbose else file
        process = subprocess.Popen(options.build, shell=True, env=settings, stdout=out, stderr=subprocess.STDOUT)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                    break
                if not options.verbose:
                    progress.show(f"{title}: {time.monotonic() - begin:.0f} s")
        except BaseException:
            process.kill()
            raise
    progress.end()
    return process.returncode, log.read_text(errors="replace").splitlines()[-40:]


def built_once(
    options: argparse.Namespace, program: Path, folder: Path, way: str, variant: str = "", where: Path | None = None
) -> str:
    """The program, built with this variant of the runtime (none: stock) and copied to the folder."""
    settings, target = os.environ.copy(), program
    if variant:
        inherited = settings.get("OCAMLPARAM", "_").rstrip(",")
        settings["OCAMLPARAM"] = f"{inherited},I={where},runtime-variant={variant}"
    if "_build" in program.parts:
        place = Path("_build/outheap-compare").resolve() / way
        place.parent.mkdir(parents=True, exist_ok=True)
        settings["DUNE_BUILD_DIR"] = str(place)
        parts = program.parts[program.parts.index("_build") + 1 :]
        target = Path(settings["DUNE_BUILD_DIR"], *parts)
    else:
        target.unlink(missing_ok=True)
    code, log = quietly(f"building ({way}): {options.build}", options, settings, folder / "build.log")
    if code != 0 or not target.exists():
        why = f"failed with exit code {code}" if code else f"made no {target}"
        raise Wrong("\n".join([f"the build ({way}) {why}: {options.build}", *log]))
    copy = folder / f"{way}-{program.name}"
    shutil.copy(target, copy)
    return str(copy)


def built(options: argparse.Namespace, program: Path, folder: Path) -> dict[str, list[str]]:
    """The program, built both ways; what is left behind is the stock one."""
    where = library(options)
    variant = built_once(options, program, folder, "variant", "_outheap", where)
    return {"variant": [variant], "stock": [built_once(options, program, folder, "stock")]}


def programs(options: argparse.Namespace, folder: Path) -> dict[str, list[str]]:
    """How to start the program each way. With --settings both are the variant."""
    found = both(options, folder)
    return dict.fromkeys(WAYS, found["variant"]) if options.settings else found


def both(options: argparse.Namespace, folder: Path) -> dict[str, list[str]]:
    if options.stock or options.variant:
        if options.settings and not options.stock:
            options.stock = options.variant
        if not (options.stock and options.variant):
            raise Wrong("--stock and --variant go together", 2)
        pair = {"stock": options.stock, "variant": options.variant}
        for name in pair.values():
            if not os.access(name, os.X_OK):
                raise Wrong(f"{name} is no executable", 2)
        return {way: [str(Path(name).resolve()), *options.arguments] for way, name in pair.items()}
    if not options.arguments:
        raise Wrong("no program: see --help", 2)
    program, rest = Path(options.arguments[0]), options.arguments[1:]
    if options.build:
        found = built(options, program, folder)
    elif program.exists() and is_bytecode(program):
        ours = library(options) / "ocamlrun_outheap"
        if not ours.exists():
            raise Wrong(f"there is no {ours}: outheap-build --flavours bytecode makes it", 2)
        stock = Path(compiler("-where")).parents[1] / "bin/ocamlrun"
        found = {"stock": [str(stock), str(program)], "variant": [str(ours), str(program)]}
    elif program.exists():
        raise Wrong("a native program contains its runtime: give --build, or both ways with --stock and --variant", 2)
    else:
        raise Wrong(f"there is no {program}", 2)
    return {way: [*words, *rest] for way, words in found.items()}

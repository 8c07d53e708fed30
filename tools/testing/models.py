# SPDX-License-Identifier: MIT
"""Programs of outheap/test/model: some of the runtime's code, as it is or broken in one place, and the rest played."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from testing import allocator, steps
from testing.flavours import OUTHEAP
from testing.programs import CC
from testing.run import BUILD

HOME = allocator.HOME
PARTS = ("core", "overlay/ocaml5")


class Breakage(NamedTuple):
    file: str
    old: str
    new: str


def source(folder: Path, file: str) -> Path:
    return next(folder / Path(part).name / file for part in PARTS if (HOME / "runtime" / part / file).exists())


def build(program: str, own: tuple[str, ...], name: str = "sound", breakage: Breakage | None = None) -> Path:
    """The folder of a program, for which files of the core are compiled anew: those that a breakage may be in."""
    folder, checked = BUILD / "outheap" / f"{program}-{name}", OUTHEAP["checked"]
    main = HOME / f"test/model/{program}.c"

    def make() -> None:
        for part in PARTS:
            shutil.copytree(HOME / "runtime" / part, folder / Path(part).name)
        if breakage:
            file = source(folder, breakage.file)
            text = file.read_text()
            assert text.count(breakage.old) == 1, (name, breakage.old)
            file.write_text(text.replace(breakage.old, breakage.new))
        include = [f"-I{folder / Path(part).name}" for part in PARTS]
        flags = [*allocator.FLAGS, *checked.cflags, "-Wno-unused", *include, f"-I{HOME}/include"]
        files = [*(source(folder, file) for file in own), main]
        steps.commands([[CC, *flags, "-c", file, "-o", f"{file.stem}.o"] for file in files], folder)
        new = {file.stem for file in files}
        core = {file.stem for file in (HOME / "runtime/core").glob("*.c")} - new - replaced(main)
        objects = [f"{stem}.o" for stem in sorted(new)] + [allocator.build(checked) / f"{stem}.o" for stem in core]
        steps.command([CC, *checked.lflags, *objects, *checked.libraries, "-o", program], folder)

    files = [f for part in PARTS for f in (HOME / "runtime" / part).glob("*.[ch]")]
    files += [main, *main.parent.glob("*.h"), *(HOME / "include").glob("*.h")]
    return steps.step(folder, files, [CC, name, breakage], make)


def replaced(main: Path) -> set[str]:
    """Files of the core that the program includes, or a header beside it that it includes."""
    texts = [main.read_text()]
    texts += [file.read_text() for file in main.parent.glob("*.h") if f'#include "{file.name}"' in texts[0]]
    return {name for text in texts for name in re.findall(r'^#include "(\w+)\.c"', text, re.M)}

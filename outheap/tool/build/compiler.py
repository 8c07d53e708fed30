# SPDX-License-Identifier: MIT
"""The OCaml compiler for which a runtime is built: where it is, what it says of itself, how its runtime was
compiled."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from build import Stop


def output_of(*words: str | Path) -> str | None:
    """What a command prints; None if it fails, or if there is no such command."""
    try:
        done = subprocess.run(
            [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


class Compiler:
    def __init__(self, name: str, cc: str) -> None:
        """`name`: a prefix, a command, or nothing: the ocamlopt in PATH. `cc`: a C compiler in place of its own."""
        wanted = Path(name) / "bin/ocamlopt" if name and Path(name).is_dir() else name or "ocamlopt"
        found = shutil.which(str(wanted))
        if found is None:
            raise Stop(2, f"no ocamlopt at {name}" if name else "no ocamlopt in PATH: name a compiler with --ocaml")
        self.ocamlopt = Path(found)
        configuration = output_of(self.ocamlopt, "-config")
        if configuration is None:
            raise Stop(1, f"{self.ocamlopt} -config failed")
        pairs = (line.partition(": ") for line in configuration.splitlines())
        self.config = {name.rstrip(":"): value for name, _, value in pairs}
        self.version, self.library = self["version"], Path(self["standard_library"])
        self.base = re.split("[+~ ]", self.version)[0]
        self.cc = shlex.split(cc or self["c_compiler"] or "gcc")
        self._check()

    def __getitem__(self, name: str) -> str:
        return self.config.get(name, "")

    @property
    def generation(self) -> int:
        return int(self.base.split(".")[0])

    @property
    def release(self) -> tuple[int, int]:
        major, minor = self.base.split(".")[:2]
        return int(major), int(minor)

    @property
    def prefix(self) -> Path:
        return self.library.parent.parent

    def beside(self, command: str) -> Path:
        """Another command of the same compiler."""
        return self.ocamlopt.with_name(command)

    def _check(self) -> None:
        if not re.match(r"4\.14\.|5\.(?!0\.)", self.base):  # of versions after 5.5 the rules decide
            raise Stop(3, f"OCaml {self.version} is not supported; 4.14 and 5.1 to 5.5 are: the overlay was written "
                          "for their runtimes")  # fmt: skip
        if self["word_size"] != "64":
            raise Stop(3, "Outheap needs a 64-bit system")
        if self["os_type"] != "Unix":
            raise Stop(3, "Outheap needs a system with mmap")
        if self["profinfo"] == "true":
            raise Stop(3, "this compiler keeps profiling information in headers, which was not tested")
        if self["naked_pointers"] == "false" and self.generation == 4:
            raise Stop(3, "this 4.14 was configured with --disable-naked-pointers: its runtime has no page table to "
                          "replace")  # fmt: skip

    @cached_property
    def thread_sanitizer(self) -> list[str]:
        """Of a compiler for ThreadSanitizer: its options, with what makes volatile accesses ordered, since the runtime
        relies on it, and what the runtime leaves out of it, and tells it: the marker reads fields beside plain stores.
        Only OCaml's own build defines that. Of other compilers: nothing."""
        if self["tsan"] != "true":
            return []
        found = re.findall(r"(?:-mllvm )?-\S*(?:=thread|tsan)\S*", self["native_cflags"])
        return [*shlex.split(" ".join(found) or "-fsanitize=thread"), "-DWITH_THREAD_SANITIZER"]

    def options_for(self, archive: Path, member: str, work: Path) -> list[str]:
        """With which its own runtime was compiled: they are in the debugging information of its objects, where that is
        kept. Without it, or where another compiler has made them: those for C."""
        subprocess.run(["ar", "x", archive, member], cwd=work, stderr=subprocess.DEVNULL, check=False)
        information = output_of("readelf", "--debug-dump=info", work / member) or ""
        (work / member).unlink(missing_ok=True)
        producer = re.search(r"DW_AT_producer.*: *GNU C[0-9]* \S* (.*)", information)
        options = [o for o in producer[1].split() if re.match("-[Ogfm]", o)] if producer else []
        if options:
            return options
        options = [*self["ocamlopt_cflags"].replace("-fPIC", "").split(), "-g"]
        if member.endswith("pic.o"):
            options.append("-fPIC")
        if self["with_frame_pointers"] == "true":
            options.append("-fno-omit-frame-pointer")
        as_its_own = ("-fno-common", "-fexcess-precision=standard", "-fno-tree-vrp", "-ffunction-sections")
        return options + [o for o in as_its_own if self._knows(o)]

    def _knows(self, option: str) -> bool:
        return output_of(*self.cc, "-Werror", option, "-E", "-x", "c", "/dev/null") is not None

    @cached_property
    def native_defines(self) -> list[str]:
        """For units of the native runtime. OH_STDLIB: the digest of the interface Stdlib, by which a program shows,
        when it starts, that another compiler made it (runtime/core/program.h)."""
        listing = output_of(self.beside("ocamlobjinfo"), self.library / "stdlib.cmi") or ""
        stdlib = re.search(r"^\s*([0-9a-f]{32})\s*Stdlib$", listing, re.MULTILINE)
        return [
            "-DNATIVE_CODE", *([f"-DOH_STDLIB={stdlib[1]}"] if stdlib else []), f"-DTARGET_{self['architecture']}",
            f"-DMODEL_{self['model']}", f"-DSYS_{self['system']}",
        ]  # fmt: skip

# SPDX-License-Identifier: MIT
"""That docs/promises.toml, which says what tests what, has all that is public, and names tests that exist.

tools/python test -m pytest docs/test_promises.py -s
"""

import os
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "docs/promises.toml"
HEADERS = ("boxroot/include/**/*.h", "boxroot/include/**/*.hpp", "outheap/include/*.h", "outheap/lib/*/outheap_*.h")
INTERFACES = ("boxroot/ocaml/*.mli", "outheap/lib/*/*.mli", "rust/ocaml-boxroot/ocaml/*.mli")
CRATES = ("rust/ocaml-boxroot*/src/lib.rs",)
PAGES = ("docs/internals/rust-safety.md", "docs/reference/[a-z]*.md")
NONE = "none: "  # what is tested by nothing, and why


# --- what is public ---


def names_of_header(text):
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", text, flags=re.S)
    found = set(re.findall(r"\b(?:boxroot|BOXROOT|outheap|OUTHEAP)_?\w*", text))
    return {name for name in found if not re.search(r"_(H|private|FIELD)$", name)}


def names_of_classes(text):
    return set(re.findall(r"^class (\w+)", text, re.M))


def names_of_interface(text):
    """Values, exceptions and modules, with the modules that they are in."""
    text = re.sub(r"\(\*.*?\*\)", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    found, modules = set(), []
    for space, kind, name in re.findall(
        r"^( *)(val|external|exception|module type|module) (\w+|\( \S+ \))", text, re.M
    ):
        modules = [m for m in modules if m[0] < len(space)]
        found.add(".".join([*(m[1] for m in modules), name]))
        if kind.startswith("module"):
            modules.append((len(space), name))
    return found


def names_of_crate(text):
    """What lib.rs says is public, but for what its documentation hides."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"#\[doc\(hidden\)\]\s*(?:#\[[^\]]*\]\s*)*pub [^;{]*(?:\{[^}]*\})?;?", "", text)
    found = set(
        re.findall(
            r"^\s*pub (?:unsafe |const |extern \"C\" )*(?:fn|struct|enum|const|static|type|mod|trait) (\w+)", text, re.M
        )
    )
    for used in re.findall(r"^pub use ([^;]+);", text, re.M):
        last = used[used.index("{") + 1 : used.rindex("}")] if "{" in used else used.rsplit("::", 1)[-1]
        found |= {word.split()[-1] for word in last.split(",") if word.strip()}
    return found


def sections_of(text):
    """Headings below the title, or the title where there are none; what paragraphs begin with in italics; settings."""
    headings = re.findall(r"^##+ (.*)$", text, re.M) or re.findall(r"^# (.*)$", text, re.M)
    words = re.findall(r"^(?:- )?\*([A-Z][^*]+?)\.?\*", text, re.M)
    settings = re.findall(r"^\| `([a-z.]+)=", text, re.M) if text.startswith("# Settings") else []
    return {*headings, *words, *settings}


def kind_of(file):
    kinds = {".h": names_of_header, ".hpp": names_of_classes, ".mli": names_of_interface, ".rs": names_of_crate}
    return kinds.get(file.suffix, sections_of)


@cache
def public():
    """Each file that promises something, and the names of what it promises."""
    files = [f for patterns in (HEADERS, INTERFACES, CRATES, PAGES) for p in patterns for f in sorted(ROOT.glob(p))]
    return {str(f.relative_to(ROOT)): kind_of(f)(f.read_text()) for f in files if f.name != "README.md"}


# --- the map ---


@cache
def rows():
    """(file, names, tests) for each promise."""
    promises = [(file, row) for file, rows in tomllib.loads(MAP.read_text()).items() for row in rows.values()]
    return [(file, names.split("; " if file.endswith(".md") else None), tests) for file, (names, *tests) in promises]


def matches(pattern, name):
    return re.fullmatch(re.escape(pattern).replace(r"\*", r".*"), name)


@cache
def sources():
    found = []
    for folder, inside, files in os.walk(ROOT):
        inside[:] = [d for d in inside if d[0] not in "._" and d not in ("target", "vendor")]
        found += [f"{Path(folder).relative_to(ROOT)}/{name}" for name in files]
    return found


def found(path):
    """Sources whose path ends so."""
    return [f for f in sources() if f.endswith(f"/{path}") or f == path]


def has_test(path, name):
    """By the name that the program lists, in which `-` may be `_` in the source."""
    word = re.escape(name).replace(r"\*", r"[\w.-]*").replace(r"\-", "[-_]")
    return any(re.search(rf"(?<![\w-]){word}(?![\w-])", (ROOT / f).read_text()) for f in found(path))


# --- tests ---


def test_what_is_public_is_found():
    assert len(public()) > 30
    assert all(public().values()), [file for file, names in public().items() if not names]


@pytest.mark.parametrize("file", public())
def test_everything_has_a_row(file):
    """Names of a header may be those of another one, where it says more of them."""
    patterns = [p for f, names, _ in rows() if f == file or {f[-2:], file[-2:]} == {".h"} for p in names]
    missing = {name for name in public()[file] if not any(matches(p, name) for p in patterns)}
    assert not missing, f"{MAP.name} does not say what tests these of {file}: {' '.join(sorted(missing))}"


def test_rows_are_about_something():
    for file, patterns, _ in rows():
        assert file in public(), file
        for p in patterns:
            assert any(matches(p, name) for name in public()[file]), (file, p)


def test_the_tests_exist():
    wrong = []
    for file, patterns, tests in rows():
        assert tests, (file, patterns)
        for test in [] if tests[0].startswith(NONE) else tests:
            path, _, names = test.partition(": ")
            wrong += [] if len(found(path)) == 1 else [(path, found(path))]
            wrong += [(path, name) for name in names.split() if not has_test(path, name)]
    assert not wrong


def test_what_has_no_test_is_counted():
    without = [(file, names) for file, names, tests in rows() if tests[0].startswith(NONE)]
    print(f"{len(without)} promises without a test")
    assert f"{len(without)} promises have no test" in MAP.read_text(), len(without)

# SPDX-License-Identifier: MIT
"""That documents agree with the sources, and with each other.

tools/python test -m pytest docs/test_documents.py
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*/*.md"))


def text(file):
    return (ROOT / file).read_text()


# --- settings of OUTHEAP ---


def settings_read():
    """Name: what a message says about its values."""
    source = next(ROOT.glob("outheap/**/settings.c")).read_text()
    values = dict(re.findall(r'^#define (\w+) "(.+)"$', source, re.M))
    rows = re.findall(r'^  S\("([\w.-]+)", (\w+|"[^"]+"), ', source, re.M)
    return {name: values.get(what, what).strip('"') for name, what in rows}


def words(description):
    """The words that a user would type."""
    return set(re.findall(r"\b(?:off|advise|always|report|fixed|adaptive|range|table|0|1|fd:N)\b", description))


def test_every_setting_is_in_the_table():
    known = settings_read()
    assert len(known) > 15, known
    table = text("docs/reference/settings.md").split("The environment variable `OUTHEAP`")[1]
    rows = re.findall(r"^\| (`.*?) \| ", table, re.M)
    named = {name for row in rows for name in re.findall(r"`([\w.-]+)=", row)}
    assert named == set(known)
    ordinary = {name for name in known if not name.startswith(("check.", "debug."))}
    assert len(ordinary) <= 16, ordinary


def test_values_of_settings_are_those_of_the_table():
    known = settings_read()
    documents = text("docs/reference/settings.md") + text("docs/guide/operating.md")
    for name, choices in re.findall(r"`([\w.-]+)=([\w:%\[\]-]+(?:\\\|[\w:%\[\]-]+)+)`", documents):
        assert words(choices.replace("\\|", " ")) == words(known[name]), name


def test_settings_that_a_document_names_exist():
    known = settings_read()
    for file in [*PAGES, ROOT / "README.md", *ROOT.glob("outheap/**/outheap_region.mli")]:
        for name in re.findall(r"\bOUTHEAP=([\w.-]+)=", file.read_text()):
            assert name in known, (file.name, name)


# --- events of the runtime ---


def test_events_are_described_once():
    """The library outheap.events writes statistics as events: no document says that nothing does."""
    assert list(ROOT.glob("outheap/**/outheap_events.mli"))
    for file in PAGES:
        assert not re.search(r"not written\s+as\s+events", file.read_text()), file.name


# --- decisions ---


def test_decisions_are_listed_and_have_their_parts():
    """A file for each, with a number that no other has, a date and a status; the list has all of them, by their titles.
    A number without a file was merged into another decision, which the list and that decision say."""
    files = sorted(DOCS.glob("decisions/[0-9]*.md"))
    numbers = {int(file.name[:4]) for file in files}
    assert len(numbers) == len(files) > 40
    listed = " ".join(text("docs/decisions/README.md").split())
    for file in files:
        first, _, status = file.read_text().split("\n")[:3]
        title, number = first.removeprefix("# "), int(file.name[:4])
        assert title.startswith(f"{number}. ") and f"[{title}]({file.name})" in listed, file
        assert re.match(r"20\d\d-\d\d-\d\d · (accepted|rejected|superseded by \[\d+\])", status), file
        parts = re.findall(r"^## (.*)$", file.read_text(), re.M)
        assert parts in (["Context", "Decision"], ["Context", "Decision", "Alternatives"]), file
        merged = re.search(r"former decisions? ([\d, and]+)", " ".join(file.read_text().split("\n")[2:5]))
        for other in map(int, re.findall(r"\d+", merged[1]) if merged else []):
            assert other not in numbers and f"{other} → {number}" in listed, (file, other)
    assert {int(n) for n in re.findall(r"(\d+) → ", listed)} | numbers == set(range(1, max(numbers) + 1))


def test_every_document_is_in_the_list_of_its_folder():
    for folder in ("start", "guide", "reference", "internals"):
        listed = text(f"docs/{folder}/README.md")
        for file in DOCS.glob(f"{folder}/[a-z]*.md"):
            assert f"({file.name}" in listed, file


# --- links ---

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def test_documents_of_crates_link_to_what_is_packed():
    """Links in README.md and in the guide: to items of rustdoc, or to files of the crate."""
    found = [*ROOT.glob("rust/*/README.md"), *ROOT.glob("rust/*/guide/*.md")]
    assert len(found) > 8
    for document in found:
        crate = document.parent if document.name == "README.md" else document.parent.parent
        manifest = crate / "Cargo.toml"
        if not manifest.exists() or "publish = false" in manifest.read_text():
            continue
        for path in LINK.findall(document.read_text()):
            if "/" in path or path.endswith(".md"):
                where = (document.parent / path).resolve()
                assert "://" in path or where.exists() and crate in where.parents, (document, path)


def test_documents_link_to_what_is_there():
    listed = [*ROOT.glob("*.md"), *PAGES, *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
    for document in listed:
        for path in LINK.findall(document.read_text()):
            if "/" in path or path.endswith(".md"):
                assert "://" in path or (document.parent / path).exists(), (document, path)


def test_dune_installs_what_documents_link_to():
    """What README.md leads to, by links, is in dune's list; examples/test_dune.py looks at what is installed."""
    rules = text("dune")
    to_see, seen = ["README.md", "CHANGES.md"], set()
    while to_see:
        file = to_see.pop()
        if file in seen:
            continue
        seen.add(file)
        if file.endswith(".md"):
            links = [p for p in LINK.findall(text(file)) if not re.search("://|::|@", p)]  # @, ::, of rustdoc
            links = [p for p in links if "/" in p or p.endswith(".md")]
            to_see += [str(((ROOT / file).parent / p).resolve().relative_to(ROOT)) for p in links]
    for file in seen - {"README.md", "CHANGES.md"}:
        listed = [rf"\s{re.escape(file)}[\s)]", rf"\({Path(file).parent}/\*\{Path(file).suffix} with_prefix"]
        assert sum(len(re.findall(p, rules)) for p in listed) == 2, file  # of each package


def test_interfaces_say_when_an_exception_is_raised():
    """ocamldoc cannot read the comment of an exception without a reason."""
    interfaces = [f for f in ROOT.glob("*/**/*.mli") if f.relative_to(ROOT).parts[0][0] not in "_."]
    assert len(interfaces) > 6
    for file in interfaces:
        assert not re.findall(r"@raise\s+[\w.]+\s*(?:\*\)|@)", file.read_text()), file


def test_lines_that_begin_with_a_bar_are_of_tables():
    for document in [*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]:
        lines = ["", *document.read_text().split("\n")]
        for before, line in zip(lines, lines[1:], strict=False):
            assert not line.startswith("|") or before.startswith("|") or not before.strip(), (document, line)

# SPDX-License-Identifier: MIT
"""That documents agree with the sources, and with each other.

tools/python test -m pytest docs/test_documents.py
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def text(file):
    return (ROOT / file).read_text()


# --- settings of OUTHEAP ---


def settings_read():
    """Name: what a message says about its values."""
    values = dict(re.findall(r'^#define (\w+) "(.+)"$', text("outheap/src/settings.c"), re.M))
    rows = re.findall(r'^  S\("([\w.-]+)", (\w+|"[^"]+"), ', text("outheap/src/settings.c"), re.M)
    return {name: values.get(what, what).strip('"') for name, what in rows}


def words(description):
    """The words that a user would type."""
    return set(re.findall(r"\b(?:off|advise|always|report|fixed|adaptive|range|table|0|1|fd:N)\b", description))


def test_every_setting_is_in_the_table():
    known = settings_read()
    assert len(known) > 15, known
    table = text("docs/using.md").split("The environment variable `OUTHEAP`")[1].split("\n\n`Outheap.statistics")[0]
    rows = re.findall(r"^\| (`.*?) \| ", table, re.M)
    named = {name for row in rows for name in re.findall(r"`([\w.-]+)=", row)}
    named |= set(re.findall(r"`(thp\.\w+)=`", table))
    assert named == set(known)
    header = text("outheap/src/settings.h")
    assert {name for name in known if f"{name}=" not in header} == set()


def test_values_of_settings_are_those_of_the_table():
    known = settings_read()
    documents = text("docs/using.md") + text("docs/failure-modes.md")
    for name, choices in re.findall(r"`([\w.-]+)=((?:[a-z0-9:N]+\\\|)+[a-z0-9:N]+)`", documents):
        assert words(choices.replace("\\|", " ")) == words(known[name]), name


def test_settings_that_a_document_names_exist():
    known = settings_read()
    for file in [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "outheap/lib/region/outheap_region.mli"]:
        for name in re.findall(r"\bOUTHEAP=([\w.-]+)=", file.read_text()):
            assert name in known, (file.name, name)


# --- events of the runtime ---


def test_events_are_described_once():
    """The library outheap.events writes statistics as events: no document says that nothing does."""
    assert (ROOT / "outheap/lib/events").is_dir()
    for file in DOCS.glob("*.md"):
        assert not re.search(r"not written\s+as\s+events", file.read_text()), file.name


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
    listed = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
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
            links = [p for p in LINK.findall(text(file)) if "://" not in p]
            to_see += [str(((ROOT / file).parent / p).resolve().relative_to(ROOT)) for p in links]
    for file in seen - {"README.md", "CHANGES.md"}:
        listed = [rf"\s{re.escape(file)}[\s)]", rf"\({Path(file).parent}/\*\{Path(file).suffix} with_prefix"]
        assert sum(len(re.findall(p, rules)) for p in listed) == 2, file  # of each package

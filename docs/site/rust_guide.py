# SPDX-License-Identifier: MIT
"""The guide of the crate ocaml-boxroot as pages of the site.

The guide is written for rustdoc, which takes code without a language for Rust, hides lines of code that begin with `#`,
and finds what `crate::Root` names. rustdoc gives each page a title; here the first line becomes it.
"""

from __future__ import annotations

import re
from pathlib import Path

CRATE = "rust/ocaml-boxroot"
FENCED = re.compile(r"^(```.*?^```)$", re.M | re.S)
LINK = re.compile(r"\[(`[^`]*`|[^]`[]*)\]\(((?:\w+@|crate::)[\w:]+)(?:\(\)|!)?\)")
DEFINED = re.compile(r"^\[(.*)\]: (\S+)\n", re.M)
MEMBERS = ("method", "tymethod", "variant", "associatedconstant", "structfield")


def pages(root: Path) -> list[str]:
    """In the order of the crate's documentation."""
    text = (root / CRATE / "src/lib.rs").read_text()
    return [f"{CRATE}/guide/{name}" for name in re.findall(r'include_str!\("\.\./guide/(\w+\.md)"\)', text)]


def target(path: str, rustdoc: Path | None) -> str:
    """Where a link leads, as seen from a page of the guide. Empty without rustdoc's output."""
    kind, _, path = path.rpartition("@")
    if kind == "mod":
        return f"{path}.md"
    if rustdoc is None:
        return ""
    _, item, *member = path.split("::")
    folder = rustdoc / "ocaml_boxroot"
    found = sorted(folder.glob(f"*.{item}.html"), key=lambda f: f.name.startswith(("attr", "derive")) != bool(kind))
    file = next(iter(found), folder / item / "index.html")
    if not file.exists():
        raise LookupError(f"the guide names {path}, which rustdoc does not have")
    place = f"../../../rustdoc/{file.relative_to(rustdoc)}"
    if not member:
        return place
    text = file.read_text()
    anchor = next((a for a in (f"{m}.{member[0]}" for m in MEMBERS) if f'id="{a}"' in text), None)
    if anchor is None:
        raise LookupError(f"the guide names {path}, which rustdoc does not have")
    return f"{place}#{anchor}"


def code(block: str) -> str:
    first, *lines = block.split("\n")
    if first != "```" and not first.startswith("```compile_fail"):
        return block
    return "\n".join(["```rust", *(line for line in lines if line != "#" and not line.startswith("# "))])


def page(text: str, rustdoc: Path | None) -> str:
    def link(match: re.Match[str]) -> str:
        to = target(match[2], rustdoc)
        return f"[{match[1]}]({to})" if to else match[1]

    parts = FENCED.split(text)
    for i, part in enumerate(parts):
        parts[i] = code(part) if i % 2 else re.sub(r"^#", "##", part, flags=re.M)
    text = "".join(parts)
    defined = DEFINED.findall(text)
    text = DEFINED.sub("", text)
    for name, to in defined:
        text = text.replace(f"[{name}]", f"[{name}]({to})")
    title, rest = LINK.sub(link, text).split("\n", 1)
    return (title[1:] if title.startswith("##") else "# " + re.split("[:.]", title)[0]) + "\n" + rest

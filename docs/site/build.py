# SPDX-License-Identifier: MIT
"""Builds the site; called by tools/docs.

    build.py FOLDER [RUSTDOC]     writes FOLDER/site, with rustdoc's output in it

The pages are laid out as in the repository, so links from one document to another need no change. What a document links
to that is no document becomes a page with its text.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import rust_guide
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.M | re.S)
LANGUAGES = {".ml": "ocaml", ".mli": "ocaml", ".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".rs": "rust"}
PICTURES = (".svg", ".png")
WRITTEN = "---\nwritten: true\n---\n\n"  # in front of a page that is no file of the repository
NAMED = re.compile(r"^```(\S+) (\S+)$", re.M)  # a file of a program that a document shows
TABS = (  # title, folder; in this order
    ("Start", "docs/start"), ("Guide", "docs/guide"), ("Reference", "docs/reference"), ("Measured", "docs/measured"),
    ("Internals", "docs/internals"), ("Decisions", "docs/decisions"),
)  # fmt: skip
HEADERS = {
    "boxroot.h": "boxroot/include/boxroot.h", "boxroot.hpp": "boxroot/include/boxroot/boxroot.hpp",
    "frame.h": "boxroot/include/boxroot/frame.h", "weak.h": "boxroot/include/boxroot/weak.h",
    "ephemeral.h": "boxroot/include/boxroot/ephemeral.h", "report.h": "boxroot/include/boxroot/report.h",
    "outheap.h": "outheap/include/outheap.h", "outheap_marker.h": "outheap/include/outheap_marker.h",
    "outheap_region.h": "outheap/**/outheap_region.h",
}  # fmt: skip
INTERFACES = (
    "boxroot.mli",
    "outheap.mli",
    "outheap_events.mli",
    "outheap_region.mli",
    "outheap_hashcons.mli",
    "outheap_linear.mli",
)


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(w) for w in words], cwd=cwd, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def one(pattern: str) -> Path:
    """The file itself, and not a copy that a build made."""
    return min(f for f in ROOT.glob(pattern) if f.relative_to(ROOT).parts[0][0] not in "_.")


# --- the documents ----------------------------------------------------------------------------------------------------


def outside_code(text: str, change: object) -> str:
    return "".join(part if i % 2 else change(part) for i, part in enumerate(CODE.split(text)))


def titled(match: re.Match[str]) -> str:
    language = "scheme" if match[1].startswith("dune") else match[1]
    return f'```{language} title="{match[2]}"'


def status() -> str:
    """What this site describes, in a sentence."""
    version = re.search(r"^\(version (.*)\)", (ROOT / "dune-project").read_text(), re.M)
    changes = (ROOT / "CHANGES.md").read_text()
    state = "not released yet" if f"## {version[1]} (unreleased)" in changes else "released"
    git = ["git", "log", "-1", "--format=%cs, commit %h"]
    commit = subprocess.run(git, cwd=ROOT, text=True, capture_output=True).stdout.strip()
    return f"Version {version[1]}, {state}. This site was built from the sources of {commit or 'an archive'}."


def stage(pages: Path, rustdoc: Path | None) -> None:
    """Copies the documents, and what they lead to."""
    guide = rust_guide.pages(ROOT)
    waiting = ["README.md", "CHANGES.md", "CONTRIBUTING.md"]
    waiting += [*guide, *(str(f.relative_to(ROOT)) for f in ROOT.glob("docs/*/*.md"))]
    seen: set[str] = set()

    while waiting:
        name = waiting.pop()
        if name in seen or not (ROOT / name).is_file():
            continue
        seen.add(name)
        source, target = ROOT / name, pages / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix in PICTURES:
            shutil.copy(source, target)
        elif source.suffix != ".md":
            language = LANGUAGES.get(source.suffix, "text")
            text = f"# {name}\n\n```{language}\n{source.read_text()}```\n"
            target.with_name(target.name + ".md").write_text(WRITTEN + text)
        else:

            def follow(match: re.Match[str], source: Path = source) -> str:
                if "://" in match[2]:
                    return match[0]
                where = (source.parent / match[2]).resolve()
                if where.is_dir():
                    where /= "README.md"
                if not where.is_file() or ROOT not in where.parents:
                    return match[0]  # mkdocs says so
                waiting.append(str(where.relative_to(ROOT)))
                path = os.path.relpath(where, source.parent)
                return match[1] + path + ("" if where.suffix in (".md", *PICTURES) else ".md") + match[3]

            text = source.read_text()
            text = rust_guide.page(text, rustdoc) if name in guide else text
            text = outside_code(text, lambda part: LINK.sub(follow, part))
            if name == "README.md":  # the first page
                title, rest = text.split("\n", 1)
                text = f"{title}\n\n{(HERE / 'landing.txt').read_text().replace('STATUS', status())}\n{rest}"
            target.write_text(NAMED.sub(titled, text))


# --- the reference of C -----------------------------------------------------------------------------------------------


def sentences(comment: str) -> str:
    """The text of a comment: paragraphs, lists and excerpts; words in front of a colon stand out."""
    lines = [line.strip() if i == 0 else line for i, line in enumerate(comment.strip().split("\n"))]
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    lines = lines[:1] + [line[margin:] for line in lines[1:]]
    out: list[str] = []
    for line in lines:
        if line.startswith("  ") and line.strip() and not line.lstrip().startswith("- "):
            if out and out[-1] and not out[-1].startswith("    "):
                out.append("")
            out.append("    " + line.strip())
            continue
        full = len(out[-1]) > 96 if out and out[-1] else True
        if re.match(r"(Failure|Cost|Result|Words|Needs)\b.*", line) or not full and out[-1].endswith("."):
            out.append("")
        out.append(line)
    text = html.escape("\n".join(out), quote=False).replace("*", "\\*").replace("_", "\\_")
    text = re.sub(r"\\\*(\w[\w ]*)\\\*", r"*\1*", text)
    text = re.sub(r"`([^`\n]*)`", lambda m: m[0].replace("\\", ""), text)
    return re.sub(r"^(Failure|Cost|Result):", r"**\1:**", text, flags=re.M)


def written(member: ElementTree.Element) -> str:
    """A declaration as in C."""

    def text(tag: str) -> str:
        found = member.find(tag)
        return re.sub(r"\s+", " ", "".join(found.itertext())).strip() if found is not None else ""

    kind, name = member.get("kind"), text("name")
    if kind == "define":
        return ""
    if kind == "enum":
        values = [v.findtext("name") + (f" {i}" if (i := v.findtext("initializer")) else "")
                  for v in member.findall("enumvalue")]  # fmt: skip
        return f"enum {'' if name.startswith('@') else name + ' '}{{\n  " + ",\n  ".join(values) + "\n};"
    if kind == "function":
        return re.sub(r"\s+", " ", f"{text('type')} {name}{text('argsstring')};").strip()
    return text("definition") + text("argsstring") + ";"


def of_header(name: str, xml: Path) -> str:
    """The page of a header."""
    source = one(HEADERS[name])
    lines = source.read_text().split("\n")
    compounds = [ElementTree.parse(f).getroot()[0] for f in xml.glob("*.xml") if f.name not in ("index.xml",)]
    mine = [
        c
        for c in compounds
        if c.get("kind") in ("file", "class", "struct")
        and any(place.get("file", "").endswith(str(source.relative_to(ROOT))) for place in c.findall("location"))
    ]
    members, intro = {}, ""
    for compound in mine:
        said = compound.find("detaileddescription")
        if compound.get("kind") == "file":
            intro = "\n".join(v.text or "" for v in said.iter("verbatim"))
        for member in compound.iter("memberdef"):
            at = int(member.find("location").get("line"))
            told = "\n".join(v.text or "" for v in member.find("detaileddescription").iter("verbatim"))
            title, declaration = member.findtext("name"), written(member)
            private = member.get("prot") == "private" or title.startswith(("bxr_", "BXR_", "oh_", "~"))
            if (
                declaration
                and not private
                and not (member.get("kind") == "variable" and compound.get("kind") != "class")
            ):
                members[at, title] = (told, declaration)
    out = [f"# {name}", "", sentences(intro), ""]
    group: list[tuple[str, str]] = []
    texts, last = "", 0

    def end() -> None:
        if group:
            names = ", ".join(dict.fromkeys(title for title, _ in group if not title.startswith("@")))
            out.extend(
                [f"## {names or 'Constants'}", "", "```c", *(d for _, d in group), "```", "", sentences(texts), ""]
            )

    for (at, title), (told, declaration) in sorted(members.items()):
        apart = any(not line.strip() for line in lines[last : at - 1])
        if told or apart:
            end()
            group, texts = [], told
        group.append((title, declaration))
        last = at
    end()
    return "\n".join(out)


def c_pages(pages: Path, work: Path) -> None:
    files = [one(pattern) for pattern in HEADERS.values()]
    filter_ = f"{sys.executable} {HERE / 'comments.py'}"
    settings = {
        "INPUT": " ".join(map(str, files)), "OUTPUT_DIRECTORY": work, "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO",
        "GENERATE_XML": "YES", "XML_PROGRAMLISTING": "NO", "EXTRACT_ALL": "YES", "MARKDOWN_SUPPORT": "NO",
        "EXTRACT_PRIVATE": "NO", "INPUT_FILTER": f'"{filter_}"', "ENABLE_PREPROCESSING": "YES", "QUIET": "YES",
        "MACRO_EXPANSION": "YES", "EXPAND_ONLY_PREDEF": "YES", "WARNINGS": "NO", "SEARCH_INCLUDES": "NO",
        "PREDEFINED": 'BXR_INLINE= "BXR_LINK_NAME(x)=" BOXROOT_HPP_INLINE= BOXROOT_HPP_HERE= BOXROOT_HPP_AND_HERE='
                      " BOXROOT_HPP_EXCEPTIONS=1 __cplusplus=1",
    }  # fmt: skip
    work.mkdir(parents=True)
    (work / "Doxyfile").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    run("doxygen", work / "Doxyfile", cwd=work)
    folder = pages / "docs/reference/c"
    folder.mkdir(parents=True)
    for name in HEADERS:
        (folder / f"{name}.md").write_text(WRITTEN + of_header(name, work / "xml"))


# --- the reference of OCaml -------------------------------------------------------------------------------------------


def ocaml_pages(pages: Path, work: Path) -> None:
    """ocamldoc's pages, each inside a page of the site."""
    work.mkdir(parents=True)
    for name in INTERFACES:
        shutil.copy(one(f"*/**/{name}"), work)
    library = Path(run("ocamlc", "-where", cwd=work).strip())
    present = [n for n in INTERFACES if "events" not in n or (library / "runtime_events").is_dir()]  # not with 4.14
    include = ("-I", "+unix", "-I", "+runtime_events")
    run("ocamlc", "-c", *include, *present, cwd=work)
    (work / "html").mkdir()
    run("ocamldoc", "-html", *include, "-d", "html", *present, cwd=work)
    folder = pages / "docs/reference/ocaml"
    folder.mkdir(parents=True)
    modules = {Path(name).stem.capitalize() for name in present}
    for file in sorted((work / "html").glob("*.html")):
        if file.name.split(".")[0] not in modules or file.name.startswith("index"):
            continue
        body = file.read_text().split("<body>", 1)[1].split("</body>", 1)[0]
        body = re.sub(r'<div class="navbar">.*?</div>', "", body, flags=re.S)
        body = re.sub(r"<h1>.*?</h1>", "", body, flags=re.S)
        # links to pages that are not there: sources of types, and indices
        body = re.sub(r'<a href="(?!#)(?:type_|index)[^"]*">(.*?)</a>', r"\1", body, flags=re.S)
        body = re.sub(r"\n\s*\n", "\n", body)
        (folder / f"{file.stem}.md").write_text(
            f'{WRITTEN}# {file.stem}\n\n<div class="ocamldoc">\n{body.strip()}\n</div>\n'
        )


# --- the site ---------------------------------------------------------------------------------------------------------


def title_of(page: Path) -> str:
    found = re.search(r"^# (.*)$", page.read_text(), re.M)
    return found[1].replace("`", "") if found else page.stem


def navigation(pages: Path, rust: bool) -> list[object]:
    def entry(page: Path) -> dict[str, str]:
        return {title_of(page): str(page.relative_to(pages))}

    found: list[object] = [{"Boxroot and Outheap": "README.md"}]
    for title, folder in TABS:
        files = sorted((pages / folder).glob("*.md"), key=lambda f: (f.name != "README.md", f.name))
        inside: list[object] = [str(f.relative_to(pages)) if f.name == "README.md" else entry(f) for f in files]
        if title == "Reference":
            for name, language in (("c", "C and C++"), ("ocaml", "OCaml")):
                inside.append({language: [entry(f) for f in sorted((pages / folder / name).glob("*.md"))]})
            if rust:
                inside.append({"Rust": "docs/reference/rust.md"})
        if inside:
            found.append({title: inside})
        if title == "Guide":
            guide = (pages / name for name in rust_guide.pages(ROOT))
            found.append({"Rust": [f"{rust_guide.CRATE}/README.md", *map(entry, guide)]})
    rest = [pages / "CHANGES.md", pages / "CONTRIBUTING.md", *sorted(pages.glob("examples/README.md")),
            *sorted(pages.glob("bench/README.md"))]  # fmt: skip
    found.append({"More": [entry(f) for f in rest if f.exists()]})
    return found


def broken_links(site: Path) -> list[str]:
    """Of all pages but rustdoc's, which checks its own: links to files or anchors that are not there."""
    anchors: dict[Path, set[str]] = {}

    def known(page: Path) -> set[str]:
        if page not in anchors:
            anchors[page] = set(re.findall(r'\b(?:id|name)="([^"]+)"', page.read_text(errors="replace")))
        return anchors[page]

    wrong = []
    for page in sorted(site.rglob("*.html")):
        if page.relative_to(site).parts[0] == "rustdoc" or page.name == "404.html":
            continue
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', page.read_text()):
            link = html.unescape(link)
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                wrong.append(f"{page.relative_to(site)}: {link}")
                continue
            looked_at = target.suffix == ".html" and site / "rustdoc" not in target.parents
            if anchor and looked_at and unquote(anchor) not in known(target) and not anchor.startswith("__"):
                wrong.append(f"{page.relative_to(site)}: {link}: no such anchor")
    return sorted(set(wrong))


def main(out: Path, *rustdoc: Path) -> None:
    pages, site = out / "pages", out / "site"
    for folder in (pages, site, out / "doxygen", out / "ocamldoc"):
        shutil.rmtree(folder, ignore_errors=True)
    stage(pages, next(iter(rustdoc), None))
    c_pages(pages, out / "doxygen")
    ocaml_pages(pages, out / "ocamldoc")
    for folder in rustdoc:
        text = "# Rust\n\nThe references of the crates, written by rustdoc, with a search of their own:\n\n"
        crates = sorted(f.parent.name for f in folder.glob("*/index.html") if (f.parent / "all.html").exists())
        for crate in crates:
            text += f'- <a href="../../rustdoc/{crate}/index.html">{crate}</a>\n'
        (pages / "docs/reference/rust.md").write_text(WRITTEN + text)
        shutil.copytree(folder, pages / "rustdoc")
    shutil.copy(HERE / "site.css", pages)
    settings = yaml.safe_load((HERE / "mkdocs.yml").read_text())
    settings["hooks"] = [str(HERE / name) for name in settings["hooks"]]
    if not settings["repo_url"]:
        del settings["repo_url"], settings["edit_uri"]
    settings |= {"docs_dir": str(pages), "site_dir": str(site), "nav": navigation(pages, bool(rustdoc))}
    (out / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", out / "mkdocs.yml"], env=environment
    )
    wrong = broken_links(site) if (site / "index.html").exists() else []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(site / "index.html")
    sys.exit(done.returncode or bool(wrong))


if __name__ == "__main__":
    main(*(Path(word).resolve() for word in sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""Which sources of OCaml outheap-build accepts: rules, digests, configurations; and the test of what it built."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from testing import compilers, matrix, steps, variants
from testing.compilers import Compiler
from testing.run import BUILD, ROOT, Outcome, run

HOME = ROOT / "outheap"
VERSIONS = {4: ("4.14.0", "4.14.1"), 5: ("5.1.0", "5.3.0", "5.4.1", "5.5.2")}
FIVE, LATE, FOUR = "5.4.1", "5.5.2", "4.14.1"
# A patch: file, text, replacement; and what the refusal names.
BREAKING = {
    "a-use": (FIVE, "hash.c", "if (Is_long(v)) {", "if (Is_long(v) || Is_long(v + 2)) {",
              "rule use: runtime/hash.c: in caml_hash"),
    "a-use-elsewhere": (FIVE, "printexc.c", "CAMLexport char * caml_format_exception(",
                        "int tag_of(value v);\nint tag_of(value v)\n{\n  return Tag_val(v);\n}\n"
                        "CAMLexport char * caml_format_exception(", "rule use: runtime/printexc.c: in tag_of"),
    "an-edit": (FIVE, "parsing.c", "Tag_val(v) == String_tag", "1", "rule edit: runtime/parsing.c, print_token"),
    "an-edited-function": (FIVE, "extern.c", "caml_obj_reachable_words(", "caml_obj_words(",
                           "rule edit: runtime/extern.c has no function"),
    "the-marker": (FIVE, "major_gc.c", "budget--; /* header word */", "budget -= 2;", "rule text: runtime/major_gc.c"),
    "memory": (FIVE, "memory.c", "CAMLexport CAMLweakdef void caml_modify (",
               "void *more(void);\nvoid *more(void)\n{\n  return caml_mem_map(1 << 20, 0);\n}\n"
               "CAMLexport CAMLweakdef void caml_modify (", "rule memory: runtime/memory.c: in more"),
    "a-read": (FIVE, "io.c", "CAMLexport int caml_channel_binary_mode(",
               "int peek(value v);\nint peek(value v)\n{\n  return Wosize_val(v);\n}\n"
               "CAMLexport int caml_channel_binary_mode(", "rule reads: io, peek"),
    "a-macro": (FIVE, "caml/mlvalues.h", "#define Is_block(x)", "#define Is_block(x) 1 &&",
                "rule text: runtime/caml/mlvalues.h: Is_block"),
    "the-start-of-marking": (LATE, "major_gc.c", "caml_gc_phase = Phase_sweep_and_mark_main;\n",
                             "caml_gc_phase = Phase_mark_final;\n",
                             "rule text: runtime/major_gc.c: caml_mark_roots_stw"),
    "colours-at-birth": (LATE, "caml/shared_heap.h", "? caml_global_heap_state.MARKED\n    : caml_global",
                         "? caml_global_heap_state.UNMARKED\n    : caml_global",
                         "rule text: runtime/caml/shared_heap.h: caml_allocation_status"),
    "a-use-4": (FOUR, "major_gc.c", "static void start_cycle (void)\n{",
                "static void start_cycle (void)\n{\n  if (Is_in_heap(0)) return;",
                "rule use: runtime/major_gc.c: in start_cycle"),
    "a-replaced-function": (FOUR, "memory.c", "int caml_page_table_lookup(void * addr)\n{",
                            "int caml_page_table_lookup(void * addr)\n{\n  addr = 0;", "rule text: runtime/memory.c"),
}  # fmt: skip


@cache
def sources(version: str) -> Path:
    return Path(compilers.toolchain("--source", version))


def patched(version: str, name: str, *patches: tuple[str, str, str]) -> Path:
    """A copy of the runtime's sources in which texts are replaced."""
    copy = BUILD / f"outheap/versions/{version}-{name}"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    shutil.copytree(sources(version) / "runtime", copy / "runtime")
    shutil.copy(sources(version) / "VERSION", copy)
    for file, old, new in patches:
        path = copy / "runtime" / file
        text = path.read_text()
        assert old in text, f"{file} of {version} has no text {old}"
        path.write_text(text.replace(old, new, 1))
    return copy


def rules(version: str, folder: Path, *more: str, called: str = "") -> Outcome:
    overlay = HOME / f"runtime/overlay/ocaml{version.split('.')[0]}"
    words = ["python3", HOME / "tool/rules.py", "check", overlay, folder, "--version", called or version]
    log = BUILD / f"outheap/versions/{folder.name}{called}.log"
    return run([*words, "--digests", HOME / "runtime/overlay/digests", *more], ROOT, log, 60)


def build(compiler: Compiler, folder: Path | str, output: Path, *more: str, tool: Path = variants.TOOL) -> Outcome:
    words = [tool, "--ocaml", compiler.prefix, "--sources", folder, "--output", output, "--flavours", "release", *more]
    return run(words, ROOT, output.with_suffix(".log"), 300, compiler.settings)


@pytest.mark.parametrize("version", [v for versions in VERSIONS.values() for v in versions])
def test_known_sources_keep_the_rules(version: str) -> None:
    outcome = rules(version, sources(version))
    assert outcome.passed and outcome.text.strip() == "", outcome.text


@pytest.mark.parametrize("generation", VERSIONS)
def test_rules_are_those_of_the_known_versions(generation: int) -> None:
    """The file is what the command writes: no line is there that no version needs."""
    words = [f"{version}={sources(version)}" for version in VERSIONS[generation]]
    overlay = HOME / f"runtime/overlay/ocaml{generation}"
    done = subprocess.run(
        ["python3", HOME / "tool/rules.py", "record", overlay, *words], capture_output=True, text=True, check=True
    )
    assert (overlay / "rules").read_text() == done.stdout


@pytest.mark.parametrize("name", BREAKING)
def test_a_broken_rule_is_named(name: str) -> None:
    version, file, old, new, reason = BREAKING[name]
    outcome = rules(version, patched(version, name, (file, old, new)), "--accept", "all")
    assert outcome.code == 3 and reason in outcome.text, outcome.text


@pytest.mark.parametrize("version", [FIVE, LATE])
def test_a_neighbour_is_accepted_by_rules(version: str) -> None:
    """A version that nobody has checked; what differs from all versions is listed."""
    folder = patched(version, "neighbour", ("hash.c", "/* The generic hashing primitive */", "/* Another comment */"))
    outcome = rules(version, folder, called=f"{version[:-1]}9")
    assert outcome.passed and outcome.text.split() == ["hash"], outcome.text


def test_all_broken_rules_of_a_later_version_are_named() -> None:
    """Also where a substitution finds no text, which once was the only thing that was said."""
    patches = [
        ("parsing.c", "Tag_val(v) == String_tag", "1"),
        ("gc_ctrl.c", "++ Caml_state->stat_forced_major_collections;", ""),
        ("hash.c", "if (Is_long(v)) {", "if (Is_long(v) || Is_long(v + 2)) {"),
        ("major_gc.c", "budget--; /* header word */", "budget -= 2;"),
    ]
    folder = patched(LATE, "later", *patches)
    outcome = rules(LATE, folder, called="5.6.0")
    assert outcome.code == 3
    for words in (
        "rule edit: runtime/parsing.c, print_token",
        "rule edit: runtime/gc_ctrl.c",
        "rule use: runtime/hash.c",
        "rule text: runtime/major_gc.c: do_some_marking",
        "these sources of OCaml 5.6.0 break 5 rules",
        "docs/internals/porting.md",
    ):
        assert words in outcome.text, outcome.text


def harmless(compiler: Compiler, name: str) -> Path:
    text = "/* The generic hashing primitive */"
    return patched(compiler.version, name, ("hash.c", text, "static int const patched = 1;\n" + text))


def test_changed_sources_need_acceptance(compiler: Compiler) -> None:
    folder, output = harmless(compiler, "harmless"), BUILD / f"{compiler.name}+outheap/changed"
    shutil.rmtree(output, ignore_errors=True)
    for more in ([], ["--accept", "obj"]):
        refused = build(compiler, folder, output, "--self-test", "0", *more)
        assert refused.code == 3 and "--accept 'hash'" in refused.text, refused.text
        assert not list(output.glob("*.a"))
    accepted = build(compiler, folder, output, "--self-test", "0", "--accept", "hash")
    assert accepted.passed and "sources differ from all that were checked in: hash" in accepted.text, accepted.text
    assert (output / "libasmrun_outheap.a").exists()


def test_sources_can_be_an_archive(compiler: Compiler) -> None:
    folder, output = harmless(compiler, "archived"), BUILD / f"{compiler.name}+outheap/from-archive"
    shutil.rmtree(output, ignore_errors=True)
    archive = folder.with_suffix(".tar")
    subprocess.run(["tar", "cf", archive, "-C", folder.parent, folder.name], check=True)
    refused = build(compiler, archive, output)
    assert refused.code == 3 and "differ in" in refused.text, refused.text


def test_unsupported_compilers_are_refused(compiler: Compiler) -> None:
    """A compiler that says so of itself."""
    folder = BUILD / f"{compiler.name}+outheap/pretending"
    folder.mkdir(parents=True, exist_ok=True)
    fake = folder / "ocamlopt"
    for line, reason in (
        ("version: 5.0.0", "OCaml 5.0.0 is not supported"),
        ("version: 6.0.0", "OCaml 6.0.0 is not supported"),
        ("word_size: 32", "64-bit"),
        ("profinfo: true", "profiling information"),
        ("os_type: Win32", "mmap"),
    ):
        key = line.split(":")[0]
        fake.write_text(
            f'#!/bin/sh\n"{compiler.ocamlopt}" "$@" | grep -v "^{key}:"\n[ "$1" != -config ] || echo "{line}"\n'
        )
        fake.chmod(0o755)
        outcome = run([variants.TOOL, "--ocaml", fake], ROOT, folder / "log", 60, compiler.settings)
        assert outcome.code == 3 and reason in outcome.text, outcome.text


def test_a_variant_that_fails_is_not_installed(compiler: Compiler) -> None:
    """The question of the marker is answered wrongly: nothing in the rules shows that, the torture test does."""
    if compiler.major < 5:
        pytest.skip("the change is one of OCaml 5's loop")
    base = BUILD / f"{compiler.name}+outheap/failing"
    shutil.rmtree(base, ignore_errors=True)
    for part in ("outheap/runtime", "outheap/include", "outheap/tool"):
        shutil.copytree(ROOT / part, base / part)
    loop = base / "outheap/runtime/overlay/ocaml5/mark_loop.h"
    old = "if (!oh_mark_loop_is_markable(form, policy, block)) continue;"
    assert old in loop.read_text()
    loop.write_text(loop.read_text().replace(old, ""))
    output = base / "library"
    output.mkdir()
    (output / "libasmrun_outheap.a").write_text("the one before")
    outcome = build(
        compiler, sources(compiler.version), output, "--self-test", "8", tool=base / "outheap/tool/outheap-build"
    )
    assert outcome.code == 4 and "nothing was installed" in outcome.text, outcome.text
    assert [f.name for f in output.iterdir()] == ["libasmrun_outheap.a"]
    assert (output / "libasmrun_outheap.a").read_text() == "the one before"


@pytest.mark.everything
def test_every_flavour_passes_its_test(compiler: Compiler) -> None:
    output = BUILD / f"{compiler.name}+outheap/tested"
    flavours = (
        "release debug pic instrumented bytecode bytecode-debug bytecode-instrumented bytecode-pic count order notable"
    )
    words = [variants.ALL, "--ocaml", compiler.prefix, "--sources", sources(compiler.version), "--output", output]
    outcome = run(
        [*words, "--flavours", flavours, "--self-test", "40"], ROOT, output.with_suffix(".log"), 900, compiler.settings
    )
    assert outcome.passed, outcome.tail()
    assert len(list(output.glob("lib*run_outheap*.a"))) == 11


# The compiler of a program, that for which the runtime was built; what the linker says, or the program when it starts.
OTHER_VERSIONS = (
    ("5.3.0", "5.4.1", "", "this runtime was built for OCaml 5.4.1, and the program was compiled by OCaml 5.3: "),
    ("5.4.1", "5.3.0", "", "this runtime was built for OCaml 5.3.0, and the program was compiled by OCaml 5.4: "),
    ("5.5.2", "5.4.1", "", "this runtime was built for OCaml 5.4.1, and the program was compiled by OCaml 5.5: "),
    ("5.4.1", "5.5.2", "", "this runtime was built for OCaml 5.5.2, and the program was compiled by OCaml 5.4: "),
    ("5.5.2", "5.4.1", "is for OCaml 5.4.1, but this was compiled by OCaml 5.5 or later", ""),
    ("5.5.2", "5.3.0", "is for OCaml 5.3.0, but this was compiled by OCaml 5.4 or later", ""),
    ("4.14.1", "5.5.2", "is for OCaml 5.5.2, but this was compiled by OCaml 4", ""),
    ("5.5.2", "4.14.1", "is for OCaml 4.14.1, but this was compiled by OCaml 5", ""),
    ("5.4.1", "5.3.0", "is for OCaml 5.3.0, but this was compiled by OCaml 5.4 or later", ""),
    ("4.14.1", "5.4.1", "is for OCaml 5.4.1, but this was compiled by OCaml 4", ""),
    ("5.4.1", "4.14.1", "is for OCaml 4.14.1, but this was compiled by OCaml 5", ""),
)


@pytest.mark.everything
@pytest.mark.parametrize(
    ("program", "runtime", "linker", "start"),
    [pytest.param(*row, id=f"{row[0]}-on-{row[1]}{'-links' if row[3] else ''}") for row in OTHER_VERSIONS],
)
def test_a_runtime_for_another_version(program: str, runtime: str, linker: str, start: str) -> None:
    compiler, library = compilers.find(program), variants.library(compilers.find(runtime), "release")
    folder = BUILD / f"outheap/versions/{program}-on-{runtime}{'-links' if start else ''}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    what = "Sys.ocaml_version" if linker else '"hello"'
    (folder / "hello.ml").write_text(f"let () = print_endline {what}\n")
    words = [compiler.ocamlopt, "-I", library, "-runtime-variant", "_outheap", "hello.ml", "-o", "hello"]
    linked = run(words, folder, folder / "link.log", 60, compiler.settings)
    assert linked.passed == (linker == "")
    assert linker in linked.text, linked.text
    if start:
        started = run(["./hello"], folder, folder / "start.log", 60)
        assert started.code == 2 and start in started.text, started.text


def launched_from(compiler: Compiler, folder: Path) -> list[str]:
    """From OCaml 5.5 on the path of the interpreter is not found in the folders of -I."""
    return [] if compiler.version < "5.5" else ["-launch-method", f"sh {folder}"]


@pytest.mark.everything
def test_instrumented_and_shared(compiler: Compiler) -> None:
    """The variants that stock has too: i, and _pic for bytecode in a shared object."""
    output = BUILD / f"{compiler.name}+outheap/more-variants"
    flavours = "instrumented bytecode-instrumented bytecode-pic"
    words = [variants.TOOL, "--ocaml", compiler.prefix, "--sources", sources(compiler.version), "--output", output]
    words += ["--flavours", flavours, "--self-test", "0"]
    outcome = run(words, ROOT, output.with_suffix(".log"), 300, compiler.settings)
    assert outcome.passed, outcome.tail()
    (output / "hello.ml").write_text("let () = Gc.full_major (); print_endline Sys.ocaml_version\n")
    for start, variant, name in (
        ([compiler.ocamlopt], "_outheapi", "native"),
        ([compiler.ocamlc, "-custom"], "_outheapi", "custom"),
        ([compiler.ocamlc, *launched_from(compiler, output)], "_outheapi", "plain"),
    ):
        words = [*start, "-I", output, "-runtime-variant", variant, "hello.ml", "-o", name]
        steps.command(words, output, compiler.settings)
        outcome = run([f"./{name}"], output, output / f"{name}.log", 60)
        assert outcome.passed and outcome.text == f"{compiler.version}\n", outcome.text
    words = [compiler.ocamlc, "-output-complete-obj", "-I", output, "-runtime-variant", "_outheap_pic", "hello.ml"]
    steps.command([*words, "-o", "hello.so"], output, compiler.settings)


def switch(compiler: Compiler, name: str) -> tuple[Path, dict[str, str]]:
    """A folder that the compiler takes for its own, of links to everything; and the settings for that."""
    folder = BUILD / f"{compiler.name}+outheap/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib/ocaml").mkdir(parents=True)
    for file in compiler.where.iterdir():
        (folder / "lib/ocaml" / file.name).symlink_to(file)
    return folder, compiler.settings | {"OCAMLLIB": str(folder / "lib/ocaml")}


@pytest.mark.parametrize(
    "place", ["lib/ocaml-src", ".opam-switch/sources/ocaml-base-compiler.{}", "user/lib/ocaml-src"]
)
def test_sources_of_the_switch_are_found(compiler: Compiler, place: str) -> None:
    """They are known by a change. The last place is that of a switch with the system's compiler."""
    folder, settings = switch(compiler, f"switch-{place[0]}")
    where = folder / place.format(compiler.version)
    where.parent.mkdir(parents=True, exist_ok=True)
    harmless(compiler, f"switch-{place[0]}").rename(where)
    words = [variants.TOOL, "--ocaml", compiler.prefix, "--output", folder / "none"]
    settings["OPAM_SWITCH_PREFIX"] = str(folder / "user")
    outcome = run(words, ROOT, folder / "log", 60, settings)
    assert outcome.code == 3 and "--accept 'hash'" in outcome.text, outcome.text


def stripped(compiler: Compiler) -> dict[str, str]:
    """The compiler with runtime libraries that say nothing of how they were compiled."""
    folder, settings = switch(compiler, "stripped")
    for file in compiler.where.glob("lib*run*.a"):
        copy = folder / "lib/ocaml" / file.name
        copy.unlink()
        shutil.copy(file, copy)
        subprocess.run(["strip", "--strip-debug", copy], check=True)
    return settings


@pytest.mark.everything
@pytest.mark.parametrize("way", ["stripped", "clang"])
def test_configurations(compiler: Compiler, way: str) -> None:
    """Compiled with other options than the compiler's own runtime, or by another compiler."""
    if way == "clang" and not shutil.which("clang"):
        pytest.skip("no clang")
    output = BUILD / f"{compiler.name}+outheap/configuration-{way}"
    words = [variants.TOOL, "--ocaml", compiler.prefix, "--sources", sources(compiler.version), "--output", output]
    more, settings = ["--cc", "clang"] if way == "clang" else [], compiler.settings
    if way == "stripped":
        settings = stripped(compiler)
    words += ["--flavours", "release debug pic bytecode", "--self-test", "16", *more]
    outcome = run(words, ROOT, output.with_suffix(".log"), 600, settings)
    assert outcome.passed, outcome.tail()
    assert _links_into_shared_objects(compiler, output), "the variant pic has code that depends on its place"


@pytest.mark.everything
def test_uncommon_compiler() -> None:
    """flambda, frame pointers, arrays of floats that are not flat, clang."""
    newest = [c for c in matrix.known_to_outheap() if c.version == VERSIONS[5][-1]]
    if not newest:
        pytest.skip("not the newest version")
    compiler = Compiler(Path(compilers.toolchain(f"{newest[0].version}+uncommon")))
    output = BUILD / f"{compiler.version}+uncommon/outheap"
    words = [variants.TOOL, "--ocaml", compiler.prefix, "--sources", sources(compiler.version), "--output", output]
    words += ["--flavours", "release debug pic bytecode", "--self-test", "30"]
    outcome = run(words, ROOT, BUILD / "outheap/versions/uncommon.log", 600, compiler.settings)
    assert outcome.passed, outcome.tail()
    assert _links_into_shared_objects(compiler, output)


def _links_into_shared_objects(compiler: Compiler, library: Path) -> bool:
    (library / "shared.ml").write_text("let () = print_endline \"shared\"\n")
    words = [compiler.ocamlopt, "-I", library, "-runtime-variant", "_outheap_pic", "-output-complete-obj", "shared.ml"]
    try:
        steps.command([*words, "-o", "shared.so"], library)
    except steps.BuildFailed:
        return False
    return (library / "shared.so").exists()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compiler" in metafunc.fixturenames:
        metafunc.parametrize("compiler", matrix.known_to_outheap(), ids=lambda c: c.name)

# SPDX-License-Identifier: MIT
"""The first hour, where it goes wrong: what the scripts in tools/ say and do without a network, with bad input, in odd
places.

    tools/python test -m pytest tools/test_tools.py

Nothing here uses the network, installs anything, or builds a compiler. OCAML (a version or a prefix) chooses the
compiler.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["boxroot", "outheap", "examples", "tools", "rust"]
FILES = ["Makefile", "pyproject.toml", "dune", "dune-project", "boxroot.opam", "outheap.opam"]
FILES += ["ocaml-boxroot.opam", "ocaml-boxroot.opam.template"]
FILES += ["boxroot.opam.template", "outheap.opam.template"]


def environment(changes):
    """The environment with changes (None: unset)."""
    found = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "BUILD", "OCAML")} | changes
    return {k: str(v) for k, v in found.items() if v is not None}


def run(*command, cwd=ROOT, timeout=900, **env):
    """Runs a command with changes to the environment; its output has both streams. The limit ends what would never end:
    a busy machine does not come near it."""
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=environment(env),
        timeout=timeout,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


def run_until_told(line, event, *command, times=1, cwd=ROOT, **env):
    """The same for a command that goes on until the file `event` is there (or for minutes): it comes when so many lines
    like `line` have been read."""
    process = subprocess.Popen(
        [str(c) for c in command],
        cwd=cwd,
        env=environment(env),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out = ""
    for said in process.stdout:
        out += said
        if len(re.findall(line, out, re.M)) == times:
            event.touch()
    assert event.exists(), out
    return process.wait(), out


def offline():
    """A prefix for commands that then have no network at all."""
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0:
        pytest.skip("unshare -n is not allowed here")
    return ["unshare", "-rn"]


def tree(folder):
    """The files of the repository that the scripts need, copied to a folder."""
    ignore = shutil.ignore_patterns("_build", "target", "__pycache__", "Cargo.lock")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignore)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def snapshot(folder):
    return {p.relative_to(folder): p.lstat().st_mtime_ns for p in folder.rglob("*")}


@pytest.fixture(scope="session")
def prefix():
    code, out = run(
        "bash", "-c", '. tools/lib.sh; ocaml_prefix "$1"', "tools/test", os.environ.get("OCAML", ""), timeout=3600
    )
    assert code == 0, out
    return Path(out.splitlines()[-1])


@pytest.fixture
def no_install(tmp_path):
    """A PATH whose apt-get and sudo only note that they were called."""
    folder = tmp_path / "fake"
    folder.mkdir()
    calls = tmp_path / "calls"
    for name in ("apt-get", "sudo"):
        script = folder / name
        script.write_text(
            f'#!/bin/sh\necho {name} "$@" >>{calls}\n[ {name} = apt-get ] || [ "$1 $2" = "-n true" ] || shift; exit 1\n'
        )
        script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}", calls


# --- without a network ---


@pytest.mark.parametrize("version", ["4.14.0", "newest", "5.4.9"])
def test_offline_compiler_says_so_at_once(tmp_path, version):
    code, out = run(
        *offline(),
        "tools/toolchain",
        version,
        BOXROOT_CACHE=tmp_path,
        BOXROOT_INSTALL="no",
        npm_config_cache=tmp_path / "npm",
    )
    assert code == 3, out
    assert "offline?" in out and "no OCaml 5" not in out, out


def test_offline_takes_a_compiler_that_is_cached(tmp_path):
    for version in ("5.3.0", "5.10.0", "4.14.1"):
        (tmp_path / "prefix" / version).mkdir(parents=True)
        (tmp_path / "prefix" / version / ".complete").touch()
    code, out = run(*offline(), "tools/toolchain", "newest", BOXROOT_CACHE=tmp_path)
    assert code == 0 and out.splitlines()[-1] == str(tmp_path / "prefix/5.10.0"), out


# Debian's archive with one release in its suite `sid`, as sources, and a later one in `experimental`, as the package
# `ocaml-source`, whose list or file may be out of reach.
ARCHIVE = """#!/bin/sh
case "$*" in
  *indextargets*) echo Debian mirror.invalid/debian;;
  *apt-experimental*update*) [ {fails} != update ];;
  *apt-experimental*madison*) echo "ocaml-source | 5.5.2-1~exp1 | mirror.invalid/debian experimental/main";;
  *apt-experimental*download*) exit 1;;
  *showsrc*) [ {fails} = sid ] || printf 'Package: ocaml\\nVersion: %s\\n' 4.14.1-1 5.4.1-4;;
  *"source --tar-only"*) mkdir ocaml && echo 5.4.1 >ocaml/VERSION && tar cJf ocaml_5.4.1.orig.tar.xz ocaml;;
esac
"""


@pytest.fixture
def archive(tmp_path):
    """Runs tools/toolchain beside such an archive, of which one thing fails; with what is cached so far."""

    def ask(*words, fails="nothing"):
        fake = tmp_path / "archive"
        fake.mkdir(exist_ok=True)
        for name in ("apt-get", "apt-cache"):
            (fake / name).write_text(ARCHIVE.format(fails=fails))
            (fake / name).chmod(0o755)
        where = {"BOXROOT_CACHE": tmp_path / "cache", "BOXROOT_INSTALL": "no"}
        return run("tools/toolchain", *words, PATH=f"{fake}:{os.environ['PATH']}", **where)

    return ask


def looked_up_again(cache, days):
    """In how many days `newest` is looked up again."""
    return round((cache / "newest").stat().st_mtime / 86400 + 7 - time.time() / 86400) == days


def test_newest_is_the_early_release(archive, tmp_path):
    code, out = archive("--resolve", "newest")
    assert code == 0 and out.splitlines()[-1] == "5.5.2", out
    assert looked_up_again(tmp_path / "cache", 7)


def test_newest_without_the_list_of_early_releases(archive, tmp_path):
    for _ in range(2):  # what failed is not taken for a list without releases
        (tmp_path / "cache/newest").unlink(missing_ok=True)
        code, out = archive("--resolve", "newest", fails="update")
        assert code == 0 and out.splitlines()[-1] == "5.4.1", out
        assert "taking OCaml 5.4.1: whether Debian's suite experimental has a newer one" in out, out
        assert looked_up_again(tmp_path / "cache", 1)
    (tmp_path / "cache/prefix/5.5.2").mkdir(parents=True)
    (tmp_path / "cache/prefix/5.5.2/.complete").touch()
    (tmp_path / "cache/newest").unlink()
    assert archive("--resolve", "newest", fails="update")[1].splitlines()[-1] == "5.5.2"


def test_newest_whose_sources_cannot_be_had(archive, tmp_path):
    code, out = archive("--source", "newest")
    assert code == 0 and out.splitlines()[-1] == f"{tmp_path}/cache/source/5.4.1", out
    assert "taking OCaml 5.4.1 instead, because the sources of 5.5.2 cannot be had" in out, out
    assert archive("--resolve", "newest")[1] == "5.4.1\n"
    assert looked_up_again(tmp_path / "cache", 1)
    code, out = archive("--source", "5.5.2")  # who asks for that version gets no other one
    assert code == 3 and "cannot fetch ocaml-source 5.5.2" in out, out


def test_nothing_that_newest_may_be_can_be_had(archive, tmp_path):
    code, out = archive("--source", "newest", fails="sid")
    assert code == 3 and "cannot fetch ocaml-source 5.5.2" in out and "instead" not in out, out


PYTHON = """#!/bin/sh
# Python, but for environments: their pip meets no network.
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
cat >"$3/bin/python" <<'END'
#!/bin/sh
[ -e {network} ] || {{ echo "ERROR: No matching distribution found"; exit 1; }}
case "$*" in "-m pip install "*) echo "$*" >>{calls};; *) echo "ran: $*";; esac
END
chmod +x "$3/bin/python"
"""


def test_offline_python_packages(tmp_path):
    """With a stand-in for pip: making an environment takes a busy machine minutes."""
    network, calls, fake = tmp_path / "network", tmp_path / "calls", tmp_path / "fake/python3"
    fake.parent.mkdir()
    fake.write_text(PYTHON.format(python=sys.executable, network=network, calls=calls))
    fake.chmod(0o755)
    where = {
        "BOXROOT_CACHE": tmp_path / "cache",
        "BOXROOT_INSTALL": "no",
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
    }
    code, out = run("tools/python", "lint", "-c", "", **where)
    assert code == 3 and "offline?" in out and "No matching distribution" in out, out
    network.touch()  # what failed is tried again, and once only
    for _ in range(2):
        code, out = run("tools/python", "lint", "-c", "", **where)
        assert code == 0 and out.splitlines()[-1] == "ran: -c ", out
    assert len(calls.read_text().splitlines()) == 1 and "--retries 1 --timeout 20" in calls.read_text()


@pytest.mark.everything
def test_offline_pip(tmp_path):
    """pip itself. The limit is for a wait without end, not for a busy machine."""
    code, out = run(*offline(), "tools/python", "lint", "-c", "", BOXROOT_CACHE=tmp_path, timeout=1800)
    assert code == 3 and "offline?" in out, out


# --- versions and compilers ---


@pytest.mark.parametrize("word", ["5.3", "5", "neuest", "5.x.y"])
def test_what_is_not_a_version(tmp_path, word):
    code, out = run("tools/toolchain", word, BOXROOT_CACHE=tmp_path)
    assert code == 2 and f"{word} is not a version" in out, out


def test_a_bad_version_stops_make(tmp_path):
    code, out = run("make", "build", "OCAML=5.3", f"BUILD={tmp_path}")
    assert code != 0 and "5.3 is not a version" in out and "OCaml 5" not in out, out


def test_a_prefix_without_a_compiler(tmp_path):
    code, out = run("make", "build", f"OCAML={tmp_path}", f"BUILD={tmp_path}")
    assert code != 0 and f"no bin/ocamlopt in {tmp_path}" in out, out


def test_a_cache_with_a_space_is_refused(tmp_path):
    cache = tmp_path / "a b"
    (cache / "source/4.14.0").mkdir(parents=True)
    (cache / "source/4.14.0/.complete").touch()
    code, out = run("tools/toolchain", "4.14.0", BOXROOT_CACHE=cache)
    assert code == 2 and "BOXROOT_CACHE" in out, out


@pytest.mark.parametrize("target", ["build", "demo"])
def test_a_compiler_that_is_not_there_is_named(tmp_path, prefix, no_install, target):
    path, calls = no_install
    code, out = run("make", target, CC="nocc", OCAML=prefix, BUILD=tmp_path / "b", PATH=path)
    assert code != 0 and "there is no command nocc" in out, out
    assert not calls.exists(), calls.read_text()


# --- installing ---


LISTED = """# a comment
command base sh cat
command no-such-command some-package
command neither not-there|instead and-more
header no-such-header.h some-package-dev
"""


@pytest.fixture
def need(no_install, tmp_path):
    """tools/need with a list of its own; what apt-get was called with."""
    path, calls = no_install
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("need", "lib.sh"):
        shutil.copy(ROOT / "tools" / name, folder)
    (folder / "needs.txt").write_text(LISTED)
    inside = {"PATH": path, "BOXROOT_LINKS": ""}
    return lambda *words, **more: run(folder / "need", *words, **inside, **more), calls


def test_installing_is_announced(need):
    call, calls = need
    code, out = call("no-such-command")
    assert code == 1 and "Running: " in out and "apt-get install --no-install-recommends some-package" in out, out
    assert "some-package" in calls.read_text()


def test_a_header_is_installed(need):
    call, calls = need
    code, out = call("-h", "no-such-header.h")
    assert code == 1 and "some-package-dev" in calls.read_text(), out


def test_of_two_packages_the_one_that_the_archive_has(need):
    call, calls = need
    code, out = call("neither")
    assert code == 1 and "update" in calls.read_text() and "install instead and-more (the name in Debian)" in out, out


def test_installing_can_be_forbidden(need):
    call, calls = need
    code, out = call("no-such-command", BOXROOT_INSTALL="no")
    assert code == 1 and "install some-package" in out and not calls.exists(), out


def test_a_command_that_is_there_needs_nothing(need):
    call, calls = need
    assert call("sh") == (0, "") and not calls.exists()


def test_what_is_not_in_the_list_is_an_error(need):
    call, calls = need
    code, out = call("ls")
    assert code == 2 and "ls is not in tools/needs.txt" in out and not calls.exists(), out


def test_a_path_has_what_is_listed_and_nothing_else(need, tmp_path):
    call, _ = need
    assert call("--path", tmp_path / "path", CC="cc", CXX="c++")[0] == 0
    assert {p.name for p in (tmp_path / "path").iterdir()} == {"sh", "cat", "cc", "c++"}


def test_tests_have_no_other_commands():
    """And what is missing there cannot be called: this run's own PATH."""
    assert os.environ["PATH"] == os.environ["BOXROOT_LINKS"]
    listed = (ROOT / "tools/needs.txt").read_text().split()
    assert {p.name for p in Path(os.environ["PATH"]).iterdir()} <= {*listed, "cc", "c++"}
    assert shutil.which("vi") is None and shutil.which("sh")


# --- what takes minutes ---


def test_what_takes_long_is_told_with_its_log(tmp_path):
    log = tmp_path / "log"
    log.write_text("kept\n")
    script = '. tools/lib.sh; code=0; watched "building it" "$1" sh -c "echo yes; exit 7" || code=$?; echo $code'
    code, out = run("bash", "-c", script, "tools/slow", log)
    assert (code, out) == (0, f"slow: building it (output: {log})\n7\n") and log.read_text() == "kept\nyes\n"


def test_a_lock_that_another_process_holds_is_told(tmp_path):
    lock, held, event = tmp_path / "lock", tmp_path / "held", tmp_path / "event"
    until = f"for _ in $(seq 2000); do [ ! -e {event} ] || break; sleep 0.05; done"
    holder = subprocess.Popen(["flock", lock, "sh", "-c", f"touch {held}; {until}"])
    while not held.exists():
        assert holder.poll() is None
    script = '. tools/lib.sh; locked 9 "$1" "it is being built"; echo mine'
    line = r"^waiting: waiting for another process: it is being built$"
    code, out = run_until_told(line, event, "bash", "-c", script, "tools/waiting", lock)
    holder.wait()
    assert code == 0 and out.splitlines()[-1] == "mine", out


MAKE = """#!/bin/sh
case "$*" in *install*) exit 0;; esac
echo line; exit 1
"""


def test_building_a_compiler_says_what_it_does(tmp_path):
    """With a stand-in for make, which fails in the end."""
    source = tmp_path / "cache/source/5.3.0"
    source.mkdir(parents=True)
    (source / ".complete").touch()
    (source / "configure").write_text("#!/bin/sh\necho configured\n")
    (source / "configure").chmod(0o755)
    make = tmp_path / "fake/make"
    make.parent.mkdir()
    make.write_text(MAKE)
    make.chmod(0o755)
    path = f"{make.parent}:{os.environ['PATH']}"
    code, out = run("tools/toolchain", "5.3.0", BOXROOT_CACHE=tmp_path / "cache", PATH=path)
    assert code == 1 and "the build failed: line" in out, out
    assert re.search(r"^toolchain: building OCaml 5\.3\.0 \(output: .*\)$", out, re.M), out


# --- the compiler at hand ---


def without_ocaml():
    folders = os.environ["PATH"].split(":")
    return ":".join(f for f in folders if not (Path(f, "ocamlopt").exists() or Path(f, "ocamlfind").exists()))


def test_the_compiler_at_hand_is_the_newest_that_is_cached(tmp_path):
    cache = tmp_path / "a+b"
    code, out = run("tools/toolchain", "--at-hand", BOXROOT_CACHE=cache, PATH=without_ocaml())
    assert code == 1 and "none is cached" in out, out
    for version in ("4.14.1", "5.3.0", "5.10.0+tsan", "5.4.1"):
        (cache / "prefix" / version).mkdir(parents=True)
        (cache / "prefix" / version / ".complete").touch()
    (cache / "prefix/5.5.0").mkdir()  # not built to the end
    code, out = run("tools/toolchain", "--at-hand", BOXROOT_CACHE=cache, PATH=without_ocaml())
    assert (code, out) == (0, f"{cache}/prefix/5.4.1\n"), out


def test_the_compiler_at_hand_is_the_one_in_path(tmp_path, prefix):
    code, out = run("tools/toolchain", "--at-hand", BOXROOT_CACHE=tmp_path, PATH=f"{prefix}/bin:{without_ocaml()}")
    assert (code, out) == (0, f"{prefix}\n"), out


APT = """#!/bin/sh
# A mirror with one package: the sources of dune, which say by which compiler they were built.
case "$*" in
  *indextargets*) echo Debian mirror.invalid/debian;;
  *showsrc*) echo Package: ocaml-dune; echo Version: 9.9.9-1;;
  *"source --tar-only"*) tar cJf ocaml-dune_9.9.9.orig.tar.xz -C {sources} ocaml-dune;;
esac
"""
BOOTSTRAP = """let () =
  if Sys.ocaml_version = "{broken}" then failwith "Error: these sources are too old";
  if not (Sys.file_exists "_boot") then Sys.mkdir "_boot" 0o755;
  let file = open_out "_boot/dune.exe" in
  Printf.fprintf file "#!/bin/sh\\necho built with %s\\n" Sys.ocaml_version;
  close_out file
"""


def dune_of(tmp_path, path, broken):
    """Runs tools/dune with a stand-in for apt."""
    sources, fake = tmp_path / "sources", tmp_path / "fake"
    for folder in ("boot", "vendor/notty/src", "otherlibs/stdune/src"):
        (sources / "ocaml-dune" / folder).mkdir(parents=True)
    (sources / "ocaml-dune/boot/bootstrap.ml").write_text(BOOTSTRAP.format(broken=broken))
    (sources / "ocaml-dune/vendor/notty/src/notty.ml").write_text("          out_flush = (fun () ->\n")
    (sources / "ocaml-dune/otherlibs/stdune/src/signal.ml").write_text("Winch, sigwinch ()\n")
    fake.mkdir()
    for name in ("apt-get", "apt-cache"):
        (fake / name).write_text(APT.format(sources=sources))
        (fake / name).chmod(0o755)
    where = {"BOXROOT_CACHE": tmp_path / "cache", "BOXROOT_INSTALL": "no", "PATH": f"{fake}:{path}"}
    return run("tools/dune", "--version", **where)


def path_without_dune(prefix):
    folders = without_ocaml().split(":")
    return ":".join([f"{prefix}/bin", *(f for f in folders if not Path(f, "dune").exists())])


def test_dune_is_built_with_the_compiler_at_hand(tmp_path, prefix):
    code, out = dune_of(tmp_path, path_without_dune(prefix), "")
    assert code == 0 and out.splitlines()[-1] == f"built with {version_of(prefix)}", out
    assert "4.14.1" not in out or version_of(prefix) == "4.14.1", out


def test_dune_is_built_with_414_when_the_compiler_at_hand_is_too_new(tmp_path, prefix):
    version = version_of(prefix)
    known = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "boxroot/prefix/4.14.1"
    if version == "4.14.1" or not (known / ".complete").exists():
        pytest.skip("OCaml 4.14.1 is not built, or is the compiler at hand")
    (tmp_path / "cache/prefix").mkdir(parents=True)
    (tmp_path / "cache/prefix/4.14.1").symlink_to(known)
    code, out = dune_of(tmp_path, path_without_dune(prefix), version)
    assert code == 0 and out.splitlines()[-1] == "built with 4.14.1", out
    assert "these sources are too old" in out and "trying with OCaml 4.14.1" in out, out


# --- places ---


@pytest.mark.slow
def test_a_path_with_spaces(tmp_path, prefix):
    there = tree(tmp_path / "a folder, (mine)")
    for target, line in [("build", "libboxroot.a"), ("demo", "every root left still holds its value")]:
        code, out = run("make", target, f"OCAML={prefix}", cwd=there)
        assert code == 0 and line in out, out


@pytest.mark.slow
def test_a_tree_that_is_not_written_to(tmp_path, prefix):
    there = tree(tmp_path / "tree")
    run("chmod", "-R", "a-w", there)  # no obstacle to root, so what is there is compared too
    before = snapshot(there)
    try:
        for target in ("build", "demo"):
            code, out = run("make", target, f"OCAML={prefix}", f"BUILD={tmp_path / 'elsewhere'}", cwd=there)
            assert code == 0, out
        assert snapshot(there) == before
        assert list((tmp_path / "elsewhere/lib").glob("*/libboxroot.a"))
    finally:
        run("chmod", "-R", "u+w", there)


def test_clean_removes_nothing_outside_the_tree(tmp_path):
    (tmp_path / "mine").touch()
    code, out = run("make", "clean", f"BUILD={tmp_path}", cwd=tree(tmp_path / "tree"))
    assert code == 0 and str(tmp_path) in out and (tmp_path / "mine").exists(), out


# --- runs of tests ---

TESTS = """import pathlib, time
def test_quick(): pass
def test_slow():
    for _ in range(2000):
        pathlib.Path("{event}").exists() or time.sleep(0.05)
def test_wrong(): assert not 1
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_of_tests_says_how_far_it_is(tmp_path, prefix, workers):
    folder = tree(tmp_path / "tree")
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "docs").mkdir()
    event = tmp_path / "event"
    (folder / "docs/test_short.py").write_text(TESTS.format(event=event))
    words = ["-m", "pytest", "-q", "-n", workers, "docs/test_short.py"]
    inherited = dict.fromkeys(n for n in os.environ if n.startswith(("PYTEST_", "BOXROOT_TEST_")))
    where = {"OCAML": prefix, "BUILD": tmp_path / "b", "BOXROOT_PROGRESS": "0.5"}
    line = r"^\d of 3 tests have run(, 1 failed)?; running: \S+::test_slow \(\d+ s\)"
    code, out = run_until_told(line, event, sys.executable, *words, cwd=folder, **{**inherited, **where})
    assert code == 1 and out.splitlines()[-1] == "2 passed, 1 failed", out


# --- the installed outheap-build ---


@pytest.fixture
def installed(tmp_path):
    """The tool as the package `outheap` installs it, far from the repository."""
    share = tmp_path / "share/outheap"
    for name in ("runtime", "include", "tool"):
        shutil.copytree(ROOT / "outheap" / name, share / name)
    (share / "tool/outheap-build").unlink()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "outheap/tool/outheap-build", tmp_path / "bin")
    return tmp_path / "bin/outheap-build"


def version_of(prefix):
    return run(prefix / "bin/ocamlopt", "-version")[1].strip()


def test_installed_outheap_build_without_sources(installed, tmp_path, prefix):
    code, out = run(installed, "--ocaml", prefix, "--output", tmp_path / "out")
    assert code == 3 and "ocaml-src" in out and "--sources" in out, out


@pytest.mark.slow
def test_installed_outheap_build_finds_ocaml_src(installed, tmp_path, prefix):
    version = version_of(prefix)
    code, out = run("tools/toolchain", "--source", version)
    if code != 0:
        pytest.skip(f"no sources: {out}")
    finder = tmp_path / "fake/ocamlfind"
    finder.parent.mkdir()
    finder.write_text(f'#!/bin/sh\n[ "$*" = "query ocaml-src" ] && echo "{out.splitlines()[-1]}"\n')
    finder.chmod(0o755)
    code, out = run(
        installed,
        "--ocaml",
        prefix,
        "--output",
        tmp_path / "out",
        "--flavours",
        "release",
        "--self-test",
        "4",
        PATH=f"{finder.parent}:{os.environ['PATH']}",
    )
    assert code == 0 and (tmp_path / "out/libasmrun_outheap.a").exists(), out


# --- every script ---


@pytest.mark.parametrize(
    "script", sorted(p.name for p in (ROOT / "tools").iterdir() if p.is_file() and re.fullmatch("[a-z-]+", p.name))
)
def test_is_executable_and_described(script):
    path = ROOT / "tools" / script
    text = path.read_text()
    assert os.access(path, os.X_OK)
    assert re.match(r"#!/usr/bin/env (bash|python3)\n(# [A-Z]|\"\"\")", text), "no description in the second line"

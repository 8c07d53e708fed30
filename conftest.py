# SPDX-License-Identifier: MIT
"""Options, which tests a run has, and its last line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from testing import matrix, rotation, steps
from testing.cases import label_of, without_group
from testing.compilers import NoSources, find
from testing.progress import Progress, Times
from testing.run import MISSES, OUT

OPTIONS = {
    "--ocaml": {
        "default": None,
        "help": "a version of OCaml, a prefix, or `all` (default: $OCAML, or else the one in PATH, or else the newest)",
    },
    "--everything": {"action": "store_true", "help": "every version and flavour, all rounds of what is random"},
    "--today": {"action": "store_true", "help": "of --everything the third that CI runs today (testing/rotation.py)"},
    "--beyond": {
        "default": "",
        "help": "without the tests, but for random ones, that passed in the run that wrote this list",
    },
    "--minutes": {"type": float, "default": 0, "help": "tests that have not begun by then are left out, and counted"},
    "--flavours": {"default": "", "help": "only these, as 'release checked' (tools/testing/flavours.py)"},
    "--seed": {"type": int, "default": None, "help": "of the random tests (default: fresh, printed)"},
    "--full": {"action": "store_true", "help": "all rounds, longer random runs"},
    "--stress": {
        "type": float,
        "default": 0,
        "help": "for so many seconds: the random tests alone, with fresh seeds, again and again",
    },
}
MARKS = (
    "boxroot",
    "outheap",
    "rust",
    "dune",
    "examples",
    "lint",
    "tools",
    "bench",
    "random",
    "everything",
    "stress",
    "docs",
    "slow",
    "compiler",  # one that the test asks for by itself, as compiler("newest+uncommon")
)
BEGUN = "BOXROOT_TEST_BEGUN"  # when this run began
PASSED = OUT / "log/passed"  # what passed, a line each: for --beyond
TOO_LATE = "not begun in the time that the run has"
times = Times()
progress = Progress()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("boxroot", "Boxroot and Outheap")
    for name, how in OPTIONS.items():
        group.addoption(name, **how)


def is_controller(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: see CONTRIBUTING.md")
    if is_controller(config) and not config.option.help:
        os.environ[BEGUN] = str(time.time())
        MISSES.unlink(missing_ok=True)
        os.environ[rotation.DATE] = str(rotation.today())
        matrix.choose(config)
        os.environ[steps.RUN] = f"{os.getpid()}-{time.time()}"
        seed = config.getoption("seed")
        os.environ[matrix.SEED] = str(time.time_ns() // 1000 % 1_000_000_000 if seed is None else seed)


def pytest_sessionstart(session: pytest.Session) -> None:
    if is_controller(session.config) and not session.config.option.collectonly:
        out = os.dup(1)  # tests have another standard output, which is kept for their failures
        if os.isatty(out):
            os.close(out)
        else:
            progress.begin(os.fdopen(out, "w"))


def pytest_report_header(config: pytest.Config) -> str:
    names = " ".join(compiler.name for compiler in matrix.compilers())
    return f"OCaml: {names}; seed {matrix.seed()}: --seed repeats the random tests"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("dune" if item.path.name == "test_dune.py" else item.nodeid.split("/")[0])
    item.extra_keyword_matches.add(label_of(item.nodeid))


def needs_of(item: pytest.Item) -> list[str]:
    """Compilers that a test asks for by itself."""
    return [name for mark in item.iter_markers("compiler") for name in mark.args]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a stress run only what is made for it, and only there; what is for --everything, only there, and what is
    slow, also when it is asked for."""
    everything, named = config.getoption("everything"), bool(config.option.keyword or config.option.markexpr)
    passed, today = Path(config.getoption("beyond")), config.getoption("today")
    before = set(passed.read_text().splitlines()) if passed.is_file() else set()
    newest, day = matrix.compilers()[0].version, rotation.today()

    def wanted(item: pytest.Item) -> bool:
        if matrix.stressing(config) != (item.get_closest_marker("stress") is not None):
            return False
        if not (everything or named) and item.get_closest_marker("slow") is not None:
            return False
        if without_group(item.nodeid) in before and item.get_closest_marker("random") is None:
            return False
        if today and not rotation.is_for(day, label_of(item.nodeid), newest, needs_of(item)):
            return False
        return everything or item.get_closest_marker("everything") is None

    left = [item for item in items if not wanted(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if wanted(item)]
    if config.getoption("minutes"):
        items[:] = rotation.turned(day, items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("minutes")
    if minutes and time.time() - float(os.environ[BEGUN]) > minutes * 60:
        pytest.skip(TOO_LATE)
    if item.config.getoption("today"):
        for name in needs_of(item):
            try:
                find(name)
            except NoSources as error:
                pytest.skip(f"NOT TESTED: {error}")


def pytest_collection_finish(session: pytest.Session) -> None:
    progress.total = max(progress.total, len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: list[str]) -> None:
    progress.total = len(ids)


def pytest_runtest_logstart(nodeid: str) -> None:
    progress.start(without_group(nodeid))


def pytest_runtest_logfinish(nodeid: str) -> None:
    progress.finish(without_group(nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    progress.failed += report.failed
    times.add(label_of(report.nodeid), report.duration, report.when == "call")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went, if it was much; and what was left out for want of it."""
    if sum(times.seconds.values()) > 600:
        terminalreporter.line("")
        for line in times.lines():
            terminalreporter.line(line)
    late = [r for r in terminalreporter.stats.get("skipped", []) if TOO_LATE in str(r.longrepr)]
    if late:
        terminalreporter.line(f"{len(late)} tests were {TOO_LATE}; the first: {label_of(late[0].nodeid)}")
    for line in MISSES.read_text().splitlines() if MISSES.exists() else []:
        terminalreporter.line(f"measured again: {line}")
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    PASSED.write_text("".join(f"{without_group(r.nodeid)}\n" for r in terminalreporter.stats.get("passed", [])))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line: N passed, N failed."""
    progress.end()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not is_controller(config) or config.getoption("collectonly"):
        return
    passed = len(reporter.stats.get("passed", []))
    failed = len(reporter.stats.get("failed", [])) + len(reporter.stats.get("error", []))
    print(f"{passed} passed, {failed} failed", flush=True)

# SPDX-License-Identifier: MIT
"""Options, which tests a run has, and what it says at its end: where the time went, what was skipped and why, what is
flaky; its last line is `N passed, N failed`."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Generator

import pytest
from testing import flaky, matrix, slow, spent, steps
from testing.cases import label_of, without_group
from testing.compilers import NO_DUNE
from testing.progress import Progress
from testing.run import LINKS, OUT, ROOT

OPTIONS = {
    "--ocaml": {
        "default": None,
        "help": "a version of OCaml, a prefix, or `all` (default: $OCAML, or else the one in PATH, or else the newest)",
    },
    "--everything": {"action": "store_true", "help": "every version and flavour, all rounds of what is random"},
    "--flavours": {"default": "", "help": "only these, as 'release checked' (tools/testing/flavours.py)"},
    "--seed": {"type": int, "default": None, "help": "of the random tests (default: 1; fresh with --everything)"},
    "--full": {"action": "store_true", "help": "all rounds, longer random runs"},
    "--timing": {"action": "store_true", "help": "the tests that the clock decides, and no others; none fails the run"},
    "--record-budgets": {"action": "store_true", "help": "write what each group used (tools/testing/budgets.toml)"},
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
    "timing",  # the clock decides
)
SECONDS = OUT / "log/seconds"  # what each test used
COMPLETE = (5, 5)  # since which version of OCaml there is nothing that others test and it does not
STARTED = time.time()
progress = Progress()
used = spent.Spent()
begun = spent.used_by_tests()  # by this worker, when its present test began
slow_of_nothing = set(slow.patterns())  # patterns of slow.txt that no test has


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
        matrix.choose(config)
        subprocess.run([ROOT / "tools/need", "--path", LINKS], check=True)
        os.environ |= {"PATH": str(LINKS), "BOXROOT_LINKS": str(LINKS), "BOXROOT_PATH": os.environ["PATH"]}
        os.environ.setdefault("REALGCC", "gcc")  # which musl-gcc calls
        os.environ[steps.RUN] = f"{os.getpid()}-{time.time()}"
        os.environ[matrix.SEED] = str(seed_of(config))


def seed_of(config: pytest.Config) -> int:
    """A run that decides something is the same each time; those that look for what is new are not."""
    if (given := config.getoption("seed")) is not None:
        return int(given)
    explores = any(config.getoption(name) for name in ("everything", "full", "stress"))
    return time.time_ns() // 1000 % 1_000_000_000 if explores else 1


def pytest_sessionstart(session: pytest.Session) -> None:
    if is_controller(session.config) and not session.config.option.collectonly:
        out = os.dup(1)  # tests have another standard output, which is kept for their failures
        if os.isatty(out):
            os.close(out)
        else:
            progress.begin(os.fdopen(out, "w"), used)


def is_plain(config: pytest.Config) -> bool:
    """Is it a run of `make test`?"""
    chosen = ("keyword", "markexpr", "everything", "flavours", "full", "timing", "stress", "collectonly")
    return not any(getattr(config.option, name) for name in chosen) and config.args_source.name == "TESTPATHS"


def pytest_report_header(config: pytest.Config) -> list[str]:
    names = " ".join(compiler.name for compiler in matrix.compilers())
    lines = [f"OCaml: {names}; seed {matrix.seed()}: --seed repeats the random tests"]
    if is_plain(config):
        known = spent.budgets()
        if not known.groups:
            return lines
        minutes = known.total / steps.JOBS / 60 * max(1.0, used.piece / known.work)
        lines.append(f"about {minutes:.0f} minutes with {steps.JOBS} processors, less where programs are built already")
    return lines


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each worker begins at another file, so that they do not wait for each other while programs are built whose tests
    are listed."""
    report = yield
    workers = getattr(collector.config, "workerinput", None)
    if workers and isinstance(collector, (pytest.Session, pytest.Directory)):
        found = report.result
        first = len(found) * int(workers["workerid"].removeprefix("gw")) // workers["workercount"]
        report.result = found[first:] + found[:first]
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("dune" if item.path.name == "test_dune.py" else item.nodeid.split("/")[0])
    label = label_of(item.nodeid)
    item.extra_keyword_matches.add(label)
    if found := slow.matching(label):
        item.add_marker("slow")
        slow_of_nothing.difference_update(found)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a stress run only what is made for it, and only there; the same for what the clock decides; what is for
    --everything, only there, and what is slow, also when it is asked for."""
    everything, named = config.getoption("everything"), bool(config.option.keyword or config.option.markexpr)

    def wanted(item: pytest.Item) -> bool:
        def has(mark: str) -> bool:
            return item.get_closest_marker(mark) is not None

        if matrix.stressing(config) != has("stress") or config.getoption("timing") != has("timing"):
            return False
        if has("slow") and not (everything or named):
            return False
        return everything or not has("everything")

    places = [ROOT / folder for folder in config.getini("testpaths")]
    items.sort(key=lambda item: (next((n for n, p in enumerate(places) if item.path.is_relative_to(p)), 0), item.path))
    left = [item for item in items if not wanted(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if wanted(item)]
    for item in items:
        if item.get_closest_marker("random") is None:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish(session: pytest.Session) -> None:
    progress.total = max(progress.total, len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: list[str]) -> None:
    progress.total = len(ids)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The last report of a test has what it used."""
    global begun
    report = yield
    if report.when == "teardown":
        report.seconds_used, begun = spent.used_by_tests() - begun, spent.used_by_tests()
    return report


def pytest_runtest_setup() -> None:
    global begun
    begun = spent.used_by_tests()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not is_controller(session.config):
        session.config.workeroutput |= {"seconds_used": spent.used(), "slow_of_nothing": sorted(slow_of_nothing)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    told = getattr(node, "workeroutput", {})
    used.total += told.get("seconds_used", 0.0)
    slow_of_nothing.intersection_update(told.get("slow_of_nothing", slow_of_nothing))


def pytest_runtest_logstart(nodeid: str) -> None:
    progress.start(without_group(nodeid))


def pytest_runtest_logfinish(nodeid: str) -> None:
    progress.finish(without_group(nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    progress.failed += report.failed
    if seconds := getattr(report, "seconds_used", 0.0):
        used.add(spent.group_of(label_of(report.nodeid), report.nodeid), label_of(report.nodeid), seconds)


class Verdict:
    """What a run comes to, from the reports of its tests."""

    def __init__(self, config: pytest.Config, stats: dict[str, list]) -> None:
        self.passed = {label_of(r.nodeid) for r in stats.get("passed", [])}
        self.failed = {label_of(r.nodeid) for r in (*stats.get("failed", []), *stats.get("error", []))}
        self.first = {label_of(r.nodeid): r for r in stats.get("rerun", [])}
        self.flaky = set(self.first) & self.passed
        self.again = flaky.again(self.flaky, self.passed - self.flaky)
        self.outgrown = spent.budgets().outgrown(used) if is_plain(config) else []
        complete = is_plain(config) and all(compiler.release >= COMPLETE for compiler in matrix.compilers())
        self.unused = sorted(slow_of_nothing) if complete else []
        self.skipped = Counter(
            (r.longrepr[2] if isinstance(r.longrepr, tuple) else str(r.longrepr)).removeprefix("Skipped: ")
            for r in stats.get("skipped", [])
        )

    @property
    def failures(self) -> int:
        return len(self.failed) + len(self.again) + len(self.outgrown) + len(self.unused)

    def lines(self) -> list[str]:
        lines = [f"skipped {n:4}: {reason}" for reason, n in self.skipped.most_common()]
        for label, report in self.first.items():
            how = f"flaky: {label} failed once and passed once" if label in self.flaky else f"{label} failed first so:"
            lines += ["", how, *report.longreprtext.splitlines()[-15:]]
        lines += [f"failed: {label} is flaky in two runs in a row" for label in sorted(self.again)]
        lines += [f"failed: tools/testing/slow.txt: no test has the name {pattern}" for pattern in self.unused]
        return lines + [f"failed: {what}" for what in self.outgrown]


verdict: Verdict | None = None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    global verdict
    if config.getoption("collectonly") or not is_controller(config):
        return
    used.total = used.total or spent.used()  # of this process, if it has no workers
    verdict = Verdict(config, terminalreporter.stats)
    for line in verdict.lines():
        terminalreporter.line(line)
    if is_plain(config) or used.total > 120:
        terminalreporter.line("")
        for line in used.lines(spent.budgets()):
            terminalreporter.line(line)
    SECONDS.parent.mkdir(parents=True, exist_ok=True)
    SECONDS.write_text("".join(f"{seconds:8.2f}  {label}\n" for label, seconds in used.longest()))
    if config.getoption("record_budgets") and NO_DUNE in verdict.skipped:
        terminalreporter.line("nothing is recorded: tests with dune were skipped, and use time where it is")
    elif config.getoption("record_budgets"):
        used.record()
        spent.record_minutes("test", (time.time() - STARTED) / 60)
    session = terminalreporter._session
    if config.getoption("timing"):
        session.exitstatus = 0
    elif verdict.failures:
        session.exitstatus = max(session.exitstatus, 1)


def pytest_unconfigure() -> None:
    """The last line: N passed, N failed."""
    progress.end()
    if verdict is not None:
        print(f"{len(verdict.passed)} passed, {verdict.failures} failed", flush=True)

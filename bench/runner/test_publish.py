# SPDX-License-Identifier: MIT
"""Tests of what is published.   cd bench && python3 -m unittest runner.test_publish"""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from . import publish
from .measure import Figure, Results
from .report import write_facts, write_raw
from .suite import OURS, RIVAL

FACTS = {
    "date": "today",
    "mode": "quick",
    "commit": "abc",
    "OCaml": "5.4.1, flags -g",
    "C code, build users": "cc: cc -O2 -fPIC",
    "rounds": "3",
}


def figures(workload: str, metric: str, ours: list, theirs: list, case: str = "") -> list[Figure]:
    return [
        Figure(r, workload, case, i, metric, v, "ns")
        for i, values in ((OURS, ours), (RIVAL, theirs))
        for r, v in enumerate(values)
    ]


ALL = [
    *figures("pair", "create+delete, batch 1", [1, 1, 2], [2, 2, 2]),
    *figures("pair", "create+delete, batch 10", [3, 4, 5], [2, 2, 2]),
    *figures("release", "resident: compacted once", [5], [0]),
    *figures("release", "resident: all deleted, compacted", [-1], [0]),
    *figures("crowd", "values lost", [0], [7], "16 domains"),
    *figures("crowd", "longest round", [9], [3], "16 domains"),
    *figures("churn", "modify: major collections", [9], [3], "2 M"),
    *figures("pair", "gc: top heap", [9], [3]),
]


class Rows(unittest.TestCase):
    rows = publish.rows(Results(ALL))

    def test_what_the_rival_wins_comes_first(self):
        ratios = [r.ratio for r in self.rows]
        self.assertEqual(ratios, sorted(ratios, reverse=True))
        self.assertEqual(self.rows[0].ratio, float("inf"))  # it keeps memory, the rival none

    def test_every_figure_of_which_less_is_better(self):
        self.assertEqual(len(self.rows), 6)  # neither collections nor what begins with gc:

    def test_ratio_of_medians_and_rounds(self):
        row = next(r for r in self.rows if r.name.endswith("batch 10"))
        self.assertEqual((row.ours, row.theirs, row.ratio, row.rounds, row.sure), (4, 2, 2, (1.5, 2.5), True))
        row = next(r for r in self.rows if r.name.endswith("batch 1"))
        self.assertEqual((row.ratio, row.rounds, row.sure), (0.5, (0.5, 1.0), True))

    def test_lost_values_are_told(self):
        self.assertTrue(next(r for r in self.rows if "longest round" in r.name).name.endswith("†"))
        self.assertFalse(any(r.name.endswith("†") for r in self.rows if "pair" in r.name))


class Command(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.readme = self.folder / "README.md"
        self.readme.write_text(f"before\n{publish.BEGIN}\nratio 0.7316\n{publish.END}\nafter\n")
        self.data = self.folder / f"{publish.PRODUCT}-5.4.1"
        self.data.mkdir()
        write_raw(self.data / "raw.csv", Results(ALL))

    def run_it(self, *arguments: str) -> int:
        with contextlib.redirect_stderr(io.StringIO()):
            return publish.main([*arguments, "--from", str(self.folder), "--into", str(self.readme)])

    def test_rewrites_the_block_and_nothing_else(self):
        write_facts(self.data / "facts.json", FACTS)
        self.assertEqual(self.run_it("--check"), 1)
        self.assertEqual(self.run_it(), 0)
        text = self.readme.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        self.assertNotIn("0.7316", text)
        self.assertLess(text.index("0.4.0 is better:"), text.index("This library is better"))
        self.assertIn("-fPIC", text)
        self.assertEqual(self.run_it("--check"), 0)

    def test_data_without_facts_are_refused(self):
        before = self.readme.read_text()
        self.assertEqual(self.run_it(), 2)
        self.assertEqual(self.readme.read_text(), before)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""No cell of the tables is empty without a reason."""

import pytest
from runner.suites.boxroot import reasons
from runner.suites.boxroot.implementations import IMPLEMENTATIONS
from runner.suites.boxroot.suite import SUITE
from runner.suites.boxroot.workloads import WORKLOADS


@pytest.mark.parametrize("ocaml5", [True, False], ids=["OCaml 5", "4.14"])
def test_each_cell_has_a_case_or_a_reason(ocaml5):
    assert [pair for pair, why in reasons.empty(ocaml5).items() if not why] == []


def test_reasons_are_for_cells_without_a_case():
    assert [pair for pair in reasons.PAIRS if reasons.covered(WORKLOADS[pair[0]], IMPLEMENTATIONS[pair[1]], True)] == []


def test_groups_hold_each_workload_once():
    assert sorted(w for group in SUITE.groups.values() for w in group) == sorted(WORKLOADS)

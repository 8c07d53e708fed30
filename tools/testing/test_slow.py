# SPDX-License-Identifier: MIT
"""Names of slow tests, without their compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing import slow


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("outheap[5.4.1-debug] region/waits", "outheap[debug] region/waits"),
        ("outheap[5.5.2] floor/release-7%", "outheap floor/release-7%"),
        ("outheap[5.5.0~rc1-tiny] hashcons/life", "outheap[tiny] hashcons/life"),
        ("boxroot[5.5.2+outheap-release] weak/shared", "boxroot[+outheap-release] weak/shared"),
        ("outheap[tracked-to-5.4] unreached", "outheap[tracked-to-5.4] unreached"),
        ("bench/tests/test_rivals.py::test_rival[by_handle]", "bench/tests/test_rivals.py::test_rival[by_handle]"),
    ],
)
def test_names_without_a_compiler(label: str, name: str) -> None:
    assert slow.without_compiler(label) == name


def test_a_star_is_the_only_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.txt").write_text("# text\n\noutheap[debug] a/* # why\noutheap b.c\n")
    monkeypatch.setattr(slow, "PATTERNS", tmp_path / "slow.txt")
    slow.patterns.cache_clear()
    try:
        assert slow.matching("outheap[5.5.2-debug] a/b") == ["outheap[debug] a/*"]
        assert slow.matching("outheap[5.5.2-release] a/b") == []
        assert slow.matching("outheap[5.5.2] b.c") == ["outheap b.c"]
        assert slow.matching("outheap[5.5.2] bxc") == []
    finally:
        slow.patterns.cache_clear()

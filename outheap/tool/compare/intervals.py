# SPDX-License-Identifier: MIT
"""Confidence intervals of a median, from the order of the samples alone.

The k-th smallest and the k-th largest of n independent samples enclose the median of what they are drawn from with a
probability that depends on n and k only: both ends lie on one side of it when fewer than k of n throws of a coin show
heads. Nothing is assumed about the distribution: outliers, two humps and equal values do not make the interval wrong
(equal values make it hold more often). Where samples alternate between two distributions whose medians lie on both
sides of 1, as ratios do when going second costs something, it holds for 1 at least as often.

Fewer than six samples cannot give 95 % in this way, whatever is done with them: the median is above or below all of n
samples with probability 2 / 2**n."""

from __future__ import annotations

import math
from dataclasses import dataclass

WANTED = 0.95
ENOUGH = 6  # samples, for an interval of 95 %


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    coverage: float  # the probability, at least, that the median lies within

    @property
    def decides(self) -> bool:
        return self.coverage >= WANTED

    @property
    def side(self) -> int:
        """-1: below 1; 1: above; 0: 1 lies within, or there were too few samples to say."""
        return 0 if not self.decides else -1 if self.high < 1 else 1 if self.low > 1 else 0


def coverage(samples: int, rank: int) -> float:
    """Of the interval between the rank-th smallest and the rank-th largest; rank counts from 1."""
    return 1 - 2 * sum(math.comb(samples, below) for below in range(rank)) / 2**samples


def median_interval(samples: list[float], wanted: float = WANTED) -> Interval:
    """The narrowest of these that keeps `wanted`; that of the extremes, with what it keeps, where none does. At least
    one sample."""
    n, ordered = len(samples), sorted(samples)
    rank = 1
    while 2 * (rank + 1) <= n and coverage(n, rank + 1) >= wanted:
        rank += 1
    return Interval(ordered[rank - 1], ordered[n - rank], coverage(n, rank))

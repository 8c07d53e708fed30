# SPDX-License-Identifier: MIT
"""The suites by name."""

from .boxroot.suite import SUITE as BOXROOT
from .outheap.suite import SUITE as OUTHEAP
from .rust.suite import SUITE as RUST

SUITES = {s.name: s for s in (BOXROOT, OUTHEAP, RUST)}

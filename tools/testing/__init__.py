# SPDX-License-Identifier: MIT
"""What the tests share: flavours, compilers, locked builds, running and keeping. Used by pytest's conftest.py and the
test modules."""

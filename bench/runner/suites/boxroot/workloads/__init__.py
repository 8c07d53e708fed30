# SPDX-License-Identifier: MIT
"""The workloads, in the order of the report. To add one, add its files and one entry in the table of its subject."""

from __future__ import annotations

from . import applications, domains, fast_paths, memory, programs, remote

WORKLOADS = {
    workload.name: workload
    for subject in (fast_paths, programs, remote, memory, applications, domains)
    for workload in subject.WORKLOADS
}

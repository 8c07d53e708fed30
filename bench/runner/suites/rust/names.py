# SPDX-License-Identifier: MIT
"""Names of bench/suites/rust.toml that the code needs."""

OURS, BASE, INTEROP, OCAML = "ocaml-boxroot", "c", "ocaml-interop", "ocaml"
BUILDS, CLIENTS = "clean build", "client"  # workloads that are cargo's work, not that of a program of ours

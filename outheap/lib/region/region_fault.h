/* SPDX-License-Identifier: MIT */
/* What is said before a process dies of a write to a region, or of a read of a revoked one. */
#ifndef OUTHEAP_REGION_FAULT_H
#define OUTHEAP_REGION_FAULT_H

/* Installs the handler if the environment variable OUTHEAP has `region-faults=report`, or if the runtime is a debug
   runtime and OUTHEAP does not have `region-faults=off`. Called once, when the library starts. */
void outheap_region_fault_start(void);

#endif

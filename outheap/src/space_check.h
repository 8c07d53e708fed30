/* SPDX-License-Identifier: MIT */
/* The invariants of a space (space_state.h). */
#ifndef OH_SPACE_CHECK_H
#define OH_SPACE_CHECK_H

#include "space_state.h"

/* Aborts with a message if one does not hold. The caller has the lock. */
void oh_space_check(struct oh_space_state const *);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef OH_WEAK_H
#define OH_WEAK_H

/* Declares the static values of the unit weak. */
void oh_weak_declare(void);

#endif

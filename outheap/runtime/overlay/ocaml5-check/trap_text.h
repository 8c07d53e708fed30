/* SPDX-License-Identifier: MIT */
/* The text of a report, put together where nothing may be allocated, and written as a whole. One report at a time: the
   caller of these functions is the thread that reports (trap_report.c). */
#ifndef OH_TRAP_TEXT_H
#define OH_TRAP_TEXT_H

#include <stddef.h>

/* Adds to the text; what does not fit is left out. */
__attribute__((format(printf, 1, 2))) void oh_trap_text_put(char const *format, ...);

/* Writes the text to the file of check.report= and begins the next one; to the standard error output if there is no
   such file, or it cannot be written. */
void oh_trap_text_flush(void);

#endif

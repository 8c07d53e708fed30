/* SPDX-License-Identifier: MIT */
/* Messages on the standard error output. Nothing is allocated. */
#ifndef OH_LOG_H
#define OH_LOG_H

#include <stddef.h>

/* Prints "outheap: ", the message and a newline. Keeps errno. */
__attribute__((format(printf, 1, 2))) void oh_log(char const *format, ...);

/* Writes a text as a whole, as far as the descriptor takes it. Keeps errno. */
void oh_log_write(int descriptor, char const *text, size_t length);

/* The same as oh_log, and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void oh_log_abort(char const *format, ...);

#endif

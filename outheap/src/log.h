/* SPDX-License-Identifier: MIT */
/* Messages on the standard error output. Nothing is allocated. */
#ifndef OH_LOG_H
#define OH_LOG_H

/* Prints "outheap: ", the message and a newline. Keeps errno. */
__attribute__((format(printf, 1, 2))) void oh_log(char const *format, ...);

/* The same, and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void oh_log_abort(char const *format, ...);

#endif

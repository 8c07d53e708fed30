/* SPDX-License-Identifier: MIT */
/* Assertions of the checked build, and the way to end the program with a message. */
#ifndef OH_CHECK_H
#define OH_CHECK_H

#include "config.h"

/* Prints "outheap: " and the message on the standard error output and aborts. Allocates nothing. */
__attribute__((noreturn, format(printf, 1, 2))) void oh_fault(char const *format, ...);

/* Prints "outheap: ", the message and a newline on the standard error output. Allocates nothing; keeps errno. */
__attribute__((format(printf, 1, 2))) void oh_say(char const *format, ...);

#define OH_STRING_(x) #x
#define OH_STRING(x) OH_STRING_(x)
/* In every build: for validators. */
#define OH_CHECK(condition) ((condition) ? (void)0 : oh_fault("%s", __FILE__ ":" OH_STRING(__LINE__) ": " #condition))
/* In the checked build only. Nothing is ever assumed from it in a release build. */
#if OH_DEBUG
#define OH_ASSERT(condition) OH_CHECK(condition)
#else
#define OH_ASSERT(condition) ((void)sizeof(condition))
#endif

#define OH_ROUND_DOWN(x, unit) ((x) & ~((__typeof__(x))(unit) - 1))
#define OH_ROUND_UP(x, unit) OH_ROUND_DOWN((x) + (unit) - 1, unit)

#endif

/* SPDX-License-Identifier: MIT */
/* Checks that end the program with a message. */
#ifndef OH_CHECK_H
#define OH_CHECK_H

#include "config.h"
#include "log.h"

#define OH_CHECK_STRING_(x) #x
#define OH_CHECK_STRING(x) OH_CHECK_STRING_(x)

/* In every build: for validators. */
#define OH_CHECK(condition) \
  ((condition) ? (void)0 : oh_log_abort("%s", __FILE__ ":" OH_CHECK_STRING(__LINE__) ": " #condition))

/* In the checked build only. A release build never relies on the condition. */
#if OH_DEBUG
#define OH_ASSERT(condition) OH_CHECK(condition)
#else
#define OH_ASSERT(condition) ((void)sizeof(condition))
#endif

#endif

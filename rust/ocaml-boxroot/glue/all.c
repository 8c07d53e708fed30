/* SPDX-License-Identifier: MIT */
/* The glue as one compilation unit. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "stack.c"
#include "lock.c"
#include "collect.c"
#include "alloc.c"
#include "bigarray.c"
#include "call.c"
#include "sealed.c"
#include "exception.c"
#include "cell.c"

/* SPDX-License-Identifier: MIT */
/* The API of the library over OCaml's own generational global roots: slow, and simple enough to be believed. The tests
   run on it to tell a fault of the library from one of the tests or of the OCaml runtime. Switches of the library are
   accepted and ignored. */
#ifndef BOXROOT_H
#define BOXROOT_H

#include <caml/mlvalues.h>
#include <caml/version.h>
#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bxr_private { value v; struct bxr_private *next; } *boxroot;
typedef struct boxroot_statistics {
  uint64_t pool_bytes, pool_capacity, pools_in_use, bytes_reserved;
} boxroot_statistics;

boxroot boxroot_create(value v);
void boxroot_delete(boxroot r);
bool boxroot_modify(boxroot *r, value v);
static inline value boxroot_get(boxroot r) { return r->v; }
static inline value const *boxroot_get_ref(boxroot r) { return &r->v; }
bool boxroot_setup(void);
void boxroot_teardown(void);
enum { BOXROOT_NOT_SETUP, BOXROOT_RUNNING, BOXROOT_TORE_DOWN, BOXROOT_INVALID };
int boxroot_status(void);
char const *boxroot_error_string(void);
void boxroot_get_stats(boxroot_statistics *out);

#undef BOXROOT_DEBUG
#define BOXROOT_DEBUG 0
#undef BOXROOT_FORCE_REMOTE
#define BOXROOT_FORCE_REMOTE 0
#undef BOXROOT_THREAD_UNSAFE
#define BOXROOT_THREAD_UNSAFE 0

#ifdef __cplusplus
}
#endif
#endif

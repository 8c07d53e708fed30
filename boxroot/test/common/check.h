/* SPDX-License-Identifier: MIT */
/* What every C file of the tests needs: the library's header, CHECK, SKIP, and what the flavour under test can do. */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include "boxroot.h"

#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <caml/threads.h>
#include <caml/version.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OCAML5 (OCAML_VERSION >= 50000)

/* The published library 0.4.0 has the same API but for boxroot_statistics, and no detection of misuse. */
#ifndef TEST_RIVAL
#define TEST_RIVAL 0
#endif

#if TEST_RIVAL
#define TEST_CHECKED 0
#define TEST_REMOTE 0
#else
#define TEST_CHECKED BOXROOT_DEBUG
#define TEST_REMOTE BOXROOT_FORCE_REMOTE
#endif

#ifdef BOXROOT_CONSERVATIVE
#define TEST_CONSERVATIVE BOXROOT_CONSERVATIVE
#define TEST_STW BOXROOT_STW_SCAN
#else
#define TEST_CONSERVATIVE 0
#define TEST_STW 0
#endif

/* Under a sanitizer the resident set says little. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#else
#define TEST_SANITIZED 0
#endif

/* Exit codes: 0 passed, 77 skipped, anything else (or a signal) failed. */
#define TEST_SKIPPED 77

#define CHECK(c, ...)                                                 \
  do {                                                                \
    if (!(c)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s", __FILE__, __LINE__, #c);   \
      fprintf(stderr, "; " __VA_ARGS__);                              \
      fprintf(stderr, "\n");                                          \
      _exit(1);                                                       \
    }                                                                 \
  } while (0)

/* A root is an aligned address: OCaml code holds it as the immediate address + 1. No root is 0. */
static inline value val_of_root(boxroot r) { return (value)((uintptr_t)r | 1); }
static inline boxroot root_of_val(value v) { return (boxroot)((uintptr_t)v & ~(uintptr_t)1); }

/* In root_stubs.c. Calls test(argument) twice without the domain lock, which the caller holds: on a thread that OCaml
   does not know, and in a blocking section of this one. */
void t_without_lock(void *(*test)(void *argument), void *argument);

/* Calls test(argument) twice without the domain lock, which the caller holds: on a thread that OCaml does not know, and
   in a blocking section of this one. (root_stubs.c) */
void t_without_lock(void *(*test)(void *argument), void *argument);

#endif

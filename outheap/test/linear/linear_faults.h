/* SPDX-License-Identifier: MIT */
/* Read before the library's files in the test program: what can fail is called through functions that fail when they
   are told to. */
#ifndef LINEAR_FAULTS_H
#define LINEAR_FAULTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <sys/mman.h>

/* Does this call fail? The nth from when it was set, or all from then on. */
int linear_faults_now(void);

#define malloc(n) (linear_faults_now() ? NULL : malloc(n))
#define aligned_alloc(a, n) (linear_faults_now() ? NULL : aligned_alloc(a, n))
#define calloc(n, m) (linear_faults_now() ? NULL : calloc(n, m))
#define realloc(p, n) (linear_faults_now() ? NULL : realloc(p, n))
#define mmap(a, n, p, f, d, o) (linear_faults_now() ? MAP_FAILED : mmap(a, n, p, f, d, o))
#define LINEAR_FAULTS 1

#endif

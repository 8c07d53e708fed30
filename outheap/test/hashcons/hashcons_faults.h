/* SPDX-License-Identifier: MIT */
/* Read before the library's files in the test program: what can fail is called through functions that fail when they
   are told to. */
#ifndef HASHCONS_FAULTS_H
#define HASHCONS_FAULTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Does this call fail? The nth from when it was set, or all from then on. */
int hashcons_faults_now(void);

#define malloc(n) (hashcons_faults_now() ? NULL : malloc(n))
#define calloc(n, m) (hashcons_faults_now() ? NULL : calloc(n, m))
#define realloc(p, n) (hashcons_faults_now() ? NULL : realloc(p, n))
#define mmap(a, n, p, f, d, o) (hashcons_faults_now() ? MAP_FAILED : mmap(a, n, p, f, d, o))

#endif

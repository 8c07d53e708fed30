/* SPDX-License-Identifier: MIT */
/* Read before the library's files in the test program: what can fail is called through functions that fail when they
   are told to. */
#ifndef REGION_FAULTS_H
#define REGION_FAULTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Does this call fail? The nth from when it was set; sets errno. */
int region_faults_now(int error);

/* How long others wait before a second process is started (nanoseconds); 0: at once, even if there are no others. */
extern unsigned long region_faults_patience;
#define OUTHEAP_REGION_SNAPSHOT_PATIENCE region_faults_patience

/* Changes the process' mask, for all of its threads, and is counted. */
mode_t region_faults_umask(mode_t mask);

#ifndef REGION_FAULTS_NONE
#define umask(m) region_faults_umask(m)
#define malloc(n) (region_faults_now(ENOMEM) ? NULL : malloc(n))
#define calloc(n, m) (region_faults_now(ENOMEM) ? NULL : calloc(n, m))
#define strdup(s) (region_faults_now(ENOMEM) ? NULL : strdup(s))
#define mmap(a, n, p, f, d, o) (region_faults_now(ENOMEM) ? MAP_FAILED : mmap(a, n, p, f, d, o))
#define mremap(a, n, m, f) (region_faults_now(ENOMEM) ? MAP_FAILED : mremap(a, n, m, f))
#define mprotect(a, n, p) (region_faults_now(ENOMEM) ? -1 : mprotect(a, n, p))
#define open(...) (region_faults_now(EMFILE) ? -1 : open(__VA_ARGS__))
#define mkostemp(t, f) (region_faults_now(ENOSPC) ? -1 : mkostemp(t, f))
#define pread(d, p, n, o) (region_faults_now(EIO) ? -1 : pread(d, p, n, o))
#define write(d, p, n) (region_faults_now(ENOSPC) ? -1 : write(d, p, n))
#define fsync(d) (region_faults_now(EIO) ? -1 : fsync(d))
#define syscall(...) (region_faults_now(EAGAIN) ? -1 : syscall(__VA_ARGS__))
#define ftruncate(d, n) (region_faults_now(ENOSPC) ? -1 : ftruncate(d, n))
#define rename(a, b) (region_faults_now(EACCES) ? -1 : rename(a, b))
#define fchmod(d, m) (region_faults_now(EPERM) ? -1 : fchmod(d, m))
#define fchown(d, u, g) (region_faults_now(EPERM) ? -1 : fchown(d, u, g))
#define linkat(a, b, c, d, f) (region_faults_now(EXDEV) ? -1 : linkat(a, b, c, d, f))
#endif

#endif

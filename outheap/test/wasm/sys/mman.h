/* SPDX-License-Identifier: MIT */
/* For WebAssembly: nothing can be mapped, and nobody knows what is resident. */
#ifndef WASM_SYS_MMAN_H
#define WASM_SYS_MMAN_H

#include_next <sys/mman.h>
#include <errno.h>
#include <sys/types.h>

#define mmap wasm_mmap
#define munmap wasm_munmap
#define mincore wasm_mincore
#define mprotect wasm_mprotect
static inline void *wasm_mmap(void *p, size_t n, int protection, int flags, int file, off_t offset)
{
  (void)p, (void)n, (void)protection, (void)flags, (void)file, (void)offset;
  return errno = ENOMEM, MAP_FAILED;
}
static inline int wasm_munmap(void *p, size_t n) { return (void)p, (void)n, -1; }
static inline int wasm_mprotect(void *p, size_t n, int protection) { return (void)p, (void)n, (void)protection, -1; }
static inline int wasm_mincore(void *p, size_t n, unsigned char *seen) { return (void)p, (void)n, (void)seen, -1; }

#endif

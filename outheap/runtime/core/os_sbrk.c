/* SPDX-License-Identifier: MIT */
/* Memory from one area that grows at its end, in place of mmap: what os.h says of address space and memory, with
   OH_SBRK. Address space and memory are the same here: what is reserved is accessible and reads as zeroes.

   The area may be shared with malloc, which takes what lies between the library's pieces. So nothing is placed at an
   address of the library's choice, except at the end of the area; and what the table calls the heap's is never given
   away, since malloc would have it next: the marker would take its memory for blocks. Memory goes back in two cases.
   What was never used goes back when it is at the end. Free pages at the end go back and are taken again at once, so
   that their addresses stay the library's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"
#if OH_SBRK
#include "os_faults.h"
#include "outheap_sbrk.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#if defined __has_include
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define MAY_GROW (__libc_single_threaded)
#endif
#endif
#ifndef MAY_GROW
#define MAY_GROW 1
#endif

#define REFUSED UINTPTR_MAX
#define ATTEMPTS_MOST 8
#define STEP_BACK ((size_t)256 << 20) /* what a system that counts what it promises is asked for at once */

/* --- the area ------------------------------------------------------------------------------------------------------*/

#ifdef __wasm__
#define GRAIN_LOG 16 /* a page of WebAssembly */
__attribute__((weak)) void *outheap_sbrk(intptr_t increment)
{
  size_t old = increment < 0 ? SIZE_MAX
                             : __builtin_wasm_memory_grow(0, ((size_t)increment + (1 << GRAIN_LOG) - 1) >> GRAIN_LOG);
  return (void *)(old == SIZE_MAX ? REFUSED : old << GRAIN_LOG);
}
#else
__attribute__((weak)) void *outheap_sbrk(intptr_t increment)
{
  if (increment != 0 && !MAY_GROW) {
    errno = ENOMEM;
    return (void *)REFUSED;
  }
  return sbrk(increment);
}
#endif

/* The lock protects the end of the area, against others of the library, and what follows. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* [piece, piece_end): what was taken last, with what was taken before it if that touches. Above `used_end` nothing was
   ever made accessible, and so nothing was written. */
static uintptr_t piece, piece_end, used_end;

/* [scrap, scrap_end): memory that alignment has left over, never used; the largest piece of it. It serves records. */
static uintptr_t scrap, scrap_end;

static void keep_scrap(uintptr_t from, uintptr_t to)
{
  from = OH_ROUND_UP(from, oh_os_page_size());
  if (from < to && to - from > scrap_end - scrap) scrap = from, scrap_end = to;
}

static uintptr_t move(intptr_t bytes) { return (uintptr_t)outheap_sbrk(bytes); }

/* `bytes` at the end of the area, aligned, below `limit`. 0: errno = ENOMEM. */
static uintptr_t take(size_t bytes, size_t alignment, uintptr_t limit)
{
  OH_ASSERT_LOCKED(&mutex);
  for (int i = 0; i < ATTEMPTS_MOST; i++) {
    uintptr_t top = move(0), base = OH_ROUND_UP(top, alignment);
    if (top == REFUSED || base < top || bytes > limit || base > limit - bytes) break;
    size_t whole = base - top + bytes;
    if (whole > INTPTR_MAX) break;
    uintptr_t got = move((intptr_t)whole);
    if (got == REFUSED) break;
    keep_scrap(got, got == top ? base : got + whole); /* as a whole if others were faster */
    if (got != top) continue;
    if (base != piece_end) piece = base;
    piece_end = base + bytes;
    return base;
  }
  errno = ENOMEM;
  return 0;
}

static void use(uintptr_t end)
{
  OH_ASSERT_LOCKED(&mutex);
  if (end > used_end) used_end = end;
}

static uintptr_t take_scrap(size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  if (scrap_end - scrap < bytes) return 0;
  uintptr_t p = scrap;
  scrap += OH_ROUND_UP(bytes, oh_os_page_size());
  if (scrap > scrap_end) scrap = scrap_end;
  return p;
}

uintptr_t oh_os_top(void) { return move(0); }

void oh_os_lock(void) { pthread_mutex_lock(&mutex); }
void oh_os_unlock(void) { pthread_mutex_unlock(&mutex); }

/* --- address space and memory --------------------------------------------------------------------------------------*/

bool oh_os_reserve_at(uintptr_t base, size_t bytes)
{
  if (oh_os_fails()) return false;
  oh_os_lock();
  bool there = move(0) == base, done = there && bytes <= INTPTR_MAX && take(bytes, 1, OH_ADDRESS_LIMIT) == base;
  oh_os_unlock();
  if (done) oh_os_tell_reserved(base, bytes);
  else errno = there ? ENOMEM : EEXIST;
  return done;
}

uintptr_t oh_os_reserve(size_t bytes, size_t alignment, uintptr_t limit)
{
  if (bytes == 0 || oh_os_fails()) return 0;
  oh_os_lock();
  uintptr_t p = take(bytes, alignment, limit);
  oh_os_unlock();
  if (p != 0) oh_os_tell_reserved(p, bytes);
  return p;
}

uintptr_t oh_os_map(size_t bytes)
{
  if (bytes == 0 || oh_os_fails()) return 0;
  oh_os_lock();
  uintptr_t p = take_scrap(bytes);
  if (p == 0) p = take(OH_ROUND_UP(bytes, oh_os_page_size()), oh_os_page_size(), UINTPTR_MAX);
  use(p + bytes);
  oh_os_unlock();
  return p;
}

/* What is not at the end is lost. */
void oh_os_release(uintptr_t base, size_t bytes)
{
  oh_os_lock();
  if (move(0) == base + bytes && bytes <= INTPTR_MAX && move(-(intptr_t)bytes) != REFUSED && piece_end > base) {
    piece_end = base;
    if (piece > base) piece = base;
  }
  oh_os_unlock();
}

bool oh_os_would_commit(size_t bytes) { return (void)bytes, !oh_os_fails(); } /* reserving it will tell */
bool oh_os_commit(void *start, size_t bytes)
{
  if (oh_os_fails()) return false;
  oh_os_lock();
  use((uintptr_t)start + bytes);
  oh_os_unlock();
  return true;
}

/* Grows again by what the area has just shrunk by. What was there a moment ago is had again, except where a system
   counts what it promises, which oh_os_purge excludes. */
static void take_again(uintptr_t start, size_t bytes)
{
  OH_ASSERT_LOCKED(&mutex);
  while (bytes != 0) {
    size_t step = bytes < STEP_BACK ? bytes : STEP_BACK;
    if (move((intptr_t)step) != start) oh_log_abort("the end of the area of memory has moved: a thread?");
    start += step;
    bytes -= step;
  }
}

/* Of the area's end: the library's own piece ends it, and behind what is purged nothing was written. */
bool oh_os_purge(void *start, size_t bytes)
{
  int error = errno;
  uintptr_t from = (uintptr_t)start;
  oh_os_tell_purging();
  bool done = !oh_os_fails() && !oh_os_is_strict();
  if (done) {
    oh_os_lock();
    size_t rest = piece_end - from;
    done = from >= piece && from + bytes <= piece_end && from + bytes >= used_end && move(0) == piece_end &&
           rest <= INTPTR_MAX && move(-(intptr_t)rest) != REFUSED;
    if (done) take_again(from, rest);
    oh_os_unlock();
  }
  errno = error;
  return done;
}

bool oh_os_uncommit(void *start, size_t bytes)
{
  oh_os_tell_purging();
  return (void)start, (void)bytes, false;
}

bool oh_os_advise_huge(void *start, size_t bytes, bool wanted) { return (void)start, (void)bytes, (void)wanted, false; }
bool oh_os_refuse_huge(void *start, size_t bytes) { return (void)start, (void)bytes, false; }

#endif /* OH_SBRK */

/* SPDX-License-Identifier: MIT */
#include "region_addresses.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#if defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#define CHUNK OUTHEAP_REGION_CHUNK
#define CHUNKS OUTHEAP_REGION_ADDRESSES_CHUNKS
#define BEGIN OUTHEAP_REGION_ADDRESSES_BEGIN
#define MAX_ELSEWHERE ((size_t)16 << 30) /* of one region, where the system chooses */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char taken[CHUNKS];
static size_t cursor; /* extents are taken upwards from here, so that addresses are not reused at once */

/* Where the system chooses the addresses: free extents, which are still reserved. */
enum { MAX_SPARES = 64 };
static struct outheap_region_addresses spares[MAX_SPARES];

static bool fixed;

/* A fact of the process: is its first stack near the top? Threads, and programs that switch stacks, can have stacks
   anywhere. */
__attribute__((constructor)) static void find_whether_fixed(void)
{
#ifndef SANITIZED
#ifdef __linux__
  uintptr_t stack = getauxval(AT_RANDOM); /* the system has put these bytes there */
#else
  uintptr_t stack = (uintptr_t)&stack;
#endif
  fixed = stack >> 46 != 0;
#endif
}

bool outheap_region_addresses_fixed(void) { return fixed; }

static bool is_fixed(char const *base)
{
  return outheap_region_addresses_fixed() && (uintptr_t)base - BEGIN < CHUNKS * CHUNK;
}

#define CHUNK_NUMBERS (OUTHEAP_REGION_ADDRESSES / CHUNK)
static unsigned char elsewhere[CHUNK_NUMBERS / 8]; /* a bit for each chunk of such extents */

static void set_elsewhere(char const *from, char const *to, bool ours)
{
  for (uintptr_t n = (uintptr_t)from / CHUNK; n < (uintptr_t)to / CHUNK && n < CHUNK_NUMBERS; n++)
    if (ours) __atomic_fetch_or(&elsewhere[n / 8], (unsigned char)(1u << n % 8), __ATOMIC_RELAXED);
    else __atomic_fetch_and(&elsewhere[n / 8], (unsigned char)~(1u << n % 8), __ATOMIC_RELAXED);
}

/* Relaxed: whoever has an address in an extent has it from somebody who was told about the extent. */
bool outheap_region_addresses_has(uintptr_t address)
{
  if (outheap_region_addresses_fixed()) return address - BEGIN < CHUNKS * CHUNK;
  uintptr_t n = address / CHUNK;
  return n < CHUNK_NUMBERS && (__atomic_load_n(&elsewhere[n / 8], __ATOMIC_RELAXED) >> n % 8 & 1) != 0;
}

/* 8 MiB of addresses, of which those pages are touched that have regions. */
static void *owners[CHUNK_NUMBERS];

/* Release, and acquire below: whoever finds an owner sees what it was when it was set. */
void outheap_region_addresses_set_owner(char const *base, size_t bytes, void *owner)
{
  for (uintptr_t n = (uintptr_t)base / CHUNK; n * CHUNK < (uintptr_t)base + bytes && n < CHUNK_NUMBERS; n++)
    __atomic_store_n(&owners[n], owner, __ATOMIC_RELEASE);
}

void *outheap_region_addresses_owner(uintptr_t address)
{
  uintptr_t n = address / CHUNK;
  return n < CHUNK_NUMBERS ? __atomic_load_n(&owners[n], __ATOMIC_ACQUIRE) : NULL;
}

static size_t number(char const *base) { return ((uintptr_t)base - BEGIN) / CHUNK; }

/* Finds the lowest free run of `n` chunks that begins at `from` or above. */
static bool run_above(size_t from, size_t n, size_t *first)
{
  for (size_t run = 0, at = from; at < CHUNKS; at++) {
    run = taken[at] ? 0 : run + 1;
    if (run == n) {
      *first = at + 1 - n;
      return true;
    }
  }
  return false;
}

static bool take_elsewhere(struct outheap_region_addresses *a, size_t least, size_t most)
{
  for (int i = 0; i < MAX_SPARES; i++)
    if (spares[i].bytes >= least && spares[i].bytes != 0) {
      *a = spares[i];
      spares[i].bytes = 0;
      return true;
    }
  if (most > MAX_ELSEWHERE && least <= MAX_ELSEWHERE) most = MAX_ELSEWHERE;
  for (size_t bytes = most;; bytes = bytes / 2 > least ? OUTHEAP_REGION_ROUND(bytes / 2, CHUNK) : least) {
    char *p = mmap(NULL, bytes + CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *base = (char *)OUTHEAP_REGION_ROUND((uintptr_t)p, CHUNK);
    if (p != MAP_FAILED && (uintptr_t)base + bytes > OUTHEAP_REGION_ADDRESSES) munmap(p, bytes + CHUNK);
    else if (p != MAP_FAILED) {
      if (base != p) munmap(p, (size_t)(base - p));
      if (base != p + CHUNK) munmap(base + bytes, (size_t)(p + CHUNK - base));
      *a = (struct outheap_region_addresses){ base, bytes };
      set_elsewhere(base, base + bytes, true);
      return true;
    }
    if (bytes == least) return false;
  }
}

bool outheap_region_addresses_take(struct outheap_region_addresses *a, size_t least, size_t most)
{
  least = OUTHEAP_REGION_ROUND(least, CHUNK), most = OUTHEAP_REGION_ROUND(most, CHUNK);
  if (least == 0) least = CHUNK;
  if (most < least) most = least;
  bool done = false;
  pthread_mutex_lock(&mutex);
  if (outheap_region_addresses_fixed()) {
    size_t first = 0, n = most / CHUNK;
    while (!(done = run_above(cursor, n, &first) || run_above(0, n, &first)) && n != least / CHUNK)
      n = n / 2 > least / CHUNK ? n / 2 : least / CHUNK;
    if (done) {
      memset(taken + first, 1, n);
      cursor = first + n;
      *a = (struct outheap_region_addresses){ (char *)(BEGIN + first * CHUNK), n * CHUNK };
    }
  }
  else done = take_elsewhere(a, least, most);
  pthread_mutex_unlock(&mutex);
  return done;
}

bool outheap_region_addresses_take_at(struct outheap_region_addresses *a, uintptr_t base, size_t bytes)
{
  bytes = OUTHEAP_REGION_ROUND(bytes, CHUNK);
  if (!outheap_region_addresses_fixed() || base % CHUNK != 0 || base < BEGIN || bytes == 0 ||
      bytes > CHUNKS * CHUNK || base - BEGIN > CHUNKS * CHUNK - bytes)
    return false;
  size_t first = (base - BEGIN) / CHUNK, n = bytes / CHUNK;
  pthread_mutex_lock(&mutex);
  bool is_free = true;
  for (size_t i = 0; i < n; i++) is_free = is_free && !taken[first + i];
  if (is_free) memset(taken + first, 1, n);
  pthread_mutex_unlock(&mutex);
  *a = (struct outheap_region_addresses){ (char *)base, bytes };
  return is_free;
}

void outheap_region_addresses_cut(struct outheap_region_addresses *a, size_t bytes)
{
  bytes = OUTHEAP_REGION_ROUND(bytes, CHUNK);
  if (bytes == 0) bytes = CHUNK;
  if (bytes >= a->bytes) return;
  pthread_mutex_lock(&mutex);
  if (is_fixed(a->base)) {
    memset(taken + number(a->base) + bytes / CHUNK, 0, (a->bytes - bytes) / CHUNK);
    cursor = number(a->base) + bytes / CHUNK; /* the next extent may use what was too much */
  }
  else { /* no address of that part was given to anybody */
    set_elsewhere(a->base + bytes, a->base + a->bytes, false);
    munmap(a->base + bytes, a->bytes - bytes);
  }
  pthread_mutex_unlock(&mutex);
  a->bytes = bytes;
}

void outheap_region_addresses_give(struct outheap_region_addresses *a)
{
  if (a->bytes == 0) return;
  pthread_mutex_lock(&mutex);
  if (is_fixed(a->base)) memset(taken + number(a->base), 0, a->bytes / CHUNK);
  else
    for (int i = 0; i < MAX_SPARES; i++) /* further ones stay reserved and unused */
      if (spares[i].bytes == 0) {
        spares[i] = *a;
        break;
      }
  pthread_mutex_unlock(&mutex);
  a->bytes = 0;
}

void outheap_region_addresses_avoid(struct outheap_region_addresses *a, char const *at)
{
  size_t n = is_fixed(at) ? number(at) : 0;
  bool in_place = is_fixed(a->base);
  outheap_region_addresses_give(a);
  if (!in_place) return; /* then all addresses of the extent are reserved, so nothing else can be mapped there */
  pthread_mutex_lock(&mutex);
  taken[n] = 1;
  pthread_mutex_unlock(&mutex);
}

bool outheap_region_addresses_map(char *at, size_t bytes, int protection, int flags, int file, uint64_t offset)
{
  flags |= MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0) | (is_fixed(at) ? MAP_FIXED_NOREPLACE : MAP_FIXED);
  void *p = mmap(at, bytes, protection, flags, file, (off_t)offset);
  if (p == MAP_FAILED) return false;
  if (p == at) return true;
  munmap(p, bytes); /* a kernel that does not know MAP_FIXED_NOREPLACE */
  errno = EEXIST;
  return false;
}

void outheap_region_addresses_unmap(char *at, size_t bytes)
{
  if (bytes == 0) return;
  if (is_fixed(at)) {
    /* munmap can fail if the system has merged the mapping with a neighbour, and allows no more mappings. */
    if (munmap(at, bytes) != 0 && mprotect(at, bytes, PROT_NONE) == 0) (void)madvise(at, bytes, MADV_DONTNEED);
  }
  else (void)mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

size_t outheap_region_addresses_page(void)
{
  static size_t size;
  if (size == 0) size = (size_t)sysconf(_SC_PAGESIZE);
  return size;
}

void outheap_region_addresses_lock(void) { pthread_mutex_lock(&mutex); }
void outheap_region_addresses_unlock(void) { pthread_mutex_unlock(&mutex); }

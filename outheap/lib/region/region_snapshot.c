/* SPDX-License-Identifier: MIT */
#include "region_snapshot.h"
#include <caml/signals.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

typedef struct outheap_region_copy copy;
#define MAX_BYTES OUTHEAP_REGION_COPY_MAX
#define READ_BYTES ((size_t)4 << 20) /* from a file at a time */

/* Others wait for at least so many nanoseconds before a second process is started. */
#ifndef OUTHEAP_REGION_SNAPSHOT_PATIENCE
#define OUTHEAP_REGION_SNAPSHOT_PATIENCE 2000000
#endif

/* --- in a second process ---------------------------------------------------------------------------------------------
   What takes long is done by a second process, for which all domains are stopped only until it is there. It has the
   source to itself, so it does what is done here otherwise, headers and all; but the copy's memory is a file without a
   name, from which this process reads it. If anything goes wrong the copy is made here, while all others wait. */

struct result { struct outheap_region_error error; size_t used, blocks; value copied; };
_Static_assert(sizeof(struct result) < OUTHEAP_REGION_SECOND_SHARED, "one page");

static uint64_t last_start; /* nanoseconds that it took to start the last second process */
static struct outheap_region_snapshot_counts counts;

static void record_wait(uint64_t waited)
{
  uint64_t longest = __atomic_load_n(&counts.longest, __ATOMIC_RELAXED); /* a statistic */
  while (longest < waited && !__atomic_compare_exchange_n(&counts.longest, &longest, waited, false, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {}
}

struct outheap_region_snapshot_counts outheap_region_snapshot_count(void)
{
  return (struct outheap_region_snapshot_counts){ __atomic_load_n(&counts.second, __ATOMIC_RELAXED),
                                                  __atomic_load_n(&counts.longest, __ATOMIC_RELAXED) };
}

static int open_memory(void)
{
#ifdef SYS_memfd_create
  int file = (int)syscall(SYS_memfd_create, "outheap-copy", 1u /* close on exec */ | 8u /* not to be executed */);
  if (file < 0 && errno == EINVAL) file = (int)syscall(SYS_memfd_create, "outheap-copy", 1u); /* before Linux 6.3 */
  return file;
#else
  return -1;
#endif
}

static void run_in_second(void *data)
{
  copy *c = data;
  c->deadline = 0;
  outheap_region_copy_run(c);
  *(struct result *)c->second.shared = (struct result){ c->error, c->used, c->blocks, c->copied };
}

/* Called while all domains are stopped. */
static void copy_or_hand_over(void *data)
{
  copy *c = data;
  /* What takes little longer than to start a process is done here. Copying for a quarter of that time and then starting
     one costs at most a quarter more. */
  uint64_t from = outheap_region_now(), patience = __atomic_load_n(&last_start, __ATOMIC_RELAXED) / 4;
  if (patience < OUTHEAP_REGION_SNAPSHOT_PATIENCE) patience = OUTHEAP_REGION_SNAPSHOT_PATIENCE;
  c->handed_over = OUTHEAP_REGION_SNAPSHOT_PATIENCE == 0 && !c->exclusive; /* for tests */
  c->deadline = c->exclusive ? 0 : from + patience;
  if (!c->handed_over) outheap_region_copy_run(c);
  if (!c->handed_over) return;
  outheap_region_copy_unmap(c);
  from = outheap_region_now();
  c->file = open_memory();
  if (c->file >= 0 && outheap_region_second_start(&c->second, run_in_second, c)) {
    __atomic_store_n(&last_start, outheap_region_now() - from, __ATOMIC_RELAXED);
    return;
  }
  if (c->file >= 0) close(c->file);
  c->file = -1;
  c->handed_over = false;
  c->deadline = 0;
  outheap_region_copy_run(c);
}

/* Reads the copy that the second process has left in the file, which gets smaller meanwhile. */
static bool read_memory(copy *c)
{
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  int file = c->file;
  c->file = -1;
  c->mapped = 0;
  if (!outheap_region_copy_map_more(c, end)) {
    if (errno == EEXIST) c->obstacle = c->base;
    return false;
  }
  c->mapped = end;
#ifdef MADV_HUGEPAGE
  (void)madvise(c->base, end, MADV_HUGEPAGE); /* so that it costs later processes little */
#endif
  for (size_t at = 0; at < c->used;) {
    size_t most = c->used - at < READ_BYTES ? c->used - at : READ_BYTES;
    ssize_t n = pread(file, c->base + at, most, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, n);
    at += (size_t)n;
  }
  return true;
}

/* After copy_or_hand_over. Returns true if the result is final; false if the second process has failed, and the copy is
   to be made here. */
static bool take_over(copy *c)
{
  if (!c->handed_over) return true;
  int file = c->file;
  caml_enter_blocking_section();
  bool done = outheap_region_second_wait(&c->second);
  struct result r = *(struct result *)c->second.shared;
  outheap_region_second_end(&c->second);
  c->obstacle = NULL;
  c->error = r.error;
  if (done && r.error.kind == OUTHEAP_REGION_OK) {
    c->used = r.used;
    c->blocks = r.blocks;
    c->copied = r.copied;
    done = read_memory(c);
    if (!done) {
      outheap_region_copy_unmap(c);
      outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    }
  }
  else done = done && r.error.kind == OUTHEAP_REGION_REFUSED;
  c->file = -1;
  close(file);
  if (done) __atomic_add_fetch(&counts.second, 1, __ATOMIC_RELAXED);
  caml_leave_blocking_section();
  return done;
}

/* The number of copies that have an extent whose end is not known yet, or look for one. */
static int unfinished;

/* Takes an extent for the copy. No copy is larger than the memory of the system: so much is taken, and what was too
   much is given back. If others have taken all that there is, this waits for their copies. */
static bool take_extent(copy *c)
{
  struct sysinfo s;
  size_t most = MAX_BYTES;
  if (sysinfo(&s) == 0 && s.totalram + s.totalswap < most / s.mem_unit)
    most = (size_t)(s.totalram + s.totalswap) * s.mem_unit;
  for (;;) {
    struct timespec little = { 0, 1000000 };
    /* This comes before it has one, so that whoever finds none knows of this copy. */
    __atomic_add_fetch(&unfinished, 1, __ATOMIC_SEQ_CST);
    if (outheap_region_addresses_take(&c->extent, OUTHEAP_REGION_CHUNK, most)) return true;
    if (__atomic_sub_fetch(&unfinished, 1, __ATOMIC_SEQ_CST) == 0)
      return outheap_region_error_is(&c->error, OUTHEAP_REGION_TOO_MANY, NULL);
    caml_enter_blocking_section();
    nanosleep(&little, NULL);
    caml_leave_blocking_section();
  }
}

static void finish_extent(void) { __atomic_sub_fetch(&unfinished, 1, __ATOMIC_SEQ_CST); }

/* Copies to one extent. Returns false if there is an error, and leaves nothing; with `obstacle`, another extent may do.
   */
static bool copy_to(copy *c, uint64_t *waited)
{
  bool exclusive = c->exclusive;
  if (!take_extent(c)) return false;
  c->base = c->extent.base;
  c->file = -1;
  c->mapped = 0;
  for (bool done = false; !done; c->exclusive = true) {
    c->log = (struct outheap_region_vector){ NULL, 0, 0 };
    c->table = (struct outheap_region_table){ NULL, 0, 0 };
    c->handed_over = false;
    if (outheap_region_run_alone(copy_or_hand_over, NULL, c, waited)) record_wait(*waited);
    else outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    outheap_region_vector_free(&c->log);
    outheap_region_table_free(&c->table);
    done = take_over(c) || c->obstacle != NULL || c->exclusive;
  }
  c->exclusive = exclusive;
  if (c->error.kind == OUTHEAP_REGION_OK) return true;
  outheap_region_copy_unmap(c);
  if (c->obstacle != NULL) outheap_region_addresses_avoid(&c->extent, c->obstacle);
  else outheap_region_addresses_give(&c->extent);
  finish_extent();
  return false;
}

bool outheap_region_snapshot_make(copy *c, uint64_t *waited)
{
  *waited = 0;
  for (int i = 0; !copy_to(c, waited); i++)
    if (c->obstacle == NULL || i == OUTHEAP_REGION_ADDRESSES_ATTEMPTS) return false;
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  outheap_region_addresses_unmap(c->base + end, c->mapped - end);
  c->mapped = end;
  outheap_region_addresses_cut(&c->extent, end);
  finish_extent();
  return true;
}

void outheap_region_snapshot_drop(copy *c)
{
  outheap_region_copy_unmap(c);
  outheap_region_addresses_give(&c->extent);
}

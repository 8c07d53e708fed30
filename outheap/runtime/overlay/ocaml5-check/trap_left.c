/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap_left.h"
#include "base.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* notes[i % most]: the i-th note, for written - most <= i < written. A note is counted before it is written; a reader
   that finds one half written takes another block for the fault's, and no harm comes of it. */
struct notes { struct oh_trap_left *notes; uintnat most, written; };
#define YOUNG_NOTES 32768
static struct oh_trap_left young_notes[YOUNG_NOTES], old_notes[OH_TRAP_LEFT_OLD];
static struct notes young = { young_notes, YOUNG_NOTES, 0 }, old = { old_notes, OH_TRAP_LEFT_OLD, 0 };

void oh_trap_left_add(struct oh_trap_left const *left)
{
  struct notes *n = left->block_words == 0 ? &young : &old;
  n->notes[oh_fetch_add_relaxed(&n->written, 1) % n->most] = *left;
}

static bool find(struct notes const *among, uintptr_t address, struct oh_trap_left *result)
{
  uintnat n = oh_load_relaxed(&among->written), first = n > among->most ? n - among->most : 0;
  while (n > first) {
    struct oh_trap_left const *left = &among->notes[--n % among->most];
    if (left->begin <= address && address < left->end) return *result = *left, true;
  }
  return false;
}

bool oh_trap_left_find(uintptr_t address, struct oh_trap_left *result)
{
  return find(&young, address, result) || find(&old, address, result);
}

void oh_trap_left_protect(uintptr_t from, uintptr_t to, int access)
{
  if (from < to && mprotect((void *)from, to - from, access) != 0)
    caml_fatal_error("check=move: mprotect: %s (too many mappings? see vm.max_map_count)", strerror(errno));
}

bool oh_trap_left_peek(uintptr_t at, void *to, size_t bytes)
{
  static int memory = -1;
  static pid_t owner;
  if (memory < 0 || owner != getpid()) {
    owner = getpid();
    memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  }
  return pread(memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static uintptr_t word(uintptr_t at)
{
  uintptr_t w = 0;
  oh_trap_left_peek(at, &w, sizeof w);
  return w;
}

/* A minor collection leaves header 0 and the new place in the first field of what it has moved. */
static bool young_block(struct oh_trap_left const *left, uintptr_t address, struct oh_trap_left_block *result)
{
  for (uintptr_t p = left->first; p < left->end;) {
    header_t header = word(p);
    uintptr_t now = header == 0 ? word(p + sizeof(value)) : 0;
    if (now != 0) header = word(now - sizeof(value));
    if (header == 0 || Wosize_hd(header) >= (left->end - p) / sizeof(value)) return false;
    uintptr_t next = p + Bhsize_hd(header);
    if (address < next) {
      *result = (struct oh_trap_left_block){ p + sizeof(value), now, header };
      return true;
    }
    p = next;
  }
  return false;
}

/* A compaction sets the status of what it has moved to that of marked blocks, which nothing else has then; other blocks
   of the pool were garbage, or free. */
static bool old_block(struct oh_trap_left const *left, uintptr_t address, struct oh_trap_left_block *result)
{
  if (address < left->first) return false;
  size_t bytes = left->block_words * sizeof(value);
  uintptr_t block = left->first + (address - left->first) / bytes * bytes;
  header_t header = word(block);
  uintptr_t first = word(block + sizeof(value));
  header_t colours = HEADER_COLOR_MASK;
  bool moved = !left->all_dead && Wosize_hd(header) != 0 && (first & 7) == 0 && first != 0
               && ((word(first - sizeof(value)) ^ header) & ~colours) == 0;
  *result = (struct oh_trap_left_block){ block + sizeof(value), moved ? first : 0, header };
  return true;
}

bool oh_trap_left_block_at(struct oh_trap_left const *left, uintptr_t address, struct oh_trap_left_block *result)
{
  return left->block_words == 0 ? young_block(left, address, result) : old_block(left, address, result);
}

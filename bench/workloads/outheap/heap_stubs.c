/* SPDX-License-Identifier: MIT */
/* What the workloads ask of the system and of Outheap, and the heap of the marking benchmark. */
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outheap.h"
#pragma weak outheap_statistics

/* The number of lines of /proc/self/maps. */
value heap_mappings(value unit)
{
  (void)unit;
  static char buffer[1 << 16];
  long lines = 0;
  ssize_t n;
  int file = open("/proc/self/maps", O_RDONLY);
  if (file < 0) return Val_long(0);
  while ((n = read(file, buffer, sizeof buffer)) > 0)
    for (char *p = buffer; (p = memchr(p, '\n', buffer + n - p)) != NULL; p++) lines++;
  close(file);
  return Val_long(lines);
}

/* A line of a file of /proc, in KB; -1: there is none. */
value heap_proc_kilobytes(value file, value name)
{
  FILE *f = fopen(String_val(file), "r");
  char line[256];
  long n = -1;
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, String_val(name), caml_string_length(name)) == 0)
      sscanf(line + caml_string_length(name), " %ld", &n);
  if (f != NULL) fclose(f);
  return Val_long(n);
}

/* Bytes of this process in huge pages. */
value heap_huge_bytes(value unit)
{
  (void)unit;
  char line[256];
  long kilobytes = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  if (!file) return Val_long(0);
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "AnonHugePages: %ld", &kilobytes) == 1) break;
  fclose(file);
  return Val_long(kilobytes * 1024);
}

/* What marking has looked at until now: words seen, immediate, young, static, foreign, cache lines saved. Zeroes when
   the runtime does not count. */
value heap_counters(value unit)
{
  struct outheap_statistics s;
  size_t counters[6] = {0};
  (void)unit;
  if (outheap_statistics) {
    outheap_statistics(&s);
    size_t now[6] = {s.words_seen, s.words_immediate, s.words_young, s.words_static, s.words_foreign, s.lines_saved};
    memcpy(counters, now, sizeof now);
  }
  value result = caml_alloc_tuple(6);
  for (int i = 0; i < 6; i++) Store_field(result, i, Val_long(counters[i]));
  return result;
}

/* --- the heap of the marking benchmark ---------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}
static size_t random_below(size_t n) { return (size_t)((unsigned __int128)random_next() * n >> 64); }

enum { CHAIN = 16, NEAR = 64 };

/* heap_build : int -> bool -> bool -> int -> int -> 'a array -> Obj.t array
   Makes `words` words of blocks straight in the major heap, so that every runtime is given the same sequence of
   requests whatever its minor heap does. Blocks form chains of 16, whose heads are in the array that is returned. Of
   the fields that do not link a chain, `immediates` in a thousand are immediate, `statics` in a thousand point to
   elements of the array `constants`, the others to blocks. random: chains and pointers go anywhere; otherwise blocks
   come in the order in which they were allocated, and pointers go to one of the next 64. irregular: blocks of 1 to 8
   fields; otherwise of 4. Runs no collection. */
value heap_build(value words, value random, value irregular, value immediates, value statics, value constants)
{
  size_t mean = Bool_val(irregular) ? 11 : 10; /* half words of a block with its header, on average */
  size_t count = (size_t)Long_val(words) * 2 / mean / CHAIN * CHAIN, heads = count / CHAIN;
  size_t share_immediate = (size_t)Long_val(immediates), share_static = share_immediate + (size_t)Long_val(statics);
  size_t constant_count = Wosize_val(constants);
  value *blocks = malloc(count * sizeof *blocks);
  if (!blocks || !count || !constant_count) caml_failwith("heap_build");
  value result = caml_alloc_shr(heads, 0);
  for (size_t i = 0; i < heads; i++) Field(result, i) = Val_unit;
  random_state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < count; i++) blocks[i] = caml_alloc_shr(Bool_val(irregular) ? 1 + random_below(8) : 4, 0);
  if (Bool_val(random))
    for (size_t i = count - 1; i > 0; i--) {
      size_t j = random_below(i + 1);
      value block = blocks[i];
      blocks[i] = blocks[j];
      blocks[j] = block;
    }
  /* Plain stores: nothing marks, moves or sweeps before we return, and all that is stored is in the major heap or
     static. */
  for (size_t i = 0; i < count; i++) {
    value block = blocks[i];
    mlsize_t size = Wosize_val(block);
    Field(block, 0) = (i + 1) % CHAIN ? blocks[i + 1] : Val_long(i);
    for (mlsize_t f = 1; f < size; f++) {
      size_t kind = random_below(1000);
      if (kind < share_immediate) Field(block, f) = Val_long(kind);
      else if (kind < share_static) Field(block, f) = Field(constants, random_below(constant_count));
      else Field(block, f) = blocks[Bool_val(random) ? random_below(count) : (i + 1 + random_below(NEAR)) % count];
    }
  }
  for (size_t i = 0; i < heads; i++) Field(result, i) = blocks[i * CHAIN];
  free(blocks);
  return result;
}
value heap_build_byte(value *v, int n)
{
  (void)n;
  return heap_build(v[0], v[1], v[2], v[3], v[4], v[5]);
}

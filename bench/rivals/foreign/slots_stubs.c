/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include "timed_thread.h"
#include <stdint.h>
#include <sys/mman.h>

static boxroot *slots;
static long count;

static size_t array_bytes(void) { return (count + 1) * sizeof *slots; }

/* Mapped, so that `release` gives the memory back to the system in full; and written to, so that what the process grows
   by later is due to the roots alone. */
value slots_make(value number)
{
  if (!boxroot_setup()) root_failure();
  count = Long_val(number);
  slots = mmap(NULL, array_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (slots == MAP_FAILED) root_failure();
  for (long i = 0; i <= count; i++) ((boxroot volatile *)slots)[i] = NULL;
  return Val_unit;
}

value slots_release(value unit)
{
  munmap(slots, array_bytes());
  slots = NULL;
  return unit;
}

value slots_create(value slot, value v)
{
  slots[Long_val(slot)] = checked_create(v);
  return Val_unit;
}

value slots_modify(value slot, value v)
{
  checked_modify(&slots[Long_val(slot)], v);
  return Val_unit;
}

value slots_delete(value slot)
{
  boxroot_delete(slots[Long_val(slot)]);
  slots[Long_val(slot)] = NULL;
  return Val_unit;
}

value slots_fill(value first, value last, value v)
{
  for (long i = Long_val(first); i < Long_val(last); i++)
    if (!slots[i]) slots[i] = checked_create(v);
  return Val_unit;
}

value slots_fill_from(value array)
{
  for (long i = 0; i < count; i++) slots[i] = checked_create(Field(array, i));
  return Val_unit;
}

value slots_shuffle(value unit)
{
  uint64_t state = 0x9E3779B97F4A7C15;
  for (long i = count - 1; i > 0; i--) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    long j = state % (i + 1);
    boxroot r = slots[i];
    slots[i] = slots[j];
    slots[j] = r;
  }
  return unit;
}

static void delete_from(long first)
{
  for (long i = first; i < count; i++) {
    if (slots[i]) boxroot_delete(slots[i]);
    slots[i] = NULL;
  }
}

value slots_delete_all(value unit)
{
  delete_from(0);
  return unit;
}

value slots_delete_from(value first)
{
  delete_from(Long_val(first));
  return Val_unit;
}

value slots_delete_but(value one_in)
{
  for (long i = 0; i < count; i++) {
    if (i % Long_val(one_in) == 0 || !slots[i]) continue;
    boxroot_delete(slots[i]);
    slots[i] = NULL;
  }
  return Val_unit;
}

static void delete_each(void) { delete_from(0); }

value slots_delete_by_thread(value unit)
{
  (void)unit;
  return seconds_of_thread(delete_each);
}

static int compare_words(void const *a, void const *b)
{
  uintptr_t x = *(uintptr_t const *)a, y = *(uintptr_t const *)b;
  return x < y ? -1 : x > y;
}

value slots_pieces(value unit)
{
  (void)unit;
  uintptr_t *piece = malloc((size_t)(count + 1) * sizeof *piece);
  if (piece == NULL) abort();
  long n = 0, distinct = 0;
  for (long i = 0; i < count; i++)
    if (slots[i]) piece[n++] = (uintptr_t)slots[i] >> 14;
  qsort(piece, n, sizeof *piece, compare_words);
  for (long i = 0; i < n; i++) distinct += i == 0 || piece[i] != piece[i - 1];
  free(piece);
  return Val_long(distinct);
}

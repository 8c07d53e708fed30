/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include <caml/memory.h>
#include <caml/signals.h>
#include <pthread.h>
#include <sched.h>

enum { MOST_THREADS = 64 };

static boxroot *slots;
static long slots_count;
static pthread_t threads[MOST_THREADS];
static long threads_count, deleted;
static int stop;

static boxroot exchange(long slot, boxroot r) { return __atomic_exchange_n(&slots[slot], r, __ATOMIC_ACQ_REL); }

value contention_setup(value number)
{
  if (!boxroot_setup()) root_failure();
  slots_count = Long_val(number);
  slots = calloc(slots_count, sizeof *slots);
  if (!slots) root_failure();
  return Val_unit;
}

value contention_swap(value slot, value v)
{
  boxroot old = exchange(Long_val(slot), checked_create(v));
  if (!old) return Val_true;
  value found = boxroot_get(old);
  int good = Is_block(found) && Tag_val(found) == 0 && Wosize_val(found) == 1 && Is_long(Field(found, 0));
  boxroot_delete(old);
  return Val_bool(good);
}

static void *deleting_thread(void *seed)
{
  uint64_t state = 0x9E3779B97F4A7C15 * ((uintptr_t)seed + 1);
  long mine = 0;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    int some = 0;
    for (int i = 0; i < 64; i++) {
      state = state * 6364136223846793005 + 1442695040888963407;
      boxroot r = exchange((state >> 33) % slots_count, NULL);
      if (!r) continue;
      boxroot_delete(r);
      some++;
    }
    mine += some;
    if (!some) sched_yield();
  }
  __atomic_fetch_add(&deleted, mine, __ATOMIC_RELAXED);
  return NULL;
}

value contention_start_threads(value number)
{
  if (Long_val(number) > MOST_THREADS) abort();
  for (; threads_count < Long_val(number); threads_count++)
    if (pthread_create(&threads[threads_count], NULL, deleting_thread, (void *)(uintptr_t)threads_count) != 0) abort();
  return Val_unit;
}

value contention_stop_threads(value unit)
{
  (void)unit;
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  caml_enter_blocking_section();
  while (threads_count) pthread_join(threads[--threads_count], NULL);
  caml_leave_blocking_section();
  return Val_long(deleted);
}

value contention_clear(value unit)
{
  for (long i = 0; i < slots_count; i++)
    if (slots[i]) boxroot_delete(slots[i]);
  free(slots);
  return unit;
}

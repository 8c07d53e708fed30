/* SPDX-License-Identifier: MIT */
#include "pointer.h"
#include "os.h"
#include "ranges.h"
#include <pthread.h>

/* --- the report --------------------------------------------------------------------------------------------------- */

/* What markers read. Each call of oh_report_set writes a new one, which then never changes, so markers see the function
   together with its own data. Two slots are enough: the current one, and the previous one, which no thread uses any
   more when oh_report_set returns. */
struct sampler { void (*sample)(void const *, void const *); void const *data; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sampler slots[2];
static struct sampler *current; /* NULL: none */
static unsigned turn;
static bool swept; /* is the table as oh_table_sweep(true) leaves it? */
static size_t found, period;
static size_t inside;           /* threads that are using a sampler; counted once for each nested call */
static _Thread_local size_t inside_here __attribute__((tls_model("initial-exec"))); /* of these, in this thread */

_Thread_local void (*oh_report_defer)(uintptr_t) __attribute__((tls_model("initial-exec")));

void oh_report_pointer(uintptr_t address)
{
  if (oh_report_defer != NULL) {
    oh_report_defer(address);
    return;
  }
  size_t n = oh_fetch_add_relaxed(&found, 1) + 1, every = oh_load_relaxed(&period);
  if (every == 0 || n % every != 0) return;
  oh_fetch_add_seq_cst(&inside, 1);
  inside_here++;
  struct sampler *s = oh_load_seq_cst(&current);
  if (s != NULL && s->sample != NULL) s->sample((void const *)address, s->data);
  inside_here--;
  oh_fetch_add_seq_cst(&inside, (size_t)-1);
}

size_t oh_report_count(void) { return oh_load_relaxed(&found); }

size_t oh_report_set(size_t every, void (*sample)(void const *, void const *), void const *data)
{
  bool nested = inside_here != 0; /* called by a sampler */
  if (!nested) pthread_mutex_lock(&mutex);
  /* another thread is waiting for this sampler */
  else if (pthread_mutex_trylock(&mutex) != 0) return oh_report_count();
  struct sampler *next = NULL;
  if (every != 0) {
    next = &slots[turn ^= 1];
    *next = (struct sampler){ sample, data };
    if (!swept) oh_store_relaxed(&found, 0);
  }
  size_t count = oh_report_count();
  if (next == NULL) oh_store_seq_cst(&oh_table_report_flag, false);
  oh_store_relaxed(&period, every);
  oh_store_seq_cst(&current, next);
  /* No thread may still use the previous slot when it is written again, or when the caller's data are freed. */
  while (oh_load_seq_cst(&inside) != inside_here) oh_os_yield();
  if (next != NULL) oh_store_seq_cst(&oh_table_report_flag, true);
  if ((next != NULL) != swept) oh_table_sweep(swept = next != NULL);
  pthread_mutex_unlock(&mutex);
  return count;
}

void oh_report_print(void const *pointer, void const *data)
{
  (void)data;
  oh_log("pointer to foreign memory: %p", pointer);
}

void oh_report_lock(void) { pthread_mutex_lock(&mutex); }
void oh_report_unlock(void) { pthread_mutex_unlock(&mutex); }
void oh_report_forked(void) { oh_store_seq_cst(&inside, inside_here); }

/* --- questions ---------------------------------------------------------------------------------------------------- */

static size_t unknown_found;
size_t oh_pointer_unknown_found(void) { return oh_load_relaxed(&unknown_found); }

bool oh_pointer_is_markable_slow(uintptr_t address, enum oh_region_by by)
{
  uintptr_t i = address >> OH_CHUNK_LOG;
  if (i < OH_TABLE_ENTRIES) {
    int8_t k = oh_load_seq_cst(&oh_table[i]);
    if (oh_kind_is_region(k)) {
      if ((address & 1) == 0) oh_region_reach(address, by);
      return false;
    }
    if (k == OH_KIND_UNKNOWN) {
      oh_fetch_add_relaxed(&unknown_found, 1);
#if OH_TAINT
      if (oh_cas_seq_cst(&oh_table[i], &k, oh_table_reporting() ? (int8_t)OH_KIND_REPORTED : (int8_t)OH_KIND_FOREIGN))
        k = OH_KIND_FOREIGN;
      /* The report may have begun in the meantime, and its sweep may have passed this entry. */
      int8_t tainted = OH_KIND_FOREIGN;
      if (k == OH_KIND_FOREIGN && oh_table_reporting())
        oh_cas_seq_cst(&oh_table[i], &tainted, (int8_t)OH_KIND_REPORTED);
#endif
    }
    if (oh_kind_is_heap(k)) return k == OH_KIND_MAJOR;
    /* The report may have ended in the meantime. */
    if (k == OH_KIND_REPORTED && !oh_table_reporting()) oh_cas_seq_cst(&oh_table[i], &k, (int8_t)OH_KIND_MIXED);
  }
  if (oh_table_reporting() && oh_ranges_at(address) == 0) oh_report_pointer(address);
  return false;
}

bool oh_pointer_is_value_slow(uintptr_t address)
{
  return address % sizeof(void *) == 0 && (oh_ranges_at(address) & OH_RANGES_VALUES) != 0;
}

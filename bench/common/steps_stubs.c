/* SPDX-License-Identifier: MIT */
/* Durations of the steps of one thread, in histograms whose buckets are at most 1/32 wide, by the wall clock and by the
   processor time of the thread: the first includes what other programs do to us, the second does not. */
#include <caml/alloc.h>
#include <caml/mlvalues.h>
#include <stdint.h>
#include <time.h>

enum { SUB_BITS = 5, SUBS = 1 << SUB_BITS, BUCKETS = 64 * SUBS };

typedef struct {
  clockid_t clock;
  int64_t last;
  uint64_t worst, count, buckets[BUCKETS];
} histogram;

static histogram wall = {.clock = CLOCK_MONOTONIC}, cpu = {.clock = CLOCK_THREAD_CPUTIME_ID};

static int64_t now(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static unsigned bucket_of(uint64_t ns)
{
  if (ns < SUBS) return ns;
  unsigned shift = 63 - __builtin_clzll(ns) - SUB_BITS;
  return (shift + 1) * SUBS + (ns >> shift) - SUBS;
}

static uint64_t bucket_end(unsigned bucket)
{
  if (bucket < SUBS) return bucket;
  unsigned shift = bucket / SUBS - 1;
  return (((uint64_t)bucket % SUBS + SUBS + 1) << shift) - 1;
}

static void record(histogram *h)
{
  int64_t t = now(h->clock);
  uint64_t ns = t - h->last;
  h->buckets[bucket_of(ns)]++;
  h->count++;
  if (ns > h->worst) h->worst = ns;
}

/* Restarts both clocks, so that what the caller did meanwhile is in no step. */
value steps_resume(value unit)
{
  cpu.last = now(cpu.clock);
  wall.last = now(wall.clock);
  return unit;
}

value steps_start(value unit)
{
  wall = (histogram){.clock = wall.clock};
  cpu = (histogram){.clock = cpu.clock};
  return steps_resume(unit);
}

value steps_step(value unit)
{
  record(&wall);
  record(&cpu);
  return steps_resume(unit);
}

value steps_quantile(value of_processor_time, value quantile)
{
  histogram const *h = Bool_val(of_processor_time) ? &cpu : &wall;
  double q = Double_val(quantile);
  if (q >= 1.) return caml_copy_double(h->worst * 1e-6);
  uint64_t below = 0;
  unsigned b = 0;
  while (b < BUCKETS - 1 && below + h->buckets[b] <= q * h->count) below += h->buckets[b++];
  return caml_copy_double(bucket_end(b) * 1e-6);
}
